//go:build cluster

package api

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/api"
	"tkestack.io/tapp/api/server"
	apiv1 "tkestack.io/tapp/api/v1"
	"tkestack.io/tapp/controller"
	"tkestack.io/tapp/crd/client"
	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/test/cluster"
)

// silent is a cluster whose address nobody listens at.
const silent = `apiVersion: v1
kind: Config
clusters: [{name: away, cluster: {server: "https://127.0.0.1:1", certificate-authority-data: %s}}]
users: [{name: hub, user: {token: none}}]
contexts: [{name: away, context: {cluster: away, user: hub}}]
current-context: away
`

// fleetRig is a hub that is its own member "here", beside the member "away" that never answers.
type fleetRig struct {
	*rig
	appSets client.AppSetInterface
}

func newFleetRig(t *testing.T, change ...func(*server.Config)) *fleetRig {
	t.Helper()
	r := &fleetRig{rig: &rig{Rig: cluster.New(t, "api")}}
	r.ForceDeletePods()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "away", Labels: map[string]string{v1beta1.LabelOwner: v1beta1.OwnerLegacy}}, Data: map[string][]byte{v1beta1.KeyKubeconfig: fmt.Appendf(nil, silent, base64.StdEncoding.EncodeToString(r.authority()))}}
	if _, err := r.Kube.CoreV1().Secrets(r.NS).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	sets, err := client.NewAppSets(r.Config)
	if err != nil {
		t.Fatal(err)
	}
	r.appSets = sets.AppSets(r.NS)
	r.Start([]string{"tapp", "app", "advdeployment", "appset"}, func(c *controller.Config) {
		c.Fleet = controller.FleetConfig{ClusterNamespace: r.NS, ID: r.NS, SelfCluster: "here", AllowLocal: true, NoMemberLease: true}
	})
	r.serve(append([]func(*server.Config){func(c *server.Config) {
		c.Clusters = api.MembersOptions{Namespace: r.NS, FleetID: r.NS, SelfCluster: "here", AllowLocal: true}
	}}, change...)...)
	return r
}

// store is an AppSet of three instances here and two away.
func (r *fleetRig) store(version string) string {
	return fmt.Sprintf(`apiVersion: workload.dmall.com/v1beta1
kind: AppSet
metadata: {name: store, namespace: %s}
spec:
  updateStrategy: {upgradeType: canary|blue, needWaitingForConfirm: true}
  podSpec:
    deployType: InPlaceSet
    template: {spec: {terminationGracePeriodSeconds: 0, containers: [{name: store, image: nginx}]}}
  clusterTopology:
    clusters:
    - {name: here, meta: {sym-available-zone: bj4}, podSets: [{name: store-gz01-canary, replicas: 1, version: %[2]s}, {name: store-gz01-blue, replicas: 2, version: %[2]s}]}
    - {name: away, meta: {sym-available-zone: bj5}, podSets: [{name: store-rz01-blue, replicas: 2, version: %[2]s}]}
`, r.NS, version)
}

func (r *fleetRig) apply(manifest string) {
	r.Helper()
	r.KubectlWith(manifest, "apply", "--filename", "-")
}

