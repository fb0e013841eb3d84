package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// versioned are the programs that other versions of Kubernetes have: those of clusters with
// simulated nodes.
var versioned = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"}

// versionsDir has the source of versioned, and a go.mod with its go.sum for each version.
const versionsDir = "kubernetes"

// otherVersions are the minor versions of Kubernetes that a module has a go.mod for, the oldest
// first, but its own.
func otherVersions(module fs.FS) ([]string, error) {
	paths, err := fs.Glob(module, versionsDir+"/*.mod")
	if err != nil {
		return nil, fmt.Errorf("read the versions of Kubernetes: %w", err)
	}
	var out []string
	for _, p := range paths {
		out = append(out, strings.TrimSuffix(path.Base(p), ".mod"))
	}
	slices.SortFunc(out, func(a, b string) int { return minor(a) - minor(b) })
	return out, nil
}

// minor is the number after the first dot.
func minor(version string) (n int) {
	_, _ = fmt.Sscanf(version, "1.%d", &n)
	return n
}

// versionKey depends on all that goes into the programs of the other version.
func (b *Builder) versionKey() (string, error) {
	module := os.DirFS(b.Module)
	all, err := otherVersions(module)
	if err != nil {
		return "", err
	}
	if !slices.Contains(all, b.Kubernetes) {
		return "", fmt.Errorf("unknown version of Kubernetes %q; there are: %s", b.Kubernetes, strings.Join(all, ", "))
	}
	files := []string{versionsDir + "/main.go", versionsDir + "/" + b.Kubernetes + ".mod", versionsDir + "/" + b.Kubernetes + ".sum"}
	return filesKey(module, files, []string{b.version, runtime.GOOS, runtime.GOARCH, strings.Join(fixedFlags, " ")})
}

// compileVersion builds the programs of the other version of Kubernetes.
func (b *Builder) compileVersion(ctx context.Context, dir string) error {
	file := filepath.Join(versionsDir, b.Kubernetes+".mod")
	data, err := os.ReadFile(filepath.Join(b.Module, file))
	if err != nil {
		return fmt.Errorf("read versions: %w", err)
	}
	version := versions(string(data))["k8s.io/kubernetes"]
	linkFlags, err := kubernetesFlags(version)
	if err != nil {
		return err
	}
	b.Line("Building Kubernetes %s from Go modules, once: 4 to 8 minutes on 2 cores.", version)
	b.Update("downloading modules")
	out, err := b.golang(ctx, "list", "-deps", "-tags=programs", "-modfile="+file, "./"+versionsDir)
	if err != nil {
		return errors.Join(err, fmt.Errorf("the modules of Kubernetes %s cannot be had", version))
	}
	return b.fill(dir, func(temporary string) error {
		count := &counter{total: len(strings.Fields(out)), update: b.Update, seen: map[string]bool{}}
		defer count.start()()
		args := append([]string{"build", "-v", "-modfile=" + file, "-ldflags", linkFlags, "-o", filepath.Join(temporary, versionsDir)}, fixedFlags...)
		return b.run(ctx, append(args, "./"+versionsDir), count)
	})
}
