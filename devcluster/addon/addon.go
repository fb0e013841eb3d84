// Package addon is what a cluster has beside the control plane and nodes: the image registry, CoreDNS, KWOK with its
// simulated nodes, storage, and if wanted cert-manager and metrics-server.
package addon

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"text/template"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/yaml"

	"tkestack.io/tapp/devcluster/images"
	"tkestack.io/tapp/devcluster/kubeapi"
	"tkestack.io/tapp/devcluster/kwok"
	"tkestack.io/tapp/devcluster/node"
	"tkestack.io/tapp/devcluster/pki"
	"tkestack.io/tapp/devcluster/poll"
	"tkestack.io/tapp/devcluster/process"
	"tkestack.io/tapp/devcluster/slot"
	"tkestack.io/tapp/devcluster/state"
)

// Names of the processes.
const (
	Registry  = "registry"
	Simulator = "kwok"
	Storage   = "storage"
	// CertManager is a process only in a cluster without real nodes.
	CertManager = "cert-manager"
)

// Addons are those of one cluster.
type Addons struct {
	Dir       state.Dir
	Slot      slot.Slot
	PKI       pki.Files
	API       *kubeapi.Client
	Processes process.Table
}

// RegistrySocket is where the registry takes writes.
func RegistrySocket(dir state.Dir) string { return filepath.Join(dir.Runtime, "registry.sock") }

// StartRegistry starts the image registry and waits until it answers.
func (a Addons) StartRegistry(ctx context.Context) error {
	address := node.Registry(a.Slot)
	if err := os.MkdirAll(a.Dir.Data(Registry), 0o750); err != nil {
		return fmt.Errorf("start %s: %w", Registry, err)
	}
	_, err := a.Processes.Ensure(ctx, process.Spec{
		Name: Registry, Path: filepath.Join(a.Dir.Bin(), "devcluster"),
		Args: []string{"registry", address, RegistrySocket(a.Dir), a.Dir.Data(Registry)},
	})
	if err != nil {
		return err
	}
	return a.waitHTTP(ctx, Registry, "http://"+address+"/v2/", 15*time.Second)
}

//go:embed coredns.yaml
var coreDNS string

// ApplyCoreDNS creates CoreDNS, or brings it to this version's manifest.
func (a Addons) ApplyCoreDNS(ctx context.Context) error {
	manifest, err := template.New("coredns.yaml").Parse(coreDNS)
	if err != nil {
		return fmt.Errorf("manifest of CoreDNS: %w", err)
	}
	var text bytes.Buffer
	if err := manifest.Execute(&text, map[string]any{"Image": images.CoreDNS, "ClusterIP": a.Slot.DNS(), "Label": node.Label}); err != nil {
		return fmt.Errorf("manifest of CoreDNS: %w", err)
	}
	if err := a.apply(ctx, "kube-system", text.Bytes()); err != nil {
		return fmt.Errorf("apply CoreDNS: %w", err)
	}
	return nil
}

// apply creates or changes the objects of a YAML stream, in its order; those that have a namespace are in the given one.
func (a Addons) apply(ctx context.Context, namespace string, stream []byte) error {
	const rbac = "/apis/rbac.authorization.k8s.io/v1/"
	core := "/api/v1/namespaces/" + namespace + "/"
	collections := map[string]string{
		"Namespace":      "/api/v1/namespaces/",
		"ServiceAccount": core + "serviceaccounts/", "ConfigMap": core + "configmaps/", "Service": core + "services/",
		"Deployment":  "/apis/apps/v1/namespaces/" + namespace + "/deployments/",
		"ClusterRole": rbac + "clusterroles/", "ClusterRoleBinding": rbac + "clusterrolebindings/",
		"RoleBinding":              rbac + "namespaces/" + namespace + "/rolebindings/",
		"APIService":               "/apis/apiregistration.k8s.io/v1/apiservices/",
		"StorageClass":             "/apis/storage.k8s.io/v1/storageclasses/",
		"CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/",
	}
	for _, document := range documents(stream) {
		if err := a.API.Apply(ctx, collections[document.Kind]+document.Metadata.Name, document.text); err != nil {
			return err
		}
	}
	return nil
}