// TestFleet: what is told of an AppSet in a cluster that answers and in one that does not.
func TestFleet(t *testing.T) {
	r := newFleetRig(t)
	operator := r.user("operator", rule("get list", v1beta1.GroupName, "appsets"), rule("get", v1beta1.GroupName, "appsets/instances appsets/log"))
	viewer, stranger := r.user("reader", rule("get list", v1beta1.GroupName, "appsets")), r.user("stranger", rule("get", "", "pods pods/log"))
	of, members := "/api/v1/namespaces/"+r.NS+"/appsets", "/api/v1/clusters/here/namespaces/"+r.NS

	// Before it is there: the preview tells of a creation, and writes nothing.
	plan := r.preview(operator, r.store("v1"))
	if want := "at once: 5 instances are created: the podSet is new"; !plan.Created || len(plan.Sentences) == 0 || plan.Sentences[0] != want {
		t.Errorf("%+v, want %q", plan, want)
	}
	if _, err := r.appSets.Get(t.Context(), "store", metav1.GetOptions{}); err == nil {
		t.Error("the preview made an AppSet")
	}

	list := r.watch(of+"?watch=1", operator)
	list.next(r.rig, "list")
	r.apply(r.store("v1"))
	list.until(r.rig, "change", func(data string) bool {
		return strings.Contains(data, `"available":3`) && strings.Contains(data, "away")
	})
	one := get[apiv1.AppSetDetail](r.rig, of+"/store", operator)
	if one.Desired != 5 || one.Available != 3 || len(one.ClusterStatuses) != 2 || len(one.Attention) == 0 || one.Attention[len(one.Attention)-1].Cluster != "away" {
		t.Errorf("%+v", one)
	}

	// Its pods, live: the cluster that is away is told, and the others are there.
	all := get[apiv1.FleetInstanceList](r.rig, of+"/store/instances", operator)
	if all.Total != 3 || all.Degraded != "1 of 2 clusters did not answer: away" || len(all.Clusters) != 2 || all.Clusters[0].Error == "" || all.Clusters[1].Instances != 3 {
		t.Errorf("%+v", all)
	}
	blue := get[apiv1.FleetInstanceList](r.rig, of+"/store/instances?cluster=Here&group=blue&zone=bj4&limit=1", operator)
	if blue.Total != 2 || len(blue.Items) != 1 || blue.Items[0].Name != "store-gz01-blue-0" || blue.Items[0].ID != "0" || blue.Items[0].PodSet != "store-gz01-blue" || blue.Items[0].Owner != "AppSet/store" || blue.Continue == "" {
		t.Errorf("%+v", blue)
	}
	next := get[apiv1.FleetInstanceList](r.rig, of+"/store/instances?group=blue&limit=1&continue="+blue.Continue, operator)
	if len(next.Items) != 1 || next.Items[0].ID != "1" || next.Continue != "" {
		t.Errorf("%+v", next)
	}
	part := get[apiv1.PartDetail](r.rig, members+"/advdeployments/store", operator)
	if part.Cluster != "here" || part.State != "Ready" || part.Available != 3 || len(part.PodSets) != 2 || part.AppSet != r.NS+"/store" {
		t.Errorf("%+v", part)
	}
	r.parts(operator, part.Part)
	pod := get[apiv1.Pod](r.rig, members+"/pods/store-gz01-canary-0", operator)
	if pod.Cluster != "here" || !pod.Ready || pod.Containers[0].Image != "nginx:v1" {
		t.Errorf("%+v", pod)
	}
	if events := get[apiv1.List[apiv1.Event]](r.rig, members+"/pods/store-gz01-canary-0/events", operator); events.Total == 0 {
		t.Error("the pod has no events")
	}
	r.aliases(operator)
	r.strange(operator, viewer, stranger)
	r.rollout(operator, list)
}

// parts in all clusters, in one, and in a namespace of one; not those of AppSets that one may not
// see, or that only say so.
func (r *fleetRig) parts(token string, want apiv1.Part) {
	r.Helper()
	r.apply(strings.ReplaceAll(r.store("v1"), "name: store", "name: market"))
	r.Eventually("the part of another AppSet", func(context.Context) error {
		_, err := r.TryKubectl("get", "advdeployment", "market")
		return err
	})
	r.apply(fmt.Sprintf(`apiVersion: workload.dmall.com/v1beta1
kind: AdvDeployment
metadata: {name: forged, namespace: %[1]s, annotations: {%[2]s: %[1]s/store}, labels: {%[3]s: forged}}
spec: {podSpec: {deployType: InPlaceSet, template: {spec: {containers: [{name: forged, image: nginx}]}}}, topology: {podSets: []}}
`, r.NS, v1beta1.AnnotationAppSet, v1beta1.LabelAppSetUID))
	const here = "/api/v1/clusters/Here"
	for path, degraded := range map[string]string{"/api/v1/advdeployments": "1 of 2 clusters do not answer: away", here + "/advdeployments": "", here + "/namespaces/" + r.NS + "/advdeployments": ""} {
		list := get[apiv1.List[apiv1.Part]](r.rig, path, token)
		if len(list.Items) != 2 || list.Total != 2 || list.Items[0].Name != "market" || list.Items[1] != want || list.Degraded != degraded {
			r.Errorf("%s: %+v, want %+v", path, list, want)
		}
		first := get[apiv1.List[apiv1.Part]](r.rig, path+"?limit=1", token)
		if next := get[apiv1.List[apiv1.Part]](r.rig, path+"?limit=1&continue="+first.Continue, token); len(first.Items) != 1 || first.Items[0].Name != "market" || len(next.Items) != 1 || next.Items[0] != want || next.Continue != "" {
			r.Errorf("%s: %+v and %+v", path, first, next)
		}
	}
	if list := get[apiv1.List[apiv1.Part]](r.rig, "/api/v1/clusters/away/advdeployments", token); len(list.Items) != 0 || list.Degraded != "1 of 1 clusters do not answer: away" {
		r.Errorf("%+v", list)
	}
	r.Kubectl("delete", "advdeployment", "forged", "--wait=false")
	r.Kubectl("delete", "as", "market", "--wait=false")
}

