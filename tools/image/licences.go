package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// licencesFile is where the image has the licences of what is linked into the program.
const licencesFile = "licences.txt"

// isLicence says whether a file in a module's root is one that its licence has one pass on.
var isLicence = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)

// readLicences of all modules whose packages are linked for these platforms, of Go's library, and of TApp itself. A
// module without one is an error: it could not be passed on.
func (o options) readLicences(ctx context.Context, platforms []v1.Platform) ([]byte, error) {
	dirs := map[string]string{}
	for _, p := range platforms {
		list := exec.CommandContext(ctx, "go", "list", "-deps", "-f", `{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{"\t"}}{{.Dir}}{{end}}{{end}}`, ".")
		list.Dir = o.source
		list.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.OS, "GOARCH="+p.Architecture, "GOWORK=off", "GOFLAGS=")
		list.Stderr = os.Stderr
		out, err := list.Output()
		if err != nil {
			return nil, fmt.Errorf("what is linked for %s: %w", p, errors.Join(err, ctx.Err()))
		}
		for line := range strings.Lines(string(out)) {
			if module, dir, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
				dirs[module] = dir
			}
		}
	}
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("where Go is: %w", err)
	}
	dirs["Go's standard library"] = strings.TrimSpace(string(root))
	var out bytes.Buffer
	if err := addLicences(&out, "TApp", o.source); err != nil {
		return nil, err
	}
	modules := make([]string, 0, len(dirs))
	for module := range dirs {
		modules = append(modules, module)
	}
	slices.Sort(modules)
	for _, module := range modules {
		if err := addLicences(&out, module, dirs[module]); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

func addLicences(out *bytes.Buffer, of, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("licence of %s: %w", of, err)
	}
	found := false
	for _, entry := range entries {
		if !isLicence.MatchString(entry.Name()) || entry.IsDir() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return fmt.Errorf("licence of %s: %w", of, err)
		}
		found = true
		fmt.Fprintf(out, "==== %s: %s ====\n\n%s\n\n", of, entry.Name(), bytes.TrimSpace(text))
	}
	if !found {
		return fmt.Errorf("%s has no file with a licence in %s", of, dir)
	}
	return nil
}
