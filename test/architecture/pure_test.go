package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestPlanMentionsNoWorld: no package of plan/ imports anything that could do I/O, or
// even mentions the clock. What a plan depends on is in its input.
func TestPlanMentionsNoWorld(t *testing.T) {
	allowed := []string{
		"tkestack.io/tapp/crd/tapp/v1",
		"tkestack.io/tapp/crd/app/v1",
		"tkestack.io/tapp/crd/workload/v1beta1",
		"tkestack.io/tapp/plan/",
		"k8s.io/api/",
		"k8s.io/apimachinery/",
		"github.com/distribution/reference",
		"github.com/fluxcd/cli-utils/pkg/kstatus/status",
	}
	// What reads kubeconfigs and ClusterProfiles from text; it is allowed nowhere else.
	judges := []string{"k8s.io/client-go/rest", "k8s.io/client-go/tools/clientcmd", "k8s.io/client-go/tools/clientcmd/api", "k8s.io/client-go/tools/clientcmd/api/v1", "k8s.io/client-go/tools/clientcmd/api/latest"}
	// Of the standard library these would let the world in.
	forbidden := []string{"os", "os/exec", "net", "net/http", "io/fs", "io/ioutil", "log", "log/slog", "syscall", "runtime", "unsafe", "math/rand", "math/rand/v2", "crypto/rand", "context"}
	clock := []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

	files, err := filepath.Glob(filepath.Join(root, "plan", "*", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	pure, err := filepath.Glob(filepath.Join(root, "fleet", "[hk]*", "*.go")) // health and kubeconfig
	if err != nil || len(pure) == 0 {
		t.Fatal(pure, err)
	}
	files = append(files, pure...)
	checked := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		checked++
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			first, _, _ := strings.Cut(path, "/")
			standard := !strings.Contains(first, ".")
			if slices.Contains(judges, path) && filepath.Base(filepath.Dir(name)) == "kubeconfig" {
				continue
			}
			switch {
			case standard && slices.Contains(forbidden, path):
				t.Errorf("%s imports %s: the planner does no I/O and keeps no state", name, path)
			case !standard && !slices.ContainsFunc(allowed, func(a string) bool { return path == a || strings.HasSuffix(a, "/") && strings.HasPrefix(path, a) }):
				t.Errorf("%s imports %s, which is not among %v", name, path, allowed)
			case spec.Name != nil && (spec.Name.Name == "." || path == "time"):
				t.Errorf("%s imports %s as %s: that hides what is used of it", name, path, spec.Name.Name)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok && (x.Name == "time" && slices.Contains(clock, sel.Sel.Name) || x.Name == "metav1" && sel.Sel.Name == "Now") {
					t.Errorf("%s mentions %s.%s: the time is an input", name, x.Name, sel.Sel.Name)
				}
			}
			return true
		})
	}
	if _, err := os.Stat(filepath.Join(root, "plan", "tapp", "compute.go")); err != nil || checked < 40 {
		t.Errorf("%d files checked: %v", checked, err)
	}
}
