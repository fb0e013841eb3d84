//go:build cluster

package fleet

import (
	"strings"
	"testing"
)

// TestEmptied: what a change puts into an object of the template that was empty, such as resources or
// an emptyDir, a return takes out again.
func TestEmptied(t *testing.T) {
	r := newRig(t)
	hub := r.on(r.hub)
	const before = `
apiVersion: workload.dmall.com/v1beta1
kind: AppSet
metadata: {name: emptied}
spec:
  podSpec:
    deployType: InPlaceSet
    template:
      spec:
        terminationGracePeriodSeconds: 0
        containers: [{name: emptied, image: 'nginx:v1', resources: {}, securityContext: {}, volumeMounts: [{name: v, mountPath: /v}]}]
        volumes: [{name: v, emptyDir: {}}]
  clusterTopology:
    clusters: [{name: member1, podSets: [{name: emptied, replicas: 1}]}]
`
	ready := func() {
		t.Helper()
		hub.Kubectl("wait", "appset/emptied", "--for=jsonpath={.status.observedGeneration}="+hub.Kubectl("get", "appset/emptied", "-o", "jsonpath={.metadata.generation}"), "--timeout=120s")
		hub.Kubectl("wait", "appset/emptied", "--for=condition=Ready", "--timeout=120s")
	}
	hub.KubectlWith(before, "apply", "--filename", "-")
	ready()
	hub.KubectlWith(strings.NewReplacer("resources: {}", "resources: {requests: {cpu: 1m}}", "securityContext: {}", "securityContext: {runAsUser: 1}", "emptyDir: {}", "emptyDir: {sizeLimit: 1Mi}").Replace(before), "apply", "--filename", "-")
	ready()
	hub.KubectlWith(before, "apply", "--filename", "-")
	ready()
	got := r.on(r.members[0]).Kubectl("get", "pod/emptied-0", "-o", "jsonpath={.spec.containers[0].resources}{.spec.containers[0].securityContext}{.spec.volumes[0].emptyDir}")
	if got != "{}{}" { // a security context that says nothing is none
		t.Errorf("the pod has %s", got)
	}
}
