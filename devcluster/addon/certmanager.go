package addon

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"text/template"
	"time"

	"golang.org/x/sync/errgroup"

	"tkestack.io/tapp/devcluster/images"
	"tkestack.io/tapp/devcluster/node"
	"tkestack.io/tapp/devcluster/pki"
	"tkestack.io/tapp/devcluster/poll"
	"tkestack.io/tapp/devcluster/process"
	"tkestack.io/tapp/devcluster/slot"
)

//go:embed cert-manager.yaml
var certManager string

// EnsureCertManager makes the cluster have cert-manager, and waits until it works: as a pod, or without real nodes as a
// process on the machine. crds is a directory with its CustomResourceDefinitions.
func (a Addons) EnsureCertManager(ctx context.Context, crds string, pod bool) error {
	if err := a.applyCRDs(ctx, crds); err != nil {
		return fmt.Errorf("apply cert-manager: %w", err)
	}
	manifest, err := template.New("cert-manager.yaml").Parse(certManager)
	if err != nil {
		return fmt.Errorf("manifest of cert-manager: %w", err)
	}
	var text bytes.Buffer
	if err := manifest.Execute(&text, map[string]any{"Image": images.CertManager, "Label": node.Label}); err != nil {
		return fmt.Errorf("manifest of cert-manager: %w", err)
	}
	stream := text.Bytes()
	if !pod {
		stream, _, _ = bytes.Cut(stream, []byte("\n---\n")) // only the namespace
	}
	if err := a.apply(ctx, "cert-manager", stream); err != nil {
		return fmt.Errorf("apply cert-manager: %w", err)
	}
	if !pod {
		return a.StartCertManager(ctx)
	}
	return a.waitDeployment(ctx, "cert-manager", "cert-manager", "cert-manager")
}

func (a Addons) applyCRDs(ctx context.Context, dir string) error {
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(paths) == 0 {
		return errors.Join(fmt.Errorf("no CustomResourceDefinitions in %s", dir), err)
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, path := range paths {
		group.Go(func() error {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return a.apply(ctx, "", text)
		})
	}
	return group.Wait()
}

// StartCertManager starts cert-manager as a process and waits until its caches are filled.
func (a Addons) StartCertManager(ctx context.Context) error {
	address := "127.0.0.1:" + strconv.Itoa(a.Slot.Port(slot.CertManager))
	_, err := a.Processes.Ensure(ctx, process.Spec{
		Name: CertManager, Path: filepath.Join(a.Dir.Bin(), "certmanager"),
		Args: []string{"--kubeconfig=" + a.PKI.Kubeconfig(pki.CertManager), "--health=" + address},
	})
	if err != nil {
		return err
	}
	return a.waitHTTP(ctx, CertManager, "http://"+address+"/readyz", time.Minute)
}

// waitHTTP waits until the process answers 200 at the URL.
func (a Addons) waitHTTP(ctx context.Context, name, url string, timeout time.Duration) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	return poll.Until(ctx, name, timeout, 20*time.Millisecond, func(ctx context.Context) error {
		if err := a.Processes.Died(name); err != nil {
			return poll.Stop(err)
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return poll.Stop(err)
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		if response.StatusCode != http.StatusOK {
			err = fmt.Errorf("it answers %s", response.Status)
		}
		return errors.Join(err, response.Body.Close())
	})
}
