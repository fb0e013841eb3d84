package slot

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
)

// Find returns the first slot from preferred on, in a circle, that is neither taken by a recorded cluster nor collides
// with what else the machine does.
func Find(ctx context.Context, preferred Slot, taken map[Slot]bool) (Slot, error) {
	local, err := localNetworks()
	if err != nil {
		return 0, err
	}
	for i := range Count {
		s := (preferred + Slot(i)) % Count
		if !taken[s] && !overlaps(s, local) && portsFree(ctx, s) {
			return s, nil
		}
	}
	return 0, fmt.Errorf("no free slot: the networks 10.128.0.0/16 to 10.%d.0.0/16 and the ports from 20000 on are all in use", 127+Count)
}

func overlaps(s Slot, local []netip.Prefix) bool {
	for _, p := range local {
		// A machine inside of 10.0.0.0/8 has one address there, and a route as wide as that loses to our narrower ones.
		if p.Bits() >= 12 && p.Overlaps(s.Network()) || s.Network().Contains(p.Addr()) {
			return true
		}
	}
	return false
}

func localNetworks() ([]netip.Prefix, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("list the machine's addresses: %w", err)
	}
	var found []netip.Prefix
	for _, a := range addresses {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() {
			found = append(found, p)
		}
	}
	return found, nil
}

// portsFree listens on every port of the slot for an instant.
func portsFree(ctx context.Context, s Slot) bool {
	var config net.ListenConfig
	for p := range ports {
		l, err := config.Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port(p))))
		if err != nil {
			return false
		}
		if l.Close() != nil {
			return false
		}
	}
	return true
}
