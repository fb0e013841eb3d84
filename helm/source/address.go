package source

import (
	"fmt"
	"net/netip"
	"slices"
)

// Ranges that are not public beside those that netip knows of.
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"),  // behind a carrier's NAT
	netip.MustParsePrefix("192.0.0.0/24"),   // protocols
	netip.MustParsePrefix("198.18.0.0/15"),  // benchmarks
	netip.MustParsePrefix("240.0.0.0/4"),    // reserved, broadcast
	netip.MustParsePrefix("64:ff9b:1::/48"), // local NAT64
	netip.MustParsePrefix("2002::/16"),      // 6to4, which has an IPv4 address in it
	netip.MustParsePrefix("2001::/32"),      // Teredo, likewise
}

// judge refuses addresses that are not public: metadata services, the node and the
// cluster listen there. It is asked when a connection is made, so that a name cannot
// change its address in between.
func judge(address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("address %s: %w", address, err)
	}
	ip := at.Addr().Unmap()
	// NAT64 has the IPv4 address that is meant in its last four bytes.
	if netip.MustParsePrefix("64:ff9b::/96").Contains(ip) {
		b := ip.As16()
		ip = netip.AddrFrom4([4]byte(b[12:]))
	}
	public := ip.IsGlobalUnicast() && !ip.IsPrivate() &&
		!slices.ContainsFunc(reserved, func(p netip.Prefix) bool { return p.Contains(ip) })
	if !public {
		return fmt.Errorf("address %s is not public, and such are not allowed (--allow-private-charts)", ip)
	}
	return nil
}
