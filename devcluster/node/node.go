// Package node runs a real node: containerd, kubelet and kube-proxy in a network namespace and in control groups of their
// own. All else they share with the machine.
package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"tkestack.io/tapp/devcluster/cgroup"
	"tkestack.io/tapp/devcluster/kernel"
	"tkestack.io/tapp/devcluster/mount"
	"tkestack.io/tapp/devcluster/network"
	"tkestack.io/tapp/devcluster/pki"
	"tkestack.io/tapp/devcluster/poll"
	"tkestack.io/tapp/devcluster/process"
	"tkestack.io/tapp/devcluster/slot"
	"tkestack.io/tapp/devcluster/state"
)

// Node is one real node.
type Node struct {
	Index     int // from 1
	Dir       state.Dir
	Slot      slot.Slot
	PKI       pki.Files
	Processes process.Table
}

// Name of the node in the cluster.
func (n Node) Name() string { return network.Node(n.Index) }

// The node's processes.
func (n Node) containerd() string { return n.Name() + "-containerd" }
func (n Node) kubelet() string    { return n.Name() + "-kubelet" }
func (n Node) proxy() string      { return n.Name() + "-kube-proxy" }

func (n Node) wires() network.Network { return network.Network{Dir: n.Dir.Namespaces(), Slot: n.Slot} }
func (n Node) groups() cgroup.Tree    { return cgroup.Tree{Name: n.Dir.Name()} }

// runtime is a short path, for sockets; data is where the bulk is; config is what we write.
func (n Node) runtime(name string) string { return filepath.Join(n.Dir.Node(n.Name()), name) }
func (n Node) data(name string) string    { return filepath.Join(n.Dir.Data(n.Name()), name) }
func (n Node) config(name string) string  { return filepath.Join(n.Dir.Config(), n.Name(), name) }
func (n Node) socket() string             { return n.runtime("containerd.sock") }

// Prepare makes everything that the node's processes need, unless it is there. There are total nodes in all.
func (n Node) Prepare(ctx context.Context, total int) error {
	if err := n.PKI.EnsureNode(n.Name(), n.Slot.Node(n.Index)); err != nil {
		return err
	}
	if err := n.wires().AddNode(ctx, n.Index, total); err != nil {
		return err
	}
	if err := n.groups().Create(n.Name()); err != nil {
		return err
	}
	for _, dir := range []string{n.runtime("kubelet"), n.data("containerd"), n.data("pods")} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return fmt.Errorf("prepare %s: %w", n.Name(), err)
		}
	}
	return n.configure()
}

// StartRuntime starts containerd and waits until it serves.
func (n Node) StartRuntime(ctx context.Context) error {
	path, err := lookPath("containerd")
	if err != nil {
		return err
	}
	unlock, err := state.LockMachine(ctx, "kubelets")
	if err != nil {
		return err
	}
	err = kernel.Here().Save() // with limits under which it starts
	unlock()
	if err != nil {
		return err
	}
	err = n.start(ctx, n.containerd(), path, "--config="+n.config("containerd.toml"))
	if err != nil {
		return err
	}
	return poll.Until(ctx, n.containerd(), 30*time.Second, 20*time.Millisecond, func(ctx context.Context) error {
		if err := n.Processes.Died(n.containerd()); err != nil {
			return poll.Stop(err)
		}
		return n.serves(ctx)
	})
}

