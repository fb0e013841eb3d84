package architecture

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const root = "../.."

func TestImports(t *testing.T) {
	imports := readImports(t)
	if _, ok := imports[module+"/plan/tapp"]; !ok {
		t.Fatal("the planner was not found")
	}
	for _, wrong := range check(rooms, imports) {
		t.Error(wrong)
	}
}

// TestPlanIsPure: whatever the planners import does not bring in a client or
// metrics either. (Kubernetes' own types import klog, but not a client.)
func TestPlanIsPure(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "./plan/...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for _, dependency := range strings.Fields(string(out)) {
		for _, impure := range []string{"k8s.io/client-go", "k8s.io/component-base", "github.com/prometheus"} {
			if within(impure, dependency) {
				t.Errorf("a planner depends on %s", dependency)
			}
		}
	}
}

// maxLines of a package: one that is larger is two.
const maxLines = 3700

// TestSizes: each package of the product can be read by one person. Generated code and tests do not count.
func TestSizes(t *testing.T) {
	lines := map[string]int{}
	for name := range readImports(t) {
		room := strings.TrimPrefix(strings.TrimPrefix(name, module), "/")
		if first, _, _ := strings.Cut(room, "/"); first == "test" {
			continue
		}
		files, err := filepath.Glob(filepath.Join(root, room, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(filepath.Base(file), "zz_generated") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			lines[room] += strings.Count(string(text), "\n")
		}
	}
	if lines["plan/tapp"] == 0 || lines["api"] == 0 {
		t.Fatalf("the packages were not found: %v", lines)
	}
	for room, n := range lines {
		if n > maxLines {
			t.Errorf("%s has %d lines, and may have %d", room, n, maxLines)
		}
	}
}

// TestModules: the product is built without Kubernetes itself, which only the
// development cluster needs.
func TestModules(t *testing.T) {
	for _, file := range []string{"go.mod", "tools/go.mod"} {
		content, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(content)) {
			if slices.Contains(strings.Fields(line), "k8s.io/kubernetes") {
				t.Errorf("%s requires k8s.io/kubernetes", file)
			}
		}
	}
}

// TestCheck proves that the check finds what it is for.
func TestCheck(t *testing.T) {
	plan := module + "/plan/tapp"
	for importer, test := range map[string]struct {
		imports []string
		wrong   []string
	}{
		plan: {
			[]string{"time", "k8s.io/api/core/v1", module + "/crd/tapp/v1", "k8s.io/klog/v2", "k8s.io/client-go/rest", "k8s.io/apiserver", module + "/crd/client"},
			[]string{"k8s.io/apiserver", "k8s.io/client-go/rest", "k8s.io/klog/v2", module + "/crd/client"},
		},
		module + "/controller/tapp":         {[]string{plan, module + "/controller"}, []string{module + "/controller"}},
		module + "/controller/loop":         {[]string{"k8s.io/client-go/util/workqueue", plan}, []string{plan}},
		module + "/crd/client":              {[]string{module + "/test/gen"}, []string{module + "/test/gen"}},
		module + "/webhook":                 {[]string{module + "/certs", module + "/webhook/tapp", module + "/controller/tapp"}, []string{module + "/controller/tapp"}},
		module + "/webhook/rule":            {[]string{"k8s.io/apimachinery/pkg/util/validation/field", module + "/crd/tapp/v1"}, []string{module + "/crd/tapp/v1"}},
		module + "/webhook/app":             {[]string{module + "/webhook/rule", module + "/webhook/tapp"}, []string{module + "/webhook/tapp"}},
		module + "/certs":                   {[]string{"crypto/tls", "github.com/cert-manager/cert-manager/pkg/server/tls", "github.com/gorilla/mux"}, []string{"github.com/gorilla/mux"}},
		module:                              {[]string{"os", "github.com/urfave/cli/v2", module + "/controller", plan}, []string{plan}},
		"tkestack.io/tapp-other/controller": {nil, []string{""}},
		module + "/util":                    {nil, []string{""}},
	} {
		var want []string
		for _, path := range test.wrong {
			if path == "" {
				want = append(want, importer+" is in no room")
			} else {
				want = append(want, importer+" imports "+path+": ")
			}
		}
		got := check(rooms, map[string][]string{importer: test.imports})
		if !slices.EqualFunc(got, want, strings.HasPrefix) {
			t.Errorf("found %q, want %q", got, want)
		}
	}
}

// TestRoomsAreDifferent finds rows of the table that name a package twice.
func TestRoomsAreDifferent(t *testing.T) {
	names := map[string]bool{}
	for _, r := range rooms {
		if names[r.name] {
			t.Errorf("%s has two rows", r.name)
		}
		names[r.name] = true
	}
}

// readImports reads the source itself rather than asking the go command: so the
// result of this test is cached for as long as no source file has changed.
func readImports(t *testing.T) map[string][]string {
	t.Helper()
	sets := map[string]map[string]bool{}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return skip(file, entry)
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		below, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		importer := path.Join(module, filepath.ToSlash(below))
		if sets[importer] == nil {
			sets[importer] = map[string]bool{}
		}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			sets[importer][imported] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	imports := map[string][]string{}
	for importer, set := range sets {
		imports[importer] = slices.Sorted(maps.Keys(set))
	}
	return imports
}

// skip leaves out what is not of this module: other modules, and what go ignores.
func skip(dir string, entry fs.DirEntry) error {
	if dir == root {
		return nil
	}
	if name := entry.Name(); name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
		return fs.SkipDir
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}