func (r *fleetRig) preview(token, manifest string) (out apiv1.AppSetPreview) {
	r.Helper()
	response, body := r.ask(http.MethodPost, "/api/v1/namespaces/"+r.NS+"/appsets:preview", token, manifest)
	if err := json.Unmarshal([]byte(body), &out); err != nil || response.StatusCode != http.StatusOK {
		r.Fatalf("%s %s", response.Status, body)
	}
	return out
}

// aliases of the original system say the same.
func (r *fleetRig) aliases(token string) {
	r.Helper()
	const of = "/api/cluster/"
	namespaced := "/namespace/" + r.NS
	if clusters := get[apiv1.List[apiv1.Cluster]](r.rig, of+"all", token); clusters.Total != 2 || clusters.Items[1].Name != "here" {
		r.Errorf("%+v", clusters)
	}
	if one := get[apiv1.List[apiv1.Cluster]](r.rig, of+"HERE", token); one.Total != 1 || one.Items[0].State != "Ready" {
		r.Errorf("%+v", one)
	}
	resource := get[apiv1.AliasResource](r.rig, of+"all"+namespaced+"/app/store/resource?group=blue&ldcLabel=gz01", token)
	if resource.Pods.Total != 2 || len(resource.PodSets) != 2 {
		r.Errorf("%+v", resource)
	}
	for _, path := range []string{"/appPod/store?namespace=" + r.NS, "/appPods/labels?appName=store&namespace=" + r.NS} {
		if pods := get[apiv1.FleetInstanceList](r.rig, of+"here"+path, token); pods.Total != 3 {
			r.Errorf("%s: %+v", path, pods)
		}
	}
	stat := get[apiv1.List[v1beta1.PodSetStatus]](r.rig, of+"here/deployments/stat?appName=store&namespace="+r.NS, token)
	if stat.Total != 2 || stat.Items[0].Desired+stat.Items[1].Desired != 3 {
		r.Errorf("%+v", stat)
	}
	if releases := get[apiv1.List[v1beta1.PodSetStatus]](r.rig, of+"here/appPod/store/helm?namespace="+r.NS, token); releases.Total != 2 {
		r.Errorf("%+v", releases)
	}
	if endpoints := get[apiv1.List[apiv1.Endpoint]](r.rig, of+"all/endpoints/store?namespace="+r.NS, token); endpoints.Total != 3 || endpoints.Items[0].IP == "" {
		r.Errorf("%+v", endpoints)
	}
	if pod := get[apiv1.Pod](r.rig, of+"here"+namespaced+"/pod/store-gz01-blue-1", token); pod.Name != "store-gz01-blue-1" {
		r.Errorf("%+v", pod)
	}
	if events := get[apiv1.List[apiv1.Event]](r.rig, of+"here"+namespaced+"/pods/store-gz01-blue-1/event", token); events.Total == 0 {
		r.Error("the pod has no events")
	}
}

