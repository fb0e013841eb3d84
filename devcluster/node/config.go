package node

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"tkestack.io/tapp/devcluster/images"
	"tkestack.io/tapp/devcluster/pki"
	"tkestack.io/tapp/devcluster/slot"
	"tkestack.io/tapp/devcluster/state"
)

// Registry is the address of the cluster's image registry.
func Registry(s slot.Slot) string { return fmt.Sprintf("%s:%d", s.Host(), s.Port(slot.Registry)) }

// configure writes the configuration files.
func (n Node) configure() error {
	plugins, err := PluginDir()
	if err != nil {
		return err
	}
	registry := "http://" + Registry(n.Slot)
	for name, text := range map[string]string{
		"certs.d/_default/hosts.toml": fmt.Sprintf(hosts, registry),
		"containerd.toml":             fmt.Sprintf(containerd, n.data("containerd"), n.runtime("state"), n.socket(), images.Pause, n.config("certs.d"), n.runtime("runc"), plugins, n.config("cni")),
		"cni/10-pods.conflist":        fmt.Sprintf(cni, n.Dir.Name(), n.runtime("ipam"), n.Slot.NodePods(n.Index)),
		"resolv.conf":                 fmt.Sprintf("nameserver %s\n", n.Slot.DNS()),
		"kubelet.yaml": fmt.Sprintf(kubelet, n.groups().Path(n.Name()), "unix://"+n.socket(), n.data("pods"), n.PKI.Cert(pki.CA),
			n.Slot.DNS(), n.config("resolv.conf"), n.PKI.Cert(n.Name()), n.PKI.Key(n.Name())),
		"kube-proxy.yaml": fmt.Sprintf(kubeProxy, n.PKI.Kubeconfig(pki.Proxy), n.Slot.Pods()),
	} {
		if err := state.WriteFile(n.config(name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// PluginDir is where the system's packages put CNI plugins.
func PluginDir() (string, error) {
	dirs := []string{"/usr/lib/cni", "/usr/libexec/cni", "/opt/cni/bin"}
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, "ptp")); err == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("no CNI plugins in %s", strings.Join(dirs, ", "))
}

func lookPath(program string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", program, err)
	}
	return path, nil
}

// hosts makes the cluster's registry answer for every registry.
const hosts = `server = %[1]q
[host.%[1]q]
  capabilities = ["pull", "resolve"]
`

// containerd: version 2 of its configuration is what 1.6, 1.7 and 2.x all read. Oom scores cannot be lowered everywhere
// (it takes CAP_SYS_RESOURCE), and AppArmor profiles would stay in the kernel.
const containerd = `version = 2
root = %q
state = %q
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]
[grpc]
  address = %q
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q
  restrict_oom_score_adj = true
  disable_apparmor = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = %q
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      Root = %q
      SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = %q
    conf_dir = %q
`

// cni connects every pod to its node by a wire of its own: all traffic is routed, and so passes kube-proxy's rules.
const cni = `{"cniVersion": "0.4.0", "name": %q, "plugins": [
  {"type": "ptp", "ipMasq": false, "ipam": {"type": "host-local", "dataDir": %q, "ranges": [[{"subnet": %q}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}
]}
`

const kubelet = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failSwapOn: false
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: %q
cgroupsPerQOS: true
enforceNodeAllocatable: []
oomScoreAdj: 0
containerRuntimeEndpoint: %q
podLogsDir: %q
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: %q}}
authorization: {mode: Webhook}
clusterDNS: [%q]
clusterDomain: cluster.local
resolvConf: %q
tlsCertFile: %q
tlsPrivateKeyFile: %q
evictionHard: {memory.available: 100Mi, nodefs.available: 1%%, imagefs.available: 1%%}
imageGCHighThresholdPercent: 100
registryPullQPS: 0
serializeImagePulls: false
eventRecordQPS: 100
nodeLeaseDurationSeconds: 20
kubeAPIQPS: 200
kubeAPIBurst: 400
maxPods: 110
`

const kubeProxy = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
oomScoreAdj: 0
clientConnection: {kubeconfig: %q}
clusterCIDR: %q
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
iptables: {minSyncPeriod: 100ms}
`
