package pki

import (
	"crypto/tls"
	"crypto/x509"
	"net/netip"
	"os"
	"strings"
	"testing"
)

func TestCluster(t *testing.T) {
	f := Files{Dir: t.TempDir(), Server: "https://10.130.0.1:20040"}
	address := netip.MustParseAddr("10.130.0.1")
	if err := f.EnsureCluster([]netip.Addr{address}); err != nil {
		t.Fatal(err)
	}
	if err := f.EnsureNode("node1", netip.MustParseAddr("10.130.0.11")); err != nil {
		t.Fatal(err)
	}
	verify := func(authority, name, host string, usage x509.ExtKeyUsage) *x509.Certificate {
		t.Helper()
		data, err := os.ReadFile(f.Cert(authority))
		if err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(data)
		pair, err := tls.LoadX509KeyPair(f.Cert(name), f.Key(name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host, KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return pair.Leaf
	}
	verify(CA, APIServer, "10.130.0.1", x509.ExtKeyUsageServerAuth)
	verify(CA, APIServer, "kubernetes.default.svc", x509.ExtKeyUsageServerAuth)
	verify(EtcdCA, Etcd, "127.0.0.1", x509.ExtKeyUsageServerAuth)
	verify(FrontProxyCA, FrontProxy, "", x509.ExtKeyUsageClientAuth)
	node := verify(CA, "node1", "10.130.0.11", x509.ExtKeyUsageServerAuth)
	if node.Subject.CommonName != "system:node:node1" || node.Subject.Organization[0] != "system:nodes" {
		t.Errorf("node is %s", node.Subject)
	}
	if scheduler := verify(CA, Scheduler, "", x509.ExtKeyUsageClientAuth); len(scheduler.Subject.Organization) != 0 {
		t.Errorf("the scheduler is in %v", scheduler.Subject.Organization)
	}
	for _, secret := range []string{f.Key(CA), f.Kubeconfig(Admin), f.ServiceAccountKey()} {
		if info, err := os.Stat(secret); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", secret, info.Mode(), err)
		}
	}
	if data, err := os.ReadFile(f.Kubeconfig(Admin)); err != nil || !strings.Contains(string(data), `server: "https://10.130.0.1:20040"`) {
		t.Errorf("%v in\n%s", err, data)
	}
}

func TestEnsureKeepsWhatFits(t *testing.T) {
	f := Files{Dir: t.TempDir()}
	a, err := Open(f.Dir, CA)
	if err != nil {
		t.Fatal(err)
	}
	ensure := func(a *Authority, r Request) string {
		t.Helper()
		if err := a.Ensure(r); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(f.Cert(r.Name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	r := Request{Name: "x", CommonName: "x", Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1")}}
	first := ensure(a, r)
	again, err := Open(f.Dir, CA)
	if err != nil {
		t.Fatal(err)
	}
	if ensure(again, r) != first {
		t.Error("made again although nothing changed")
	}
	r.Addresses = append(r.Addresses, netip.MustParseAddr("10.0.0.2"))
	second := ensure(again, r)
	if second == first {
		t.Error("kept although an address is missing")
	}
	if err := os.Remove(f.Cert(CA)); err != nil {
		t.Fatal(err)
	}
	other, err := Open(f.Dir, CA)
	if err != nil {
		t.Fatal(err)
	}
	if ensure(other, r) == second {
		t.Error("kept although another authority signed it")
	}
}
