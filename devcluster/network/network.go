// Package network lays the cluster's wires: network namespaces for a switch and for each real node.
//
//	machine ──veth── switch namespace (a bridge) ──veth── node1's namespace
//	 10.N.0.1                                    ──veth── node2's namespace ...
//
// The bridge has a namespace of its own so that firewall rules of the machine (Docker's, for one, which drop what is
// forwarded) never see what the nodes say to each other. All that the machine itself gets is one interface, with the routes
// to the pods on it; both vanish with the switch. The namespaces have names in a directory of the
// cluster, not in /run/netns, which iproute2 would make a mount of its own that stays for ever.
package network

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"tkestack.io/tapp/devcluster/mount"
	"tkestack.io/tapp/devcluster/slot"
)

// Network is the network of one cluster.
type Network struct {
	Dir  string // for the names of namespaces
	Slot slot.Slot
}

// Node is the name of real node i.
func Node(i int) string { return fmt.Sprintf("node%d", i) }

// hub is the name of the switch among the nodes.
const hub = "switch"

// Namespace is the file that stands for the network namespace of a node.
func (n Network) Namespace(node string) string { return filepath.Join(n.Dir, node) }

// Up makes the switch and connects the machine to it, unless that is done.
func (n Network) Up(ctx context.Context) error {
	if n.Intact() {
		return nil
	}
	// Half of it is no use.
	if err := n.Down(ctx); err != nil {
		return err
	}
	if err := n.add(ctx, hub); err != nil {
		return err
	}
	device := n.Slot.Device()
	return errors.Join(
		n.ip(ctx, hub, "link", "add", "br0", "type", "bridge"),
		n.ip(ctx, hub, "link", "set", "br0", "up"),
		run(ctx, "ip", "link", "add", device, "type", "veth", "peer", "name", "machine", "netns", n.Namespace(hub)),
		n.ip(ctx, hub, "link", "set", "machine", "master", "br0", "up"),
		run(ctx, "ip", "addr", "add", n.host(), "dev", device),
		run(ctx, "ip", "link", "set", device, "up"))
}

func (n Network) host() string { return fmt.Sprintf("%s/%d", n.Slot.Host(), n.Slot.Nodes().Bits()) }

// Intact tells whether the switch is there, and with it the machine's connection.
func (n Network) Intact() bool { return n.connected() && n.exists(hub) }

// HasNode tells whether node i has its namespace.
func (n Network) HasNode(i int) bool { return n.exists(Node(i)) }

// AddNode makes the namespace of node i and connects it, unless that is done. Routes to its pods are set in any case, on
// the machine and on all nodes from 1 to total.
func (n Network) AddNode(ctx context.Context, i, total int) error {
	if !n.HasNode(i) {
		if err := n.connect(ctx, i); err != nil {
			// The next attempt shall not take half a namespace for a whole one.
			return errors.Join(err, n.RemoveNode(ctx, i))
		}
	}
	errs := []error{
		n.ip(ctx, hub, "link", "set", Node(i), "up"), // it may have been cut
		run(ctx, "ip", append([]string{"route", "replace"}, n.route(i)...)...),
	}
	for j := 1; j <= total; j++ {
		if j != i && n.HasNode(j) {
			errs = append(errs,
				n.ip(ctx, Node(j), append([]string{"route", "replace"}, n.route(i)...)...),
				n.ip(ctx, Node(i), append([]string{"route", "replace"}, n.route(j)...)...))
		}
	}
	return errors.Join(errs...)
}

func (n Network) route(i int) []string {
	return []string{n.Slot.NodePods(i).String(), "via", n.Slot.Node(i).String()}
}

func (n Network) connect(ctx context.Context, i int) error {
	node := Node(i)
	if err := n.add(ctx, node); err != nil {
		return err
	}
	return errors.Join(
		n.ip(ctx, node, "link", "set", "lo", "up"),
		n.ip(ctx, hub, "link", "add", node, "type", "veth", "peer", "name", "eth0", "netns", n.Namespace(node)),
		n.ip(ctx, hub, "link", "set", node, "master", "br0", "up"),
		n.ip(ctx, node, "addr", "add", fmt.Sprintf("%s/%d", n.Slot.Node(i), n.Slot.Nodes().Bits()), "dev", "eth0"),
		n.ip(ctx, node, "link", "set", "eth0", "up"),
		n.ip(ctx, node, "route", "add", "default", "via", n.Slot.Host().String()),
		// The node is a router for its pods. /proc/sys/net is that of whoever opens it.
		n.inside(ctx, node, "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward"))
}

// Cut pulls the plug of node i at the switch: inside, the node keeps its address and its routes. AddNode puts it back.
func (n Network) Cut(ctx context.Context, i int) error {
	return n.ip(ctx, hub, "link", "set", Node(i), "down")
}

// RemoveNode disconnects node i for ever.
func (n Network) RemoveNode(ctx context.Context, i int) error {
	if n.exists(hub) {
		_ = n.ip(ctx, hub, "link", "delete", Node(i)) // may be gone
	}
	if n.connected() {
		_ = run(ctx, "ip", "route", "delete", n.Slot.NodePods(i).String()) // may be gone
	}
	if err := mount.Clear(n.Namespace(Node(i))); err != nil {
		return err
	}
	if err := os.Remove(n.Namespace(Node(i))); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove network namespace: %w", err)
	}
	return nil
}

// Down removes everything. The interface goes first: it would vanish with the switch, but the kernel takes its time to
// clear a namespace.
func (n Network) Down(ctx context.Context) error {
	if n.connected() {
		if err := run(ctx, "ip", "link", "delete", n.Slot.Device()); err != nil {
			return err
		}
	}
	if err := mount.Clear(n.Dir); err != nil {
		return err
	}
	if err := os.RemoveAll(n.Dir); err != nil {
		return fmt.Errorf("remove network namespaces: %w", err)
	}
	return nil
}

// connected tells whether the machine's interface is there and ours: it must have our address.
func (n Network) connected() bool {
	device, err := net.InterfaceByName(n.Slot.Device())
	if err != nil {
		return false
	}
	addresses, err := device.Addrs()
	if err != nil {
		return false
	}
	for _, a := range addresses {
		if a.String() == n.host() {
			return true
		}
	}
	return len(addresses) == 0 // we were interrupted before it had one
}

// add makes an empty namespace: a file on which it is mounted.
func (n Network) add(ctx context.Context, name string) error {
	if err := os.MkdirAll(n.Dir, 0o750); err != nil {
		return fmt.Errorf("make network namespace: %w", err)
	}
	if err := os.WriteFile(n.Namespace(name), nil, 0o400); err != nil {
		return fmt.Errorf("make network namespace: %w", err)
	}
	return run(ctx, "unshare", "--net="+n.Namespace(name), "true")
}

// exists tells whether a namespace is mounted on its file, which otherwise is an ordinary one.
func (n Network) exists(name string) bool { return mount.Is(n.Namespace(name)) }

// ip runs iproute2 in a namespace.
func (n Network) ip(ctx context.Context, name string, args ...string) error {
	return n.inside(ctx, name, append([]string{"ip"}, args...)...)
}

func (n Network) inside(ctx context.Context, name string, args ...string) error {
	return run(ctx, "nsenter", append([]string{"--net=" + n.Namespace(name)}, args...)...)
}

func run(ctx context.Context, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}
