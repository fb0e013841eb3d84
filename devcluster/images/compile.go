package images

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// compile builds one of our programs as a static binary, once for each state of its sources, and returns its path.
func (o Options) compile(ctx context.Context, program string) (string, error) {
	key, err := sourceKey(filepath.Join(o.ModuleDir, program))
	if err != nil {
		return "", err
	}
	dir := filepath.Join(o.CacheDir, "programs")
	binary := filepath.Join(dir, filepath.Base(program)+"-"+key)
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("cache directory: %w", err)
	}
	o.Log("images: compiling " + program)
	// Built beside its place and renamed, so that a build that was cut short never counts as done.
	part := fmt.Sprintf("%s.%d", binary, os.Getpid())
	defer func() { _ = os.Remove(part) }()
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", part, "./"+program)
	build.Dir = o.ModuleDir
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+runtime.GOARCH, "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build ./%s: %w\n%s", program, err, out)
	}
	if err := os.Rename(part, binary); err != nil {
		return "", fmt.Errorf("keep %s: %w", program, err)
	}
	return binary, nil
}

// sourceKey is a hash of a program's sources, of the compiler and of the architecture.
func sourceKey(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("sources: %w", err)
	}
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.Version(), runtime.GOARCH)
	found := false
	for _, e := range entries {
		if e.IsDir() || !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return "", fmt.Errorf("sources: %w", err)
		}
		fmt.Fprintln(sum, e.Name(), len(text))
		sum.Write(text)
		found = true
	}
	if !found {
		return "", errors.New("sources: no Go files in " + dir)
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}