// strange requests: what one may not see looks as if it were not there, and a pod is known by its
// owners and not by its labels.
func (r *fleetRig) strange(operator, viewer, stranger string) {
	r.Helper()
	forged := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "lookalike", Labels: map[string]string{"app": "store", "release": "store-gz01-blue", "sym-group": "blue"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "demo:v1"}}}}
	if _, err := r.Kube.CoreV1().Pods(r.NS).Create(r.Context(), forged, metav1.CreateOptions{}); err != nil {
		r.Fatal(err)
	}
	of, members := "/api/v1/namespaces/"+r.NS+"/appsets", "/api/v1/clusters/here/namespaces/"+r.NS
	away := "/api/v1/clusters/away/namespaces/" + r.NS
	account := func(name string) string { return "system:serviceaccount:" + r.NS + ":" + name }
	hidden := func(pod string) string {
		return fmt.Sprintf("pods %q in cluster here is not of an AppSet that you may get", pod)
	}
	for _, c := range []struct {
		name, path, token string
		code              int
		message           string
	}{
		{"a pod with labels of others", members + "/pods/lookalike", operator, 404, hidden("lookalike")},
		{"its log", members + "/pods/lookalike/log", operator, 404, hidden("lookalike")},
		{"no such pod", members + "/pods/none", operator, 404, hidden("none")},
		{"a stranger's pod", members + "/pods/store-gz01-blue-0", stranger, 404, hidden("store-gz01-blue-0")},
		{"a stranger's parts", "/api/v1/advdeployments", stranger, 403, `appsets.workload.dmall.com is forbidden: ` + account("stranger") + ` may not list appsets in all namespaces`},
		{"parts in no such cluster", "/api/v1/clusters/none/advdeployments", operator, 404, `no AppSet that you may see is in a cluster "none"`},
		{"a stranger's part", members + "/advdeployments/store", stranger, 404, `advdeployments "store" in cluster here is not of an AppSet that you may get`},
		{"no such part", members + "/advdeployments/none", operator, 404, `advdeployments "none" in cluster here is not of an AppSet that you may get`},
		{"a pod without the right to instances", members + "/pods/store-gz01-blue-0", viewer, 403, `appsets/instances.workload.dmall.com "store" is forbidden: ` + account("reader") + ` may not get appsets/instances in namespace ` + r.NS},
		{"a log without the right to logs", members + "/pods/store-gz01-blue-0/log", viewer, 403, `appsets/log.workload.dmall.com "store" is forbidden: ` + account("reader") + ` may not get appsets/log in namespace ` + r.NS},
		{"instances without the right", of + "/store/instances", viewer, 403, `appsets/instances.workload.dmall.com "store" is forbidden: ` + account("reader") + ` may not get appsets/instances in namespace ` + r.NS},
		{"instances of a stranger's", of + "/store/instances", stranger, 403, `appsets.workload.dmall.com "store" is forbidden: ` + account("stranger") + ` may not get appsets in namespace ` + r.NS},
		{"no such cluster", "/api/v1/clusters/none/namespaces/" + r.NS + "/pods/a", operator, 404, `no cluster is registered as "none"`},
		{"a cluster that it is not in", of + "/store/instances?cluster=none", operator, 404, `AppSet store is in no cluster "none"`},
		{"all clusters for one pod", "/api/cluster/all/namespace/" + r.NS + "/pod/a", operator, 400, "name one cluster: all is for lists"},
		{"no name", "/api/cluster/all/appPods/labels", operator, 400, `the appName "" is not one that Kubernetes has: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`},
		{"exec of the original system", "/api/cluster/here/exec", operator, 404, "there is no route /api/cluster/here/exec; /api/openapi.json lists them"},
		{"a restart of the original system", "/api/cluster/here/namespace/" + r.NS + "/app/store/restart", operator, 404, "there is no route /api/cluster/here/namespace/" + r.NS + "/app/store/restart; /api/openapi.json lists them"},
	} {
		response, body := r.ask(http.MethodGet, c.path, c.token, "")
		var status metav1.Status
		if err := json.Unmarshal([]byte(body), &status); err != nil || response.StatusCode != c.code || status.Message != c.message {
			r.Errorf("%s: got %d %s\nwant %d %s", c.name, response.StatusCode, body, c.code, c.message)
		}
	}
	if shown := get[apiv1.FleetInstanceList](r.rig, of+"/store/instances", operator); shown.Total != 3 {
		r.Errorf("with the lookalike: %+v", shown)
	}
	if response, body := r.ask(http.MethodGet, away+"/pods/a", operator, ""); response.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "cluster away is Offline") {
		r.Errorf("%s %s", response.Status, body)
	}
}

// rollout to another version: foreseen with its stages, and then part of the history.
func (r *fleetRig) rollout(token string, list *stream) {
	r.Helper()
	of := "/api/v1/namespaces/" + r.NS + "/appsets"
	plan := r.preview(token, r.store("v2"))
	if len(plan.Stages) != 2 || !plan.Stages[0].Confirm || len(plan.Sentences) < 2 ||
		plan.Sentences[0] != "stage canary (here): 1 instance is updated in place: image of store from nginx:v1 to nginx:v2; then it waits for a confirmation" || len(plan.Changes) != 3 {
		r.Errorf("%+v", plan)
	}
	if bad := r.preview(token, strings.Replace(r.store("v2"), "replicas: 1", `replicas: "200%"`, 1)); len(bad.Problems) != 1 || len(bad.Sentences) != 0 {
		r.Errorf("%+v", bad)
	}
	r.apply(r.store("v2"))
	list.until(r.rig, "change", func(data string) bool { return strings.Contains(data, `"stage":"canary"`) })
	r.Eventually("two revisions", func(context.Context) error {
		history := get[apiv1.List[apiv1.AppSetRevision]](r.rig, of+"/store/history", token)
		if history.Total != 2 {
			return fmt.Errorf("%+v", history)
		}
		first, second := history.Items[0], history.Items[1]
		if first.Versions != "v1" || first.Command != fmt.Sprintf("kubectl tapp fleet undo store -n %s --to-revision %d", r.NS, first.Revision.Revision) || !second.Update || second.Versions != "v2" || len(second.Changes) != 3 || second.Command != "" {
			return fmt.Errorf("%+v", history)
		}
		return nil
	})
}
