// Package images makes the container images of the cluster in memory, without Docker, and pushes them to its registry.
//
// Vocabulary: a reference is what a pod's spec says ("nginx:1.7.9"); a repository is where the registry keeps it
// ("library/nginx"). The nodes' containerds ask the one registry for every registry name, so the host part of a reference
// only has to be dropped. A program is a static binary, the only file of an image's only layer; versions of an image differ
// in the environment of its config. Equal content has equal digests, always: no clock goes in.
//
//	reference                          behaves
//	nginx:1.7.7 ... nginx:latest       the demo server as root on port 80, as the tutorial's manifests expect
//	tomcat:latest                      the demo server as root on port 8080
//	demo:v1 v2 v3                      the demo server as user 65532 on port 8080
//	demo:v1-same                       the very image of demo:v1, by another tag
//	demo:crash                         exits 1 soon after its start
//	demo:done                          exits 0 soon after its start
//	demo:unready                       runs, /readyz never succeeds
//	demo:slow                          /readyz succeeds after 5 s
package images

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// References that the cluster itself uses.
const (
	Pause       = "registry.k8s.io/pause:3.10"
	CoreDNS     = "registry.k8s.io/coredns/coredns:v1.15.0"
	CertManager = "quay.io/jetstack/cert-manager-controller:v1.20.3"
	// MetricsServer is the source of what HorizontalPodAutoscalers look at.
	MetricsServer = "registry.k8s.io/metrics-server/metrics-server:v0.9.0"
)

// References of the demo server.
const (
	DemoV1      = "demo:v1"
	DemoV2      = "demo:v2"
	DemoV3      = "demo:v3"
	DemoV1Same  = "demo:v1-same"
	DemoCrash   = "demo:crash"
	DemoDone    = "demo:done"
	DemoUnready = "demo:unready"
	DemoSlow    = "demo:slow"
	Nginx177    = "nginx:1.7.7"
	Nginx178    = "nginx:1.7.8"
	Nginx179    = "nginx:1.7.9"
	Nginx181    = "nginx:1.8.1"
	Nginx183    = "nginx:1.8.3"
	Nginx125    = "nginx:1.25"
	Nginx127    = "nginx:1.27"
	NginxLatest = "nginx:latest"
	Tomcat      = "tomcat:latest"
)

// DemoPort is where the demo images listen; the nginx ones listen on 80.
const DemoPort = 8080

// Options says where images come from and go to.
type Options struct {
	Registry  string            // host:port, plain HTTP
	Transport http.RoundTripper // how the registry is reached; nil: at its address
	CacheDir  string            // keeps the compiled programs
	ModuleDir string            // the devcluster module, whose demo and pause programs are compiled
	Addons    string            // the static program that is coredns, certmanager and metrics-server; empty: no images of these
	Log       func(string)      // one line for each slow or lasting step; may be nil
}

func (o Options) validate() error {
	var errs []error
	for what, value := range map[string]string{"Registry": o.Registry, "CacheDir": o.CacheDir, "ModuleDir": o.ModuleDir} {
		if value == "" {
			errs = append(errs, fmt.Errorf("images: Options.%s is empty", what))
		}
	}
	return errors.Join(errs...)
}

// References lists what Push makes; those of the addons are among them only if there is a binary for them.
func References(withAddons bool) []string {
	addons := ""
	if withAddons {
		addons = "-"
	}
	var all []string
	for _, r := range recipes(addons) {
		all = append(all, r.reference)
	}
	return all
}

// Push makes all images and pushes those that the registry lacks.
func Push(ctx context.Context, o Options) error {
	if err := o.validate(); err != nil {
		return err
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	programs := map[string]*layer{}
	pushed := 0
	for _, r := range recipes(o.Addons) {
		if programs[r.program] == nil {
			l, err := o.layer(ctx, r.program)
			if err != nil {
				return fmt.Errorf("image %s: %w", r.reference, err)
			}
			programs[r.program] = l
		}
		image, err := r.image(programs[r.program])
		if err != nil {
			return fmt.Errorf("image %s: %w", r.reference, err)
		}
		fresh, err := o.push(ctx, r.reference, image)
		if err != nil {
			return fmt.Errorf("push %s to %s: %w", r.reference, o.Registry, err)
		}
		if fresh {
			pushed++
		}
	}
	o.Log(fmt.Sprintf("images: %d pushed", pushed))
	return nil
}

// layer holds the program that is meant: one of ours, by the name of its directory, or else a binary's path.
func (o Options) layer(ctx context.Context, program string) (*layer, error) {
	switch program {
	case demo, pause:
		binary, err := o.compile(ctx, program)
		if err != nil {
			return nil, err
		}
		return newLayer(binary, "bin/"+filepath.Base(program))
	}
	return newLayer(program, "addons")
}

// push tells whether the registry lacked the image.
func (o Options) push(ctx context.Context, reference string, image v1.Image) (bool, error) {
	tag, err := name.NewTag(o.Registry+"/"+repository(reference), name.Insecure)
	if err != nil {
		return false, fmt.Errorf("reference: %w", err)
	}
	digest, err := image.Digest()
	if err != nil {
		return false, fmt.Errorf("digest: %w", err)
	}
	options := []remote.Option{remote.WithContext(ctx)}
	if o.Transport != nil {
		options = append(options, remote.WithTransport(o.Transport))
	}
	// Whatever goes wrong with this question goes wrong with the push again, which then tells why.
	if have, err := remote.Head(tag, options...); err == nil && have.Digest == digest {
		return false, nil
	}
	if err := remote.Write(tag, image, options...); err != nil {
		return false, fmt.Errorf("write: %w", err)
	}
	return true, nil
}

// repository is the reference (repository and tag) without its registry, as Docker's rules read it.
func repository(reference string) string {
	host, rest, found := strings.Cut(reference, "/")
	switch {
	case !found:
		return "library/" + reference
	case strings.ContainsAny(host, ".:") || host == "localhost":
		return rest
	}
	return reference
}

func (r recipe) entrypoint(l *layer) []string {
	if r.call == "" {
		return []string{"/" + l.name}
	}
	return []string{"/" + l.name, r.call}
}

func (r recipe) image(l *layer) (v1.Image, error) {
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.Append(base, mutate.Addendum{Layer: l, MediaType: types.OCIUncompressedLayer})
	if err != nil {
		return nil, fmt.Errorf("add the layer: %w", err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH // a runtime refuses images that do not say so
	config.Config = v1.Config{
		Entrypoint: r.entrypoint(l),
		Env:        append([]string{"PATH=/bin:/"}, r.env...),
		User:       r.user,
		WorkingDir: "/",
	}
	image, err = mutate.ConfigFile(image, config)
	if err != nil {
		return nil, fmt.Errorf("set the config: %w", err)
	}
	return image, nil
}