// serves asks containerd for its version, as a kubelet does, which ends when that is refused: the socket is there before
// the service is.
func (n Node) serves(ctx context.Context) error {
	connection, err := grpc.NewClient("unix://"+n.socket(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err = runtimeapi.NewRuntimeServiceClient(connection).Version(ctx, &runtimeapi.VersionRequest{})
	return errors.Join(err, connection.Close())
}

// StartKubelet starts kubelet and kube-proxy; containerd must run.
func (n Node) StartKubelet(ctx context.Context) error {
	if err := n.startKubelet(ctx); err != nil {
		return err
	}
	return n.start(ctx, n.proxy(), filepath.Join(n.Dir.Bin(), "kube-proxy"),
		"--config="+n.config("kube-proxy.yaml"), "--hostname-override="+n.Name())
}

// startKubelet waits until the kubelet has passed the place where two of them must not be at once.
func (n Node) startKubelet(ctx context.Context) error {
	unlock, err := state.LockMachine(ctx, "kubelets")
	if err != nil {
		return err
	}
	defer unlock()
	if err := kernel.Here().Save(); err != nil {
		return err
	}
	err = n.start(ctx, n.kubelet(), filepath.Join(n.Dir.Bin(), "kubelet"),
		"--config="+n.config("kubelet.yaml"), "--kubeconfig="+n.PKI.Kubeconfig(n.Name()), "--root-dir="+n.runtime("kubelet"),
		"--hostname-override="+n.Name(), "--node-ip="+n.Slot.Node(n.Index).String(),
		fmt.Sprintf("--node-labels=%s=real,topology.kubernetes.io/zone=zone-%d", Label, n.Index))
	if err != nil {
		return err
	}
	return poll.Until(ctx, n.kubelet(), 2*time.Minute, 20*time.Millisecond, func(context.Context) error {
		if err := n.Processes.Died(n.kubelet()); err != nil {
			return poll.Stop(err)
		}
		if r, _ := n.Processes.Find(n.kubelet()); !r.Listens(deviceSocket) {
			return fmt.Errorf("it does not listen at %s yet", deviceSocket)
		}
		return nil
	})
}

// deviceSocket has its path in the kubelet's source. A kubelet deletes the socket that is there, and makes its own: one that
// finds another's between these two steps ends. Nothing in these clusters uses it.
const deviceSocket = "/var/lib/kubelet/device-plugins/kubelet.sock"

// Label of real nodes; its value is "real".
const Label = kernel.Mark

func (n Node) start(ctx context.Context, name, path string, args ...string) error {
	_, err := n.Processes.Ensure(ctx, process.Spec{
		Name: name, Path: path, Args: args,
		Namespace: n.wires().Namespace(n.Name()),
		Started:   func(pid int) error { return n.groups().AddDaemon(n.Name(), pid) },
	})
	return err
}

// Daemons are the names of the node's processes.
func (n Node) Daemons() []string { return []string{n.containerd(), n.kubelet(), n.proxy()} }

// Died returns an error if one of the node's processes that should run has ended.
func (n Node) Died() error {
	for _, name := range n.Daemons() {
		if err := n.Processes.Died(name); err != nil {
			return err
		}
	}
	return nil
}

// Started is when the kubelet was started.
func (n Node) Started() time.Time {
	r, _ := n.Processes.Find(n.kubelet())
	return r.Started
}

// Lose stops kubelet and containerd at once, as if the node were cut off: its containers go on, unwatched.
func (n Node) Lose(ctx context.Context) error {
	return n.Processes.Stop(ctx, 0, n.kubelet(), n.containerd())
}

// Destroy ends everything on the node and removes its traces.
func (n Node) Destroy(ctx context.Context) error {
	if err := n.Processes.Stop(ctx, 0, n.Daemons()...); err != nil {
		return err
	}
	groups := n.groups()
	if err := groups.Kill(ctx, n.Name()); err != nil {
		return err
	}
	if err := mount.Clear(n.Dir.Node(n.Name()), n.Dir.Data(n.Name())); err != nil {
		return err
	}
	return errors.Join(
		n.RemoveStrays(), groups.Remove(ctx, n.Name()), n.wires().RemoveNode(ctx, n.Index),
		os.RemoveAll(n.Dir.Node(n.Name())), os.RemoveAll(n.Dir.Data(n.Name())))
}

// shimSockets is a directory that containerd does not let us choose.
const shimSockets = "/run/containerd/s"

// RemoveStrays deletes files that containerd and kubelet put into places which cannot be configured.
func (n Node) RemoveStrays() error {
	var strays []string
	// The sockets of containerd's shims: their names are hashes, but each is noted in our directory.
	notes, _ := filepath.Glob(n.runtime("state/io.containerd.runtime.v2.task/k8s.io/*/address"))
	for _, note := range notes {
		address, err := os.ReadFile(note)
		socket := strings.TrimPrefix(strings.TrimSpace(string(address)), "unix://")
		if err == nil && filepath.Dir(socket) == shimSockets {
			strays = append(strays, socket)
		}
	}
	// Links to logs.
	links, _ := filepath.Glob("/var/log/containers/*.log")
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, n.Dir.Data(n.Name())+"/") {
			strays = append(strays, link)
		}
	}
	// The CNI library's cache, by pod sandbox.
	sandboxes, _ := filepath.Glob(n.runtime("state/io.containerd.grpc.v1.cri/sandboxes/*"))
	for _, sandbox := range sandboxes {
		results, _ := filepath.Glob("/var/lib/cni/results/*-" + filepath.Base(sandbox) + "-*")
		strays = append(strays, results...)
	}
	var errs []error
	for _, path := range strays {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) { //nolint:gosec // each in a directory named above
			errs = append(errs, fmt.Errorf("clean up after %s: %w", n.Name(), err))
		}
	}
	return errors.Join(errs...)
}
