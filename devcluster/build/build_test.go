package build

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

func TestCacheKey(t *testing.T) {
	source := func(change ...string) fstest.MapFS {
		m := fstest.MapFS{}
		for _, path := range append([]string{"go.mod", "go.sum", "programs/kube/main.go", "programs/addons/main.go"}, change...) {
			m[path] = &fstest.MapFile{Data: []byte("x")}
		}
		return m
	}
	key := func(m fstest.MapFS, env ...string) string {
		t.Helper()
		k, err := cacheKey(m, env...)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	base := key(source(), "go1.26")
	if key(source(), "go1.26") != base {
		t.Error("equal sources must have equal keys")
	}
	if key(source("README.md", "programs/kube/notes.txt", "build/cache.go"), "go1.26") != base {
		t.Error("files that do not go into the programs must not matter")
	}
	changed := source()
	changed["go.sum"].Data = []byte("y")
	for name, other := range map[string]string{
		"go version": key(source(), "go1.27"),
		"new source": key(source("programs/kube/new.go"), "go1.26"),
		"go.sum":     key(changed, "go1.26"),
	} {
		if other == base {
			t.Errorf("%s must matter", name)
		}
	}
	if _, err := cacheKey(fstest.MapFS{}); err == nil {
		t.Error("no source, no error")
	}
}

// TestOtherVersions: each has its files, says which version it is, and what goes into its
// programs makes its key.
func TestOtherVersions(t *testing.T) {
	module := os.DirFS("..")
	all, err := otherVersions(module)
	if err != nil || len(all) < 2 {
		t.Fatalf("there are %v: %v", all, err)
	}
	keys := map[string]bool{}
	for _, v := range all {
		data, err := os.ReadFile(filepath.Join("..", versionsDir, v+".mod"))
		if err != nil {
			t.Fatal(err)
		}
		required := versions(string(data))
		flags, err := kubernetesFlags(required["k8s.io/kubernetes"])
		if err != nil || !strings.Contains(flags, "component-base/version.gitVersion=v"+v+".") {
			t.Errorf("%s: flags %q: %v", v, flags, err)
		}
		if api := required["k8s.io/api"]; api != strings.Replace(required["k8s.io/kubernetes"], "v1.", "v0.", 1) {
			t.Errorf("%s: it goes with k8s.io/api %s", v, api)
		}
		key, err := (&Builder{Module: "..", Kubernetes: v}).versionKey()
		if err != nil || keys[key] {
			t.Errorf("%s: key %q: %v", v, key, err)
		}
		keys[key] = true
	}
	_, err = (&Builder{Module: "..", Kubernetes: "1.7"}).versionKey()
	if want := `unknown version of Kubernetes "1.7"; there are: ` + strings.Join(all, ", "); err == nil || err.Error() != want {
		t.Errorf("an unknown version: %v, want %s", err, want)
	}
}

func TestVersionsOfThisModule(t *testing.T) {
	b := &Builder{Module: ".."}
	flags, err := b.linkFlags()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"component-base/version.gitVersion=v1.", "internal/version.version=v4."} {
		if !strings.Contains(flags, want) {
			t.Errorf("no %s in %s", want, flags)
		}
	}
}

func TestPruneKeepsTheNewest(t *testing.T) {
	cache := t.TempDir()
	for i, name := range []string{"current", "old", "older", "oldest", "building-left"} {
		dir := filepath.Join(cache, "programs", name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		when := time.Now().Add(-time.Duration(i) * time.Hour)
		if name == "current" {
			when = time.Now().Add(-24 * time.Hour)
		}
		if err := os.Chtimes(dir, when, when); err != nil {
			t.Fatal(err)
		}
	}
	if err := (&Builder{Cache: cache}).prune(filepath.Join(cache, "programs", "current")); err != nil {
		t.Fatal(err)
	}
	left, _ := filepath.Glob(filepath.Join(cache, "programs", "*"))
	if got := len(left); got != keep {
		t.Errorf("%d left: %v", got, left)
	}
	for _, name := range []string{"current", "old", "older"} {
		if _, err := os.Stat(filepath.Join(cache, "programs", name)); err != nil {
			t.Error(err)
		}
	}
}

func TestCounterTellsErrorsFromPackages(t *testing.T) {
	c := &counter{seen: map[string]bool{}}
	rest := c.read(strings.NewReader("go: downloading x v1\nk8s.io/api/core/v1\nruntime\n# k8s.io/x\nx/y.go:3:4: undefined: z\n"))
	if len(c.seen) != 2 || !strings.Contains(rest, "undefined: z") || strings.Contains(rest, "runtime") {
		t.Errorf("seen %v, rest %q", c.seen, rest)
	}
}
