// Package kwok configures the simulated part of a cluster: KWOK plays a kubelet for nodes that have none.
//
// The stages (stages/*.yaml) model what a kubelet writes, with one status write per transition:
//
//	pod is scheduled            Running, containers by name, podIP, conditions, observedGeneration
//	gate condition flips        Ready follows containers and readiness gates; gates are never written
//	image changes               that container or sidecar restarts, the others stay as they are
//	other generation bump       observedGeneration (and container resources) follow
//	deletion                    gone after 0.3 s, or after the grace period with HangOnDelete
//
// Images decide how simulated containers behave, by tag:
//
//	crash          exits 1 at once: CrashLoopBackOff, or terminated where the restart policy forbids a restart
//	done           exits 0 at once
//	unready        runs, is never ready
//	slow           ready after 5 s
//	bad, missing   ImagePullBackOff
//	x-same         has the digest of tag x, and is reported as tag x, as containerd does
//
// and pods by the annotations below.
package kwok

import (
	"bytes"
	_ "embed"
	"fmt"
	"runtime"
)

// Annotations of pods that tell the simulated kubelet what to do.
const (
	// Finish ends the pod with the phase that it names, Succeeded or Failed, whatever its restart policy.
	Finish = "sim.tkestack.io/finish"
	// Evict ("true") ends the pod as an eviction does: Failed, reason Evicted, without container statuses.
	Evict = "sim.tkestack.io/evict"
	// HangOnDelete ("true") makes containers ignore SIGTERM: a deletion takes the whole grace period.
	HangOnDelete = "sim.tkestack.io/hang-on-delete"
	// StartDelay (a Go duration) is how long containers take from a spec change to their start, 50ms by default.
	StartDelay = "sim.tkestack.io/start-delay"
	// Freeze ("true") makes the kubelet dead for this pod: nothing is written, and a deletion never ends.
	Freeze = "sim.tkestack.io/freeze"
)

// Taint is the key of the taint on simulated nodes that stand beside real ones; its value is "fake".
const Taint = "kwok.x-k8s.io/node"

//go:embed stages/config.yaml
var configuration []byte

//go:embed stages/node.yaml
var nodeStages []byte

//go:embed stages/pod.yaml
var podStages []byte

// Config is the file for kwok's --config: its settings and our stages. It manages nodes that carry the annotation
// kwok.x-k8s.io/node=fake.
func Config() []byte {
	return bytes.Join([][]byte{configuration, nodeStages, podStages}, []byte("---\n"))
}

// Nodes is a YAML stream of n Node objects, kwok-0 and on, each with room for 1,000 pods, spread over three zones.
// Tainted ones take only pods that tolerate Taint.
func Nodes(n int, tainted bool) []byte {
	var out bytes.Buffer
	for i := range n {
		fmt.Fprintf(&out, `---
apiVersion: v1
kind: Node
metadata:
  name: kwok-%[1]d
  annotations: {kwok.x-k8s.io/node: fake, node.alpha.kubernetes.io/ttl: "0"}
  labels:
    type: kwok
    kubernetes.io/hostname: kwok-%[1]d
    kubernetes.io/os: linux
    kubernetes.io/arch: %[2]s
    topology.kubernetes.io/zone: kwok-zone-%[3]d
`, i, runtime.GOARCH, i%3)
		if tainted {
			fmt.Fprintf(&out, "spec:\n  taints: [{key: %s, value: fake, effect: NoSchedule}]\n", Taint)
		}
		out.WriteString(`status:
  allocatable: {cpu: "1000", memory: 4Ti, ephemeral-storage: 4Ti, pods: "1000"}
  capacity: {cpu: "1000", memory: 4Ti, ephemeral-storage: 4Ti, pods: "1000"}
`)
	}
	return out.Bytes()
}
