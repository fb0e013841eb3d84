package slot

import (
	"net"
	"net/netip"
	"testing"
)

func TestSlotsNeverOverlap(t *testing.T) {
	seen := map[int]Slot{}
	for s := range Slot(Count) {
		if s > 0 && s.Network().Overlaps((s - 1).Network()) {
			t.Errorf("slots %d and %d share a network", s-1, s)
		}
		for p := range ports {
			if other, ok := seen[s.Port(p)]; ok {
				t.Errorf("slots %d and %d share port %d", other, s, s.Port(p))
			}
			seen[s.Port(p)] = s
			if s.Port(p) >= 32768 {
				t.Errorf("port %d is in the range of ephemeral ports", s.Port(p))
			}
		}
		if len(s.Device()) > 15 {
			t.Errorf("%s is too long for a device name", s.Device())
		}
	}
}

func TestNetworksOfASlotAreDisjoint(t *testing.T) {
	s := Slot(7)
	networks := []netip.Prefix{s.Nodes(), s.Services(), s.Pods(), s.SimulatedPods()}
	for i, a := range networks {
		if a != a.Masked() {
			t.Errorf("%s has host bits", a)
		}
		if s.Network().Bits() > a.Bits() || !s.Network().Contains(a.Addr()) {
			t.Errorf("%s is outside of %s", a, s.Network())
		}
		for _, b := range networks[:i] {
			if a.Overlaps(b) {
				t.Errorf("%s and %s overlap", a, b)
			}
		}
	}
	for _, i := range []int{1, MaxNodes} {
		if !s.Pods().Overlaps(s.NodePods(i)) || !s.Nodes().Contains(s.Node(i)) {
			t.Errorf("node %d does not fit: %s, %s", i, s.Node(i), s.NodePods(i))
		}
	}
	if !s.Services().Contains(s.DNS()) || !s.Services().Contains(s.APIService()) {
		t.Error("well-known Services are outside of the Service network")
	}
}

func TestFindSkipsWhatIsTaken(t *testing.T) {
	free, err := Find(t.Context(), 40, nil)
	if err != nil {
		t.Fatal(err)
	}
	if next, err := Find(t.Context(), free, map[Slot]bool{free: true}); err != nil || next == free {
		t.Errorf("got slot %d (%v) although it is taken", next, err)
	}
	l, err := net.Listen("tcp4", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(free.Port(Scheduler))).String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if next, err := Find(t.Context(), free, nil); err != nil || next == free {
		t.Errorf("got slot %d (%v) although a port of it is in use", next, err)
	}
}

func TestOverlaps(t *testing.T) {
	for prefix, want := range map[string]bool{
		"10.135.0.1/24": true, "10.135.9.9/8": true, "10.1.2.3/8": false, "10.130.0.1/12": true, "192.168.1.1/16": false, "10.136.0.1/16": false,
	} {
		if got := overlaps(7, []netip.Prefix{netip.MustParsePrefix(prefix)}); got != want {
			t.Errorf("%s: overlaps = %v, want %v", prefix, got, want)
		}
	}
}
