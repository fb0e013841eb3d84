//go:build cluster

package install

import (
	"bufio"
	"context"
	"crypto/x509"
	"maps"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/test/cluster"
)

const apiName = releaseName + "-api"

// everyKind are the values of an installation with all that there is.
var everyKind = []string{"tls.mode=certManager", "api.enabled=true", "controllers.app.enabled=true", "controllers.appset.enabled=true",
	"controllers.advdeployment.enabled=true", "fleet.selfCluster=here"}

// neverSeenOfAPI are rights of the API's account that no request in the audit log shows.
var neverSeenOfAPI = map[right]string{
	{"apps.tkestack.io", "tapps", "list"}:             listed,
	{"apps.tkestack.io", "tapps", "watch"}:            streamed,
	{"appcontroller.k8s.io", "apps", "list"}:          listed,
	{"appcontroller.k8s.io", "apps", "watch"}:         streamed,
	{"workload.dmall.com", "appsets", "list"}:         listed,
	{"workload.dmall.com", "appsets", "watch"}:        streamed,
	{"workload.dmall.com", "advdeployments", "list"}:  listed,
	{"workload.dmall.com", "advdeployments", "watch"}: streamed,
	{"", "pods", "watch"}:                             streamed,
	{"", "persistentvolumeclaims", "list"}:            listed,
	{"", "persistentvolumeclaims", "watch"}:           streamed,
	{"", "secrets", "list"}:                           listed,
	{"", "secrets", "watch"}:                          streamed,
	{"", "configmaps", "list"}:                        listed,
	{"", "configmaps", "watch"}:                       streamed,
}

const streamed = "the audit log leaves watches out; what this test is shown comes by one"

// TestAPI: `tapp api` as the chart installs it, with every kind. It serves a certificate of
// cert-manager, shows what its caller may see, and its account has the rights that it uses and
// no others.
func TestAPI(t *testing.T) {
	r := newRig(t)
	log, err := suite.FollowAudit()
	if err != nil {
		t.Fatal(err)
	}
	kubectl(t, "--namespace", releaseSpace, "delete", "secret", apiName+"-tls", "--ignore-not-found")
	install(t, everyKind...)
	rolledOut(t)
	deploymentRolledOut(t, apiName)
	r.answers()
	appAnswers(r)
	c := r.callAPI()
	c.shows()
	c.follows()

	grants, uses := granted(t, apiName, everyKind...), used{}
	for _, missing := range without(neverSeenOfAPI, grants) {
		t.Errorf("%s is an exception, and not granted", missing)
	}
	expected := maps.Clone(grants)
	for r := range neverSeenOfAPI {
		delete(expected, r)
	}
	cluster.Eventually(t, "the audit log has every right of the API's account", func(context.Context) error {
		requests, err := log.Read()
		if err != nil {
			return err
		}
		for _, q := range requests {
			if q.User == account+"-api" && q.Resource != "" {
				uses.add(q)
				if q.Code == http.StatusForbidden {
					t.Errorf("the API may not: %s", q)
				}
			}
		}
		unused := without(expected, uses)
		return cluster.When(len(unused) > 0, "granted, and not used: "+strings.Join(unused, ", "))
	})
	for _, r := range without(uses, grants) {
		t.Errorf("asked for, and not granted: %s", r)
	}
}

// caller is a user of the API who may see what the cluster's role view has, and the pods of AppSets.
type caller struct {
	*rig
	*cluster.Caller
}

