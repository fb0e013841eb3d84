package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"tkestack.io/tapp/devcluster/state"
)

// fixedFlags: the tag is on the programs' files so that `go vet ./...` and the like do not compile Kubernetes by accident.
var fixedFlags = []string{"-tags=programs", "-trimpath", "-buildvcs=false"}

// environment of every call of go. Without cgo the programs need no C compiler, and run in empty images.
func environment() []string { return append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off") }

// golang calls go in the module and returns what it prints.
func (b *Builder) golang(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = b.Module, environment()
	var problem bytes.Buffer
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, problem.String())
	}
	return strings.TrimSpace(string(out)), nil
}

// compile builds all bundles into a directory of its own and moves that to dir at the end.
func (b *Builder) compile(ctx context.Context, dir string) error {
	linkFlags, err := b.linkFlags()
	if err != nil {
		return err
	}
	b.Line("Building Kubernetes and its companions from Go modules. The first time this takes 6 to 10 minutes on 2 cores,\n" +
		"4 GB of memory and 8 GB of disk; what is built is kept in " + b.Cache + ".")
	b.Update("downloading modules")
	packages, err := b.packages(ctx)
	if err != nil {
		return err
	}
	return b.fill(dir, func(temporary string) error {
		count := &counter{total: len(packages), update: b.Update, seen: map[string]bool{}}
		defer count.start()()
		// One after the other: linking two of these at once would take 5 GB of memory.
		for _, bundle := range bundles {
			args := append([]string{"build", "-v", "-ldflags", linkFlags, "-o", filepath.Join(temporary, bundle.name)}, fixedFlags...)
			if err := b.run(ctx, append(args, "./programs/"+bundle.name), count); err != nil {
				return err
			}
		}
		return b.copyCRDs(ctx, Programs{Dir: temporary}.CertManagerCRDs())
	})
}

// fill makes dir appear as a whole, when all of it is made.
func (b *Builder) fill(dir string, put func(temporary string) error) error {
	temporary, err := os.MkdirTemp(filepath.Dir(dir), "building-*")
	if err != nil {
		return fmt.Errorf("build: %w", err)
	}
	defer func() { _ = os.RemoveAll(temporary) }() // gone, if all went well
	if err := put(temporary); err != nil {
		return err
	}
	if err := os.Rename(temporary, dir); err != nil {
		return fmt.Errorf("build: %w", err)
	}
	return nil
}

// copyCRDs keeps the manifests that belong to cert-manager's program beside it: they are in the source of its module, which
// need not be there any more when a cluster starts.
func (b *Builder) copyCRDs(ctx context.Context, to string) error {
	module, err := b.golang(ctx, "list", "-m", "-f", "{{.Dir}}", "github.com/cert-manager/cert-manager")
	if err != nil {
		return err
	}
	from, err := filepath.Glob(filepath.Join(module, "deploy", "crds", "cert-manager.io_*.yaml"))
	if err != nil || len(from) == 0 {
		return errors.Join(fmt.Errorf("build: no CustomResourceDefinitions of cert-manager in %s", module), err)
	}
	for _, path := range from {
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("build: %w", err)
		}
		if err := state.WriteFile(filepath.Join(to, filepath.Base(path)), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// packages downloads the modules that are needed and lists all packages of all bundles.
func (b *Builder) packages(ctx context.Context) ([]string, error) {
	args := []string{"list", "-deps", "-tags=programs"}
	for _, bundle := range bundles {
		args = append(args, "./programs/"+bundle.name)
	}
	out, err := b.golang(ctx, args...)
	if err != nil {
		return nil, err
	}
	return strings.Fields(out), nil
}

// run builds one bundle, counting the packages that go names as it comes to them.
func (b *Builder) run(ctx context.Context, args []string, count *counter) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = b.Module, environment()
	// The compilers that go starts must end with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	reader, writer := io.Pipe()
	cmd.Stderr = writer
	output := make(chan string, 1)
	go func() { output <- count.read(reader) }()
	err := cmd.Run()
	_ = writer.Close() // never fails
	problem := <-output
	if ctx.Err() != nil {
		return fmt.Errorf("build: %w", ctx.Err())
	}
	if err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, problem)
	}
	return nil
}

// linkFlags strip the programs, which makes them a third smaller and faster to link, and tell them their versions, which `go build` of a dependency cannot.
func (b *Builder) linkFlags() (string, error) {
	data, err := os.ReadFile(filepath.Join(b.Module, "go.mod"))
	if err != nil {
		return "", fmt.Errorf("read versions: %w", err)
	}
	required := versions(string(data))
	helm := required["helm.sh/helm/v4"]
	kubernetes, err := kubernetesFlags(required["k8s.io/kubernetes"])
	if err != nil {
		return "", err
	}
	if helm == "" {
		return "", errors.New("read versions: go.mod requires no Helm")
	}
	return kubernetes + " -X helm.sh/helm/v4/internal/version.version=" + helm, nil
}

// kubernetesFlags are those of all programs of a version of Kubernetes.
func kubernetesFlags(kubernetes string) (string, error) {
	parts := strings.Split(strings.TrimPrefix(kubernetes, "v"), ".")
	if len(parts) != 3 {
		return "", fmt.Errorf("read versions: go.mod requires Kubernetes %q", kubernetes)
	}
	flags := []string{"-s", "-w"}
	for _, v := range []string{"gitVersion=" + kubernetes, "gitMajor=" + parts[0], "gitMinor=" + parts[1], "gitTreeState=clean"} {
		flags = append(flags, "-X k8s.io/component-base/version."+v, "-X k8s.io/client-go/pkg/version."+v)
	}
	return strings.Join(flags, " "), nil
}

// versions reads the required modules of a go.mod.
func versions(gomod string) map[string]string {
	found := map[string]string{}
	for line := range strings.Lines(gomod) {
		fields := strings.Fields(strings.TrimPrefix(line, "require "))
		if len(fields) >= 2 && strings.HasPrefix(fields[1], "v") {
			found[fields[0]] = fields[1]
		}
	}
	return found
}
