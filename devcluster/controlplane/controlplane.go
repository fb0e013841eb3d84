// Package controlplane is the command lines of a Kubernetes control plane: etcd, kube-apiserver, kube-controller-manager
// and kube-scheduler, as processes of the machine itself.
package controlplane

import (
	"cmp"
	"net/netip"
	"path/filepath"
	"strconv"
	"time"

	"tkestack.io/tapp/devcluster/pki"
	"tkestack.io/tapp/devcluster/process"
	"tkestack.io/tapp/devcluster/slot"
	"tkestack.io/tapp/devcluster/state"
)

// Names of the processes.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
)

// Names are all of them, in the order in which they start.
func Names() []string { return append(APINames(), ControllerManager, Scheduler) }

// APINames are those without which there is no API.
func APINames() []string { return []string{Etcd, APIServer} }

// Plane is the control plane of one cluster.
type Plane struct {
	Dir  state.Dir
	Slot slot.Slot
	PKI  pki.Files
	// Real: there are real nodes, so that the API server must be reachable from their network.
	Real bool
	// NodeGrace is how long a node may be silent before it counts as not ready; 0: 50s, which is Kubernetes' default.
	NodeGrace time.Duration
}

// Address is where the API server listens: nowhere but where its clients are; it is reachable for real nodes, or on
// loopback only.
func Address(s slot.Slot, reachable bool) netip.Addr {
	if reachable {
		return s.Host()
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// URL of the API server.
func URL(s slot.Slot, reachable bool) string {
	return "https://" + netip.AddrPortFrom(Address(s, reachable), uint16(s.Port(slot.APIServer))).String()
}

// auditPolicy records who did what, but no contents. A watch is not a deed.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, verbs: [watch]}
- {level: Metadata}
`

func (p Plane) auditPolicy() string { return filepath.Join(p.Dir.Config(), "audit-policy.yaml") }

// Configure writes the files that the processes read.
func (p Plane) Configure() error {
	return state.WriteFile(p.auditPolicy(), []byte(auditPolicy), 0o644)
}

// Etcd keeps its data in memory as far as the kernel likes: it may be lost when the machine fails, and then the cluster is
// started anew.
func (p Plane) Etcd() process.Spec {
	client := "https://127.0.0.1:" + strconv.Itoa(p.Slot.Port(slot.EtcdClient))
	peer := "https://127.0.0.1:" + strconv.Itoa(p.Slot.Port(slot.EtcdPeer))
	return p.spec(Etcd,
		"--data-dir="+p.Dir.Data(Etcd), "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls="+client, "--advertise-client-urls="+client,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer,
		"--cert-file="+p.PKI.Cert(pki.Etcd), "--key-file="+p.PKI.Key(pki.Etcd),
		"--trusted-ca-file="+p.PKI.Cert(pki.EtcdCA), "--client-cert-auth",
		"--peer-cert-file="+p.PKI.Cert(pki.Etcd), "--peer-key-file="+p.PKI.Key(pki.Etcd),
		"--peer-trusted-ca-file="+p.PKI.Cert(pki.EtcdCA), "--peer-client-cert-auth",
		"--quota-backend-bytes="+strconv.Itoa(8<<30)) // tests with 10,000 pods write much
}

// APIServer has aggregator routing on: it calls webhooks and aggregated APIs at their pods' addresses itself, which needs a
// route to the pods but no kube-proxy on this machine.
func (p Plane) APIServer() process.Spec {
	args := []string{
		"--bind-address=" + Address(p.Slot, p.Real).String(), "--advertise-address=" + p.Slot.Host().String(),
		"--secure-port=" + strconv.Itoa(p.Slot.Port(slot.APIServer)), "--service-cluster-ip-range=" + p.Slot.Services().String(),
		"--etcd-servers=https://127.0.0.1:" + strconv.Itoa(p.Slot.Port(slot.EtcdClient)), "--etcd-cafile=" + p.PKI.Cert(pki.EtcdCA),
		"--etcd-certfile=" + p.PKI.Cert(pki.APIServerEtcd), "--etcd-keyfile=" + p.PKI.Key(pki.APIServerEtcd),
		"--tls-cert-file=" + p.PKI.Cert(pki.APIServer), "--tls-private-key-file=" + p.PKI.Key(pki.APIServer),
		"--client-ca-file=" + p.PKI.Cert(pki.CA), "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--kubelet-preferred-address-types=InternalIP", "--kubelet-certificate-authority=" + p.PKI.Cert(pki.CA),
		"--kubelet-client-certificate=" + p.PKI.Cert(pki.APIServerKubelet), "--kubelet-client-key=" + p.PKI.Key(pki.APIServerKubelet),
		"--enable-aggregator-routing=true", "--requestheader-client-ca-file=" + p.PKI.Cert(pki.FrontProxyCA),
		"--requestheader-allowed-names=" + pki.FrontProxy, "--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + p.PKI.Cert(pki.FrontProxy), "--proxy-client-key-file=" + p.PKI.Key(pki.FrontProxy),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + p.PKI.ServiceAccountPublicKey(), "--service-account-signing-key-file=" + p.PKI.ServiceAccountKey(),
		"--allow-privileged=true", "--profiling=false",
		"--audit-policy-file=" + p.auditPolicy(), "--audit-log-path=" + filepath.Join(p.Dir.Logs(), "audit.log"),
		"--audit-log-maxsize=1024", "--audit-log-maxbackup=2", // tests count in it: it must not be cut in the midst of one
	}
	if !p.Real {
		// Nobody could reach it by its Service, and it refuses to announce a loopback address there.
		args = append(args, "--endpoint-reconciler-type=none")
	}
	return p.spec(APIServer, args...)
}

// ControllerManager notices a lost node after Kubernetes' default of 50 s. Simulated nodes renew their leases every 10 s,
// so that they survive even a machine which is busy for half a minute. Autoscalers look every 5 s instead of every 15 s.
func (p Plane) ControllerManager() process.Spec {
	grace := cmp.Or(p.NodeGrace, 50*time.Second)
	return p.client(ControllerManager, pki.ControllerManager, slot.ControllerManager,
		"--root-ca-file="+p.PKI.Cert(pki.CA), "--service-account-private-key-file="+p.PKI.ServiceAccountKey(),
		"--cluster-signing-cert-file="+p.PKI.Cert(pki.CA), "--cluster-signing-key-file="+p.PKI.Key(pki.CA),
		"--use-service-account-credentials=true", "--allocate-node-cidrs=false", "--node-monitor-grace-period="+grace.String(),
		"--horizontal-pod-autoscaler-sync-period=5s")
}

// Scheduler is the scheduler.
func (p Plane) Scheduler() process.Spec {
	return p.client(Scheduler, pki.Scheduler, slot.Scheduler)
}

// client is a program that serves only its own health, and asks the API server as fast as this can answer: on one machine
// nobody else is to be protected from it.
func (p Plane) client(name, user string, port slot.Port, args ...string) process.Spec {
	config := p.PKI.Kubeconfig(user)
	return p.spec(name, append([]string{
		"--kubeconfig=" + config, "--authentication-kubeconfig=" + config, "--authorization-kubeconfig=" + config,
		"--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(p.Slot.Port(port)),
		"--kube-api-qps=1000", "--kube-api-burst=2000", "--leader-elect=false", "--profiling=false",
	}, args...)...)
}

func (p Plane) spec(name string, args ...string) process.Spec {
	return process.Spec{Name: name, Path: filepath.Join(p.Dir.Bin(), name), Args: args}
}
