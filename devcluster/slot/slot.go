// Package slot keeps clusters on one machine apart: a slot is a small number, and all addresses, ports and device names
// of a cluster follow from it.
//
// Slot s owns the network 10.(128+s).0.0/16 and the ports 20000+20s ... 20019+20s:
//
//	10.N.0.0/24    the machine (.1, where the API server and the registry listen) and the real nodes (.11, .12, ...)
//	10.N.16.0/20   Services; .16.1 is "kubernetes", .16.10 is DNS
//	10.N.64.0/18   pods on real nodes, a /24 for each node
//	10.N.128.0/17  pods on simulated nodes
package slot

import (
	"fmt"
	"net/netip"
)

// Count is how many slots a machine has.
const Count = 100

// MaxNodes is how many real nodes fit into a slot's networks.
const MaxNodes = 60

// Slot is the number.
type Slot int

func (s Slot) address(third, fourth byte) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(128 + int(s)), third, fourth})
}

func (s Slot) network(third byte, bits int) netip.Prefix {
	return netip.PrefixFrom(s.address(third, 0), bits)
}

// Network holds all others.
func (s Slot) Network() netip.Prefix { return s.network(0, 16) }

// Nodes is the network that the machine shares with its real nodes.
func (s Slot) Nodes() netip.Prefix { return s.network(0, 24) }

// Host is the machine's own address there.
func (s Slot) Host() netip.Addr { return s.address(0, 1) }

// Node is the address of real node i (from 1).
func (s Slot) Node(i int) netip.Addr { return s.address(0, byte(10+i)) }

// Services is the range of cluster IPs.
func (s Slot) Services() netip.Prefix { return s.network(16, 20) }

// APIService is the cluster IP of the Service "kubernetes".
func (s Slot) APIService() netip.Addr { return s.address(16, 1) }

// DNS is the cluster IP of CoreDNS.
func (s Slot) DNS() netip.Addr { return s.address(16, 10) }

// Pods is the range of pods on real nodes.
func (s Slot) Pods() netip.Prefix { return s.network(64, 18) }

// NodePods is the part of Pods that node i hands out.
func (s Slot) NodePods(i int) netip.Prefix { return s.network(byte(64+i), 24) }

// SimulatedPods is the range of pods on simulated nodes.
func (s Slot) SimulatedPods() netip.Prefix { return s.network(128, 17) }

// Port numbers one listener on the machine itself.
type Port int

// The listeners. All but APIServer (which in a cluster with real nodes listens on Host) and Registry (on Host) are on
// loopback.
const (
	APIServer Port = iota
	EtcdClient
	EtcdPeer
	ControllerManager
	Scheduler
	Simulator
	Registry
	CertManager
	Storage
	ports // how many there are
)

// Port is the number to listen on for p.
func (s Slot) Port(p Port) int { return 20000 + 20*int(s) + int(p) }

// Device is the name of the machine's network interface in Nodes. Linux allows 15 characters.
func (s Slot) Device() string { return fmt.Sprintf("tapp%d", int(s)) }
