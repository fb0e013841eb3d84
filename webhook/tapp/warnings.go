package tapp

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"
)

// warnings that the API server sends beside its answer to one request.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

type warningsKey struct{}

func (w *warnings) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.texts)
}

// collectWarnings gives the warnings of the API server to who made the request.
type collectWarnings struct{}

var _ rest.WarningHandlerWithContext = collectWarnings{}

// HandleWarningHeaderWithContext takes one warning; 299 is the code of warnings
// that persist, as Kubernetes sends them.
func (collectWarnings) HandleWarningHeaderWithContext(ctx context.Context, code int, _, text string) {
	const persistent = 299
	if w, ok := ctx.Value(warningsKey{}).(*warnings); ok && code == persistent && text != "" {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.texts = append(w.texts, text)
	}
}

// messages about templates. Those with the same text become one.
type messages []struct {
	paths []string
	text  string
}

func (m *messages) add(path *field.Path, text string) {
	for i := range *m {
		if (*m)[i].text == text {
			(*m)[i].paths = append((*m)[i].paths, path.String())
			return
		}
	}
	*m = append(*m, struct {
		paths []string
		text  string
	}{[]string{path.String()}, text})
}

func (m messages) texts() []string {
	const most = 3
	var out []string
	for _, w := range m {
		paths := strings.Join(w.paths, ", ")
		if more := len(w.paths) - most; more > 0 {
			paths = fmt.Sprintf("%s and %d more templates", strings.Join(w.paths[:most], ", "), more)
		}
		out = append(out, paths+": "+w.text)
	}
	return out
}
