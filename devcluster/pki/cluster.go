package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"

	"tkestack.io/tapp/devcluster/state"
)

// Files is the directory with a cluster's keys and certificates.
type Files struct {
	Dir    string
	Server string // URL of the API server, for kubeconfigs
}

// Names of the certificates.
const (
	CA           = "ca"
	EtcdCA       = "etcd-ca"
	FrontProxyCA = "front-proxy-ca"

	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	APIServerEtcd     = "kube-apiserver-etcd-client"
	APIServerKubelet  = "kube-apiserver-kubelet-client"
	FrontProxy        = "front-proxy-client"
	Admin             = "admin"
	Operator          = "devcluster" // this program: its own name, so that the audit log tells it from the user
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Proxy             = "kube-proxy"
	Simulator         = "kwok"
	CertManager       = "cert-manager" // where it is no pod
	Storage           = "storage"

	serviceAccounts = "service-accounts"
)

// masters may do anything.
const masters = "system:masters"

// Cert is the path of a certificate.
func (f Files) Cert(name string) string { return certPath(f.Dir, name) }

// Key is the path of its key.
func (f Files) Key(name string) string { return keyPath(f.Dir, name) }

// Kubeconfig is the path of the kubeconfig for the user with this certificate.
func (f Files) Kubeconfig(name string) string { return filepath.Join(f.Dir, name+".kubeconfig") }

// ServiceAccountKey signs service accounts' tokens.
func (f Files) ServiceAccountKey() string { return f.Key(serviceAccounts) }

// ServiceAccountPublicKey verifies them.
func (f Files) ServiceAccountPublicKey() string { return filepath.Join(f.Dir, serviceAccounts+".pub") }

// EnsureCluster makes everything but the nodes' certificates. The API server answers under the given addresses.
func (f Files) EnsureCluster(server []netip.Addr) error {
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	for authority, requests := range map[string][]Request{
		EtcdCA: {
			{Name: Etcd, CommonName: Etcd, DNSNames: []string{"localhost"}, Addresses: []netip.Addr{loopback}},
			{Name: APIServerEtcd, CommonName: APIServerEtcd},
		},
		FrontProxyCA: {{Name: FrontProxy, CommonName: FrontProxy}},
		CA: {
			{Name: APIServer, CommonName: APIServer, Addresses: append([]netip.Addr{loopback}, server...), DNSNames: []string{"localhost",
				"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}},
			{Name: APIServerKubelet, CommonName: APIServerKubelet, Organizations: []string{masters}},
			{Name: Admin, CommonName: Admin, Organizations: []string{masters}},
			{Name: Operator, CommonName: Operator, Organizations: []string{masters}},
			{Name: Simulator, CommonName: Simulator, Organizations: []string{masters}},
			{Name: CertManager, CommonName: CertManager, Organizations: []string{masters}},
			{Name: Storage, CommonName: Storage, Organizations: []string{masters}},
			{Name: ControllerManager, CommonName: "system:kube-controller-manager"},
			{Name: Scheduler, CommonName: "system:kube-scheduler"},
			{Name: Proxy, CommonName: "system:kube-proxy"},
		},
	} {
		a, err := Open(f.Dir, authority)
		if err != nil {
			return err
		}
		for _, r := range requests {
			if err := a.Ensure(r); err != nil {
				return err
			}
		}
	}
	for _, user := range []string{Admin, Operator, ControllerManager, Scheduler, Proxy, Simulator, CertManager, Storage} {
		if err := f.writeKubeconfig(user); err != nil {
			return err
		}
	}
	return f.ensureServiceAccountKey()
}

// EnsureNode makes the certificate and the kubeconfig of a kubelet.
func (f Files) EnsureNode(node string, address netip.Addr) error {
	a, err := Open(f.Dir, CA)
	if err != nil {
		return err
	}
	err = a.Ensure(Request{Name: node, CommonName: "system:node:" + node, Organizations: []string{"system:nodes"}, DNSNames: []string{node}, Addresses: []netip.Addr{address}})
	if err != nil {
		return err
	}
	return f.writeKubeconfig(node)
}

func (f Files) ensureServiceAccountKey() error {
	if _, err := os.Stat(f.ServiceAccountPublicKey()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("service account key: %w", err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("service account key: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return fmt.Errorf("service account key: %w", err)
	}
	if err := state.WriteFile(f.ServiceAccountKey(), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}), 0o600); err != nil {
		return err
	}
	return state.WriteFile(f.ServiceAccountPublicKey(), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), 0o644)
}

// kubeconfig has everything inside, so that it can be copied elsewhere.
const kubeconfig = `apiVersion: v1
kind: Config
clusters:
- name: devcluster
  cluster: {server: %q, certificate-authority-data: %s}
users:
- name: %[3]s
  user: {client-certificate-data: %[4]s, client-key-data: %[5]s}
contexts:
- name: devcluster
  context: {cluster: devcluster, user: %[3]s}
current-context: devcluster
`

func (f Files) writeKubeconfig(name string) error {
	var encoded [3]string
	for i, path := range []string{f.Cert(CA), f.Cert(name), f.Key(name)} {
		data, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("kubeconfig of %s: %w", name, err)
		}
		encoded[i] = base64.StdEncoding.EncodeToString(data)
	}
	text := fmt.Sprintf(kubeconfig, f.Server, encoded[0], name, encoded[1], encoded[2])
	return state.WriteFile(f.Kubeconfig(name), []byte(text), 0o600)
}