// WaitCoreDNS waits until names resolve.
func (a Addons) WaitCoreDNS(ctx context.Context) error {
	return a.waitDeployment(ctx, "CoreDNS", "kube-system", "coredns")
}

func (a Addons) waitDeployment(ctx context.Context, what, namespace, name string) error {
	return poll.Until(ctx, what, 90*time.Second, 50*time.Millisecond, func(ctx context.Context) error {
		var deployment struct {
			Metadata struct {
				Generation int64 `json:"generation"`
			} `json:"metadata"`
			Status struct {
				ObservedGeneration int64 `json:"observedGeneration"`
				AvailableReplicas  int   `json:"availableReplicas"`
			} `json:"status"`
		}
		if err := a.API.Get(ctx, "/apis/apps/v1/namespaces/"+namespace+"/deployments/"+name, &deployment); err != nil {
			return err
		}
		if deployment.Status.ObservedGeneration < deployment.Metadata.Generation || deployment.Status.AvailableReplicas == 0 {
			return errors.New("its Deployment is not available")
		}
		return nil
	})
}

// StartSimulator starts KWOK.
func (a Addons) StartSimulator(ctx context.Context) error {
	config := filepath.Join(a.Dir.Config(), "kwok.yaml")
	if err := state.WriteFile(config, kwok.Config(), 0o644); err != nil {
		return err
	}
	if !a.Processes.Alive(Simulator) {
		// A restarted KWOK would wait until the leases that its predecessor holds run out.
		if err := a.dropLeases(ctx); err != nil {
			return err
		}
	}
	_, err := a.Processes.Ensure(ctx, process.Spec{
		Name: Simulator, Path: filepath.Join(a.Dir.Bin(), "kwok"),
		Args: []string{"--config=" + config, "--kubeconfig=" + a.PKI.Kubeconfig(pki.Simulator), "--cidr=" + a.Slot.SimulatedPods().String(),
			"--node-ip=" + a.Slot.Host().String(), "--server-address=127.0.0.1:" + strconv.Itoa(a.Slot.Port(slot.Simulator))},
	})
	return err
}

func (a Addons) dropLeases(ctx context.Context) error {
	nodes, err := a.simulated(ctx)
	if err != nil {
		return err
	}
	for name := range nodes {
		err := a.API.Delete(ctx, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/"+name)
		if err != nil && !kubeapi.IsNotFound(err) {
			return fmt.Errorf("release simulated node: %w", err)
		}
	}
	return nil
}

// simulated returns the names of the simulated nodes that there are.
func (a Addons) simulated(ctx context.Context) (map[string]bool, error) {
	nodes, err := a.API.Nodes(ctx)
	if err != nil {
		return nil, fmt.Errorf("list simulated nodes: %w", err)
	}
	names := map[string]bool{}
	for _, n := range nodes {
		if n.Simulated {
			names[n.Name] = true
		}
	}
	return names, nil
}

// Simulate makes the cluster have exactly n simulated nodes. Those that are there already stay as they are.
func (a Addons) Simulate(ctx context.Context, n int, tainted bool) error {
	present, err := a.simulated(ctx)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for _, document := range documents(kwok.Nodes(n, tainted)) {
		if present[document.Metadata.Name] {
			delete(present, document.Metadata.Name)
			continue
		}
		group.Go(func() error { return a.API.Create(ctx, "/api/v1/nodes", document.text) })
	}
	for name := range present {
		group.Go(func() error { return a.API.Delete(ctx, "/api/v1/nodes/"+name) })
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("set up simulated nodes: %w", err)
	}
	return nil
}

// document is one of a YAML stream.
type document struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	text []byte
}

func documents(stream []byte) []document {
	var found []document
	for _, text := range bytes.Split(append([]byte("\n"), stream...), []byte("\n---\n")) {
		d := document{text: text}
		if yaml.Unmarshal(text, &d) == nil && d.Metadata.Name != "" {
			found = append(found, d)
		}
	}
	return found
}
