// Package build compiles Kubernetes and its companions from Go modules, once for each set of versions, into a cache that
// all checkouts on the machine share.
package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"tkestack.io/tapp/devcluster/state"
)

// CacheEnv overrides where the cache is.
const CacheEnv = "TAPP_DEVCLUSTER_CACHE"

// keep is how many sets of programs stay in the cache.
const keep = 3

// bundles are the programs to compile, and the names by which they are called.
var bundles = []struct {
	name  string
	calls []string
}{
	{"kube", []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet", "kubectl"}},
	{"addons", []string{"helm", "kwok", "coredns", "certmanager", "crane", "storage"}},
}

// Builder compiles the programs of one source module.
type Builder struct {
	Module string // directory of the module devcluster
	// Kubernetes is the minor version of the control plane and of kubectl, such as 1.34,
	// one that the module has a go.mod for; empty: the one of the module itself.
	Kubernetes string
	Cache      string
	Line       func(format string, args ...any) // one line for the user
	Update     func(format string, args ...any) // the state of a long step
	version    string                           // of the Go compiler
}

// CacheDir is the directory that all checkouts share.
func CacheDir() (string, error) {
	if dir := os.Getenv(CacheEnv); dir != "" {
		return filepath.Abs(dir)
	}
	base, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the cache (or set %s): %w", CacheEnv, err)
	}
	return filepath.Join(base, ".cache", "tapp-devcluster"), nil
}

// Programs are directories with all programs of one version.
type Programs struct {
	// Dir has all of them.
	Dir string
	// kubernetes is the file that is the control plane of another version; empty: Dir has it.
	kubernetes string
}

// Link makes bin hold every program under its name.
func (p Programs) Link(bin string) error {
	targets := map[string]string{}
	for _, b := range bundles {
		for _, call := range b.calls {
			targets[call] = filepath.Join(p.Dir, b.name)
		}
	}
	if p.kubernetes != "" {
		for _, call := range versioned {
			targets[call] = p.kubernetes
		}
	}
	for call, target := range targets {
		if err := link(target, filepath.Join(bin, call)); err != nil {
			return fmt.Errorf("link program: %w", err)
		}
	}
	return nil
}

// Addons is the file that is the program coredns or certmanager, when its first argument says so.
func (p Programs) Addons() string { return filepath.Join(p.Dir, "addons") }

// CertManagerCRDs is a directory with the CustomResourceDefinitions of cert-manager.
func (p Programs) CertManagerCRDs() string { return filepath.Join(p.Dir, "cert-manager-crds") }

func link(target, path string) error {
	if old, err := os.Readlink(path); err == nil && old == target {
		return nil
	}
	temporary := path + ".new"
	return errors.Join(os.RemoveAll(temporary), os.Symlink(target, temporary), os.Rename(temporary, path))
}

// Ensure returns the programs, compiling them if nobody has.
func (b *Builder) Ensure(ctx context.Context) (Programs, error) {
	key, err := b.key(ctx)
	if err != nil {
		return Programs{}, err
	}
	p := Programs{Dir: filepath.Join(b.Cache, "programs", key)}
	if err := b.ensure(ctx, p.Dir, b.compile); err != nil || b.Kubernetes == "" {
		return p, err
	}
	key, err = b.versionKey()
	if err != nil {
		return p, err
	}
	dir := filepath.Join(b.Cache, "kubernetes", key)
	p.kubernetes = filepath.Join(dir, "kubernetes")
	return p, b.ensure(ctx, dir, b.compileVersion)
}

// ensure compiles into dir if nobody has.
func (b *Builder) ensure(ctx context.Context, dir string, compile func(ctx context.Context, dir string) error) error {
	if complete(dir) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o750); err != nil {
		return fmt.Errorf("create the cache: %w", err)
	}
	unlock, err := state.LockFile(ctx, filepath.Join(b.Cache, "build.lock"), func() {
		b.Line("Another build is running; waiting for it.")
	})
	if err != nil {
		return err
	}
	defer unlock()
	if complete(dir) {
		return nil
	}
	if err := compile(ctx, dir); err != nil {
		return err
	}
	return b.prune(dir)
}

// complete tells whether dir is there (it appears as a whole), and notes that it is in use.
func complete(dir string) bool {
	if _, err := os.Stat(dir); err != nil {
		return false
	}
	now := time.Now()
	_ = os.Chtimes(dir, now, now) // only for prune; another user's cache may be read-only
	return true
}

// key depends on everything that goes into the programs.
func (b *Builder) key(ctx context.Context) (string, error) {
	var err error
	if b.version, err = b.golang(ctx, "env", "GOVERSION"); err != nil {
		return "", err
	}
	return cacheKey(os.DirFS(b.Module), b.version, runtime.GOOS, runtime.GOARCH, strings.Join(fixedFlags, " "))
}

func cacheKey(module fs.FS, environment ...string) (string, error) {
	files := []string{"go.mod", "go.sum"}
	err := fs.WalkDir(module, "programs", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && strings.HasSuffix(path, ".go") {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read the programs' source: %w", err)
	}
	return filesKey(module, files, environment)
}

// filesKey depends on what is in the files of a module, and on the environment.
func filesKey(module fs.FS, files, environment []string) (string, error) {
	hash := sha256.New() // writing to it never fails
	for _, e := range environment {
		_, _ = fmt.Fprintf(hash, "%s\n", e)
	}
	for _, path := range files {
		f, err := module.Open(path)
		if err != nil {
			return "", fmt.Errorf("read the programs' source: %w", err)
		}
		_, _ = fmt.Fprintf(hash, "%s\n", path)
		_, err = io.Copy(hash, f)
		if err = errors.Join(err, f.Close()); err != nil {
			return "", fmt.Errorf("read the programs' source: %w", err)
		}
	}
	return hex.EncodeToString(hash.Sum(nil)[:8]), nil
}

// prune removes all but the sets of programs used last. Running programs survive this.
func (b *Builder) prune(current string) error {
	entries, err := os.ReadDir(filepath.Dir(current))
	if err != nil {
		return fmt.Errorf("prune the cache: %w", err)
	}
	used := map[string]time.Time{}
	var paths []string
	for _, e := range entries {
		info, err := e.Info()
		path := filepath.Join(filepath.Dir(current), e.Name())
		if err != nil || path == current {
			continue
		}
		used[path] = info.ModTime()
		paths = append(paths, path)
	}
	slices.SortFunc(paths, func(a, b string) int { return used[b].Compare(used[a]) })
	for _, path := range paths[min(len(paths), keep-1):] {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("prune the cache: %w", err)
		}
	}
	return nil
}
