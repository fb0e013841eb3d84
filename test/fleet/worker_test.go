//go:build cluster

package fleet

import (
	"fmt"
	"maps"
	"testing"
)

// part is an AdvDeployment of two podSets, as a user writes it.
func part(name, deployType, version string, replicas int) string {
	return fmt.Sprintf(`
apiVersion: workload.dmall.com/v1beta1
kind: AdvDeployment
metadata: {name: %[1]s}
spec:
  serviceName: %[1]s.example.com
  podSpec:
    deployType: %[2]s
    template:
      spec:
        terminationGracePeriodSeconds: 0
        containers:
        - {name: %[1]s, image: nginx, ports: [{containerPort: 80}], resources: {requests: {cpu: 1000m, memory: 1024Mi}, limits: {}},
           volumeMounts: [{name: scratch, mountPath: /a}, {name: scratch, mountPath: /b}], env: [{name: EMPTY, value: ""}]}
        volumes: [{name: scratch, emptyDir: {}}]
  topology:
    podSets:
    - {name: %[1]s-gz01-canary, replicas: 1, version: %[3]s}
    - {name: %[1]s-gz01-blue, replicas: %[4]d, version: %[3]s}`, name, deployType, version, replicas)
}

const columns = `--output=jsonpath={.status.aggrStatus.status} {.status.aggrStatus.desired} {.status.aggrStatus.available} {.status.aggrStatus.version}`

// TestTypes: each type becomes its objects, follows changes, is put right, and goes without
// a trace; and it is written no more than it has to be.
func TestTypes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ deployType, kind string }{{"InPlaceSet", "tapp"}, {"StatefulSet", "statefulset"}, {"deployment", "deployment"}} {
		t.Run(c.kind, func(t *testing.T) {
			r, m := newMember(t)
			in, log := r.on(m), r.on(m).FollowAudit()
			in.KubectlWith(part("app", c.deployType, "v1", 2), "apply", "--filename", "-")
			r.shows(m, "Running 3 3 v1", "get", "ad", "app", columns)
			writes := r.writes(m, log)
			statuses := writes["patch advdeployments/status"]
			for _, of := range []string{"tapps/status", "pods/status", "pods", "controllerrevisions"} { // those of TApp's own controller
				for _, verb := range []string{"patch ", "create "} {
					delete(writes, verb+of)
				}
			}
			delete(writes, "patch advdeployments/status")
			if want := map[string]int{"patch advdeployments": 1, "patch services": 1, "patch " + c.kind + "s": 2}; !maps.Equal(writes, want) || statuses > 4 {
				t.Errorf("it wrote %v and %d statuses, want %v", writes, statuses, want)
			}

			in.Kubectl("label", c.kind, "app-gz01-blue", "app=else", "--overwrite")
			in.Kubectl("scale", c.kind, "app-gz01-blue", "--replicas=5")
			r.shows(m, "app 2", "get", c.kind, "app-gz01-blue", "--output=jsonpath={.metadata.labels.app} {.spec.replicas}")
			in.KubectlWith(part("app", c.deployType, "v2", 3), "apply", "--filename", "-")
			r.shows(m, "Running 4 4 v2", "get", "ad", "app", columns)
			r.shows(m, "nginx:v2 nginx:v2 nginx:v2 nginx:v2", "get", "pods", "--output=jsonpath={.items[*].spec.containers[0].image}")
			in.Kubectl("wait", "--for=condition=Ready", "ad/app", "--timeout=5m")

			log = in.FollowAudit()
			r.rests(m, log)
			in.Kubectl("delete", "ad", "app", "--timeout=5m")
			r.shows(m, "", "get", "tapps,statefulsets,deployments,services,replicasets,pods", "--output=name")
		})
	}
}

// TestForeign: what is somebody else's stays as it is, and is told.
func TestForeign(t *testing.T) {
	r, m := newMember(t)
	in := r.on(m)
	in.Kubectl("create", "deployment", "app-gz01-blue", "--image=nginx:theirs")
	before := in.Kubectl("get", "deployment", "app-gz01-blue", "--output=jsonpath={.metadata.generation}{.metadata.labels}")
	in.KubectlWith(part("app", "deployment", "v1", 2), "apply", "--filename", "-")
	r.shows(m, "True ErrResourceExists", "get", "ad", "app", `--output=jsonpath={.status.conditions[?(@.type=="Stalled")].status} {.status.conditions[?(@.type=="Stalled")].reason}`)
	r.shows(m, "app-gz01-blue app-gz01-canary", "get", "deployments", "--output=jsonpath={.items[*].metadata.name}")
	if after := in.Kubectl("get", "deployment", "app-gz01-blue", "--output=jsonpath={.metadata.generation}{.metadata.labels}"); after != before {
		t.Errorf("it was %s, and is %s", before, after)
	}
	in.Kubectl("delete", "deployment", "app-gz01-blue")
	r.shows(m, "Running 3 3 v1", "get", "ad", "app", columns)
	in.Kubectl("delete", "ad", "app", "--timeout=5m")
}

// TestAutoscaler: the number of replicas is the autoscaler's once there is one.
func TestAutoscaler(t *testing.T) {
	r, m := newMember(t)
	in := r.on(m)
	in.KubectlWith(part("app", "deployment", "v1", 2), "apply", "--filename", "-")
	r.shows(m, "Running 3 3 v1", "get", "ad", "app", columns)
	in.KubectlWith(`{"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"}, "spec": {"minReplicas": 4, "maxReplicas": 9,
		"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "app-gz01-blue"}, "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}]}}`,
		"apply", "--filename", "-")
	r.shows(m, "Running 5 5 v1", "get", "ad", "app", columns)
	in.KubectlWith(part("app", "deployment", "v2", 3), "apply", "--filename", "-")
	r.shows(m, "Running 5 5 v2", "get", "ad", "app", columns)
	r.shows(m, "4", "get", "deployment", "app-gz01-blue", "--output=jsonpath={.spec.replicas}")
	in.Kubectl("delete", "ad", "app", "--timeout=5m")
}

// TestSetFree: kubectl delete --cascade=orphan leaves the children, and an AdvDeployment
// of the same name adopts them.
func TestSetFree(t *testing.T) {
	r, m := newMember(t)
	in := r.on(m)
	in.KubectlWith(part("app", "InPlaceSet", "v1", 2), "apply", "--filename", "-")
	r.shows(m, "Running 3 3 v1", "get", "ad", "app", columns)
	uids := in.Kubectl("get", "tapps,pods", "--output=jsonpath={.items[*].metadata.uid}")
	in.Kubectl("delete", "ad", "app", "--cascade=orphan", "--timeout=5m")
	r.shows(m, "", "get", "tapps", "--output=jsonpath={.items[*].metadata.ownerReferences}")
	in.KubectlWith(part("app", "InPlaceSet", "v1", 2), "apply", "--filename", "-")
	r.shows(m, "Running 3 3 v1", "get", "ad", "app", columns)
	if now := in.Kubectl("get", "tapps,pods", "--output=jsonpath={.items[*].metadata.uid}"); now != uids {
		t.Errorf("it made others: %s, %s", uids, now)
	}
	in.Kubectl("delete", "ad", "app", "--timeout=5m")
}