func (r *rig) callAPI() *caller {
	r.Helper()
	const name = "reader"
	secret, err := r.Kube.CoreV1().Secrets(releaseSpace).Get(r.Context(), apiName+"-tls", metav1.GetOptions{})
	if err != nil {
		r.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(secret.Data["ca.crt"])
	c := &caller{r, r.NewCaller(name, releaseName, releaseSpace, pool)}
	r.Kubectl("create", "rolebinding", name, "--clusterrole=view", "--serviceaccount="+r.NS+":"+name)
	r.Kubectl("create", "role", name, "--verb=get", "--resource=appsets.workload.dmall.com/instances,appsets.workload.dmall.com/log")
	r.Kubectl("create", "rolebinding", name+"-instances", "--role="+name, "--serviceaccount="+r.NS+":"+name)
	return c
}

// one of each kind, and beside them pods of a StatefulSet and of a DaemonSet that are nobody's.
const oneOfEach = `
apiVersion: workload.dmall.com/v1beta1
kind: AppSet
metadata: {name: store}
spec:
  podSpec:
    deployType: deployment
    template: {spec: {terminationGracePeriodSeconds: 1, containers: [{name: store, image: nginx}]}}
  clusterTopology:
    clusters:
    - {name: here, podSets: [{name: store-blue, replicas: 1, version: "1.25"}]}
---
apiVersion: appcontroller.k8s.io/v1
kind: App
metadata: {name: shop}
spec:
  deploymentTemplate: {name: shop, image: "nginx:1.25", replicas: 1}
  serviceTemplate: {name: shop}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: stranger}
spec:
  selector: {matchLabels: {app: stranger}}
  serviceName: stranger
  template:
    metadata: {labels: {app: stranger}}
    spec: {terminationGracePeriodSeconds: 1, containers: [{name: web, image: "nginx:1.25"}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: stranger}
spec:
  selector: {matchLabels: {app: daemon}}
  template:
    metadata: {labels: {app: daemon}}
    spec: {terminationGracePeriodSeconds: 1, containers: [{name: web, image: "nginx:1.25"}]}
`

// shows: routes of every kind answer with what there is.
func (c *caller) shows() {
	c.Helper()
	c.apply(goodTApp("web", 2, "nginx:1.25") + "---" + oneOfEach)
	c.WaitReady("web")
	c.Kubectl("wait", "app", "shop", "--for=condition=Ready", "--timeout="+patience.String())
	c.Kubectl("wait", "as", "store", "--for=condition=Ready", "--timeout="+patience.String())
	c.Kubectl("wait", "pod", "--selector=app in (stranger, daemon)", "--for=create", "--timeout="+patience.String())
	of, here := "/api/v1/namespaces/"+c.NS, "/api/v1/clusters/here/namespaces/"+c.NS
	pod := func(selector string) string {
		return c.Kubectl("get", "pods", "--selector="+selector, "--output=jsonpath={.items[0].metadata.name}")
	}
	shop, store := pod("appcontroller.k8s.io/app=shop"), pod("app=store")
	for path, words := range map[string][]string{
		"/api/v1/whoami":                    {"system:serviceaccount:" + c.NS + ":reader"},
		of + "/tapps":                       {`"name":"web"`, `"available":2`},
		of + "/tapps/web/history":           {`"revision":1`},
		of + "/tapps/web/events":            {`"kind":"TApp"`},
		of + "/pods/web-0":                  {`"owner":"TApp/web"`},
		of + "/pods/web-0/log":              {""},
		of + "/apps":                        {`"name":"shop"`, `"state":"Ready"`},
		of + "/pods/" + shop:                {`"owner":"App/shop"`},
		of + "/appsets":                     {`"name":"store"`, `"available":1`},
		of + "/appsets/store/history":       {`"revision":1`},
		of + "/appsets/store/instances":     {store, `"ready":true`},
		"/api/v1/clusters":                  {`"name":"here"`, `"state":"Ready"`},
		here + "/advdeployments":            {`"name":"store"`, `"state":"Ready"`},
		here + "/advdeployments/store":      {`"available":1`},
		here + "/pods/" + store:             {`"owner":"AppSet/store"`},
		here + "/pods/" + store + "/events": {`"kind":"Pod"`},
		here + "/pods/" + store + "/log":    {""},
	} {
		c.Tells(path, http.StatusOK, words...)
	}
	for _, selector := range []string{"app=stranger", "app=daemon"} {
		c.Tells(here+"/pods/"+pod(selector), http.StatusNotFound, "is not of an AppSet that you may get")
	}
	c.Tells("/api/v1/namespaces/kube-system/tapps", http.StatusForbidden, "reader may not list tapps in namespace kube-system")
}

// follows: a stream tells of an instance that comes.
func (c *caller) follows() {
	c.Helper()
	response, err := c.Open(c.Context(), "/api/v1/namespaces/"+c.NS+"/tapps/web/instances?watch=1")
	if err != nil {
		c.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	events := bufio.NewScanner(response.Body)
	events.Buffer(nil, 1<<20)
	next := func(word string) {
		c.Helper()
		for events.Scan() {
			if strings.HasPrefix(events.Text(), "data: ") && strings.Contains(events.Text(), word) {
				return
			}
		}
		c.Fatalf("the stream ended before %s: %v", word, events.Err())
	}
	next(`"total":2`)
	c.Kubectl("scale", "tapp", "web", "--replicas=3")
	next(`"pod":"web-2"`)
	c.Kubectl("delete", "as", "store", "--timeout="+patience.String())
}
