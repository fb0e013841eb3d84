package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// maxBody is the most of a request that is read, and maxText of what a verb prints.
	maxBody = 64 << 10
	maxText = 256 << 10
	// maxActions run beside each other.
	maxActions = 4
	// actionTimeout ends a verb whose API server does not answer.
	actionTimeout = time.Minute
)

// The kinds that have actions, as the page calls them.
const (
	kindTApps   = "tapps"
	kindAppSets = "appsets"
)

// request is what one button of the page asks for.
type request struct {
	Verb      string `json:"verb"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// IDs of instances as ranges, such as 0-3,7.
	IDs string `json:"ids,omitempty"`
	// Revision to go back to; empty: the one before.
	Revision string `json:"revision,omitempty"`
	// Stage that is confirmed.
	Stage string `json:"stage,omitempty"`
}

// answer of /actions/plan and /actions/run.
type answer struct {
	// Command as one would type it.
	Command string `json:"command"`
	// Text is what the verb printed.
	Text string `json:"text"`
}

// verb of the plugin.
type verb struct {
	// kinds that have it.
	kinds []string
	// ids: it is about instances.
	ids bool
}

// verbs are all that the page can do. Nothing is deleted or created by it, but a
// Confirmation.
var verbs = map[string]verb{
	"confirm": {kinds: []string{kindAppSets}},
	"pause":   {kinds: []string{kindTApps, kindAppSets}},
	"resume":  {kinds: []string{kindTApps, kindAppSets}},
	"undo":    {kinds: []string{kindTApps, kindAppSets}},
	"kill":    {kinds: []string{kindTApps}, ids: true},
	"start":   {kinds: []string{kindTApps}, ids: true},
	"restart": {kinds: []string{kindTApps}, ids: true},
}

var (
	idRanges = regexp.MustCompile(`^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$`)
	word     = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
)

// validate refuses what is no action, and every value that could be taken for a flag.
func (q *request) validate() error {
	v, ok := verbs[q.Verb]
	switch {
	case !ok:
		return fmt.Errorf("verb: there is no action %q", q.Verb)
	case !slices.Contains(v.kinds, q.Kind):
		return fmt.Errorf("kind: %q cannot be done with %q", q.Verb, q.Kind)
	case len(validation.IsDNS1123Label(q.Namespace)) > 0:
		return fmt.Errorf("namespace: %q is no name of a namespace", q.Namespace)
	case len(validation.IsDNS1123Subdomain(q.Name)) > 0:
		return fmt.Errorf("name: %q is no name of an object", q.Name)
	case v.ids != (q.IDs != "") || q.IDs != "" && (!idRanges.MatchString(q.IDs) || len(q.IDs) > maxBody):
		return fmt.Errorf("ids: %q are no ids of instances, such as 0-3,7", q.IDs)
	case q.Revision != "" && (q.Verb != "undo" || !word.MatchString(q.Revision)):
		return fmt.Errorf("revision: %q is no revision to %s to", q.Revision, q.Verb)
	case q.Stage != "" && (q.Verb != "confirm" || !word.MatchString(q.Stage)):
		return fmt.Errorf("stage: %q is no stage to %s", q.Stage, q.Verb)
	}
	return nil
}

// args are those of the plugin.
func (q *request) args() []string {
	var out []string
	if q.Kind == kindAppSets {
		out = append(out, "fleet")
	}
	out = append(out, q.Verb, "-n", q.Namespace, q.Name)
	if q.IDs != "" {
		out = append(out, q.IDs)
	}
	if q.Revision != "" {
		out = append(out, "--to-revision", q.Revision)
	}
	if q.Stage != "" {
		out = append(out, "--stage", q.Stage)
	}
	return out
}

// plans are the command lines that tell, one after the other, what the request would do.
func (q *request) plans() [][]string {
	if q.Kind == kindAppSets {
		return [][]string{append(q.args(), "--dry-run=server"), {"fleet", "explain", "-n", q.Namespace, q.Name}}
	}
	return [][]string{append(q.args(), "--plan")}
}

// Verbs runs a command line of the plugin by the connection of the dashboard.
type Verbs func(ctx context.Context, args []string, out io.Writer) error

// actions serves /actions/plan and /actions/run.
type actions struct {
	verbs Verbs
	turns chan struct{}
}

func newActions(v Verbs) *actions { return &actions{verbs: v, turns: make(chan struct{}, maxActions)} }

func (a *actions) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		refuse(w, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "send it by POST")
		return
	}
	if kind := r.Header.Get("Content-Type"); kind != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, "send it as application/json")
		return
	}
	var q request
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&q); err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "reading the request: "+err.Error())
		return
	}
	if err := q.validate(); err != nil {
		refuse(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, err.Error())
		return
	}
	select {
	case a.turns <- struct{}{}:
		defer func() { <-a.turns }()
	default:
		refuse(w, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "other actions are under way; try again when they are done")
		return
	}
	lines := [][]string{q.args()}
	if r.URL.Path == "/actions/plan" {
		lines = q.plans()
	}
	text, err := a.run(r.Context(), lines)
	if err != nil {
		refuse(w, http.StatusConflict, metav1.StatusReasonConflict, err.Error())
		return
	}
	write(w, http.StatusOK, answer{Command: "kubectl tapp " + strings.Join(q.args(), " "), Text: text})
}

func (a *actions) run(ctx context.Context, lines [][]string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, actionTimeout)
	defer cancel()
	out := &bounded{most: maxText}
	for _, args := range lines {
		if err := a.verbs(ctx, args, out); err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				err = fmt.Errorf("the API server did not answer in %s; whether it was done is not known: %w", actionTimeout, err)
			}
			return "", err
		}
	}
	return out.String(), nil
}

// bounded keeps the beginning of what is written to it.
type bounded struct {
	kept bytes.Buffer
	most int
}

func (b *bounded) Write(p []byte) (int, error) {
	_, err := b.kept.Write(p[:min(len(p), b.most-b.kept.Len())])
	return len(p), err
}

func (b *bounded) String() string { return b.kept.String() }

func refuse(w http.ResponseWriter, code int32, reason metav1.StatusReason, message string) {
	write(w, int(code), metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message})
}

func write(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // the browser may be gone
}
