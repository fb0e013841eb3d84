//go:build cluster

// Package pair tests the fleet as its users get it: a hub and a member, each a cluster
// with a real node, with TApp installed by Helm into a namespace of restricted pods.
package pair

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/test/audit"
	"tkestack.io/tapp/test/cluster"
)

const (
	releaseSpace = "tapp-system"
	restricted   = "pod-security.kubernetes.io/enforce"
	columns      = `--output=jsonpath={.status.aggrStatus.status} {.status.aggrStatus.desired} {.status.aggrStatus.available} {.status.aggrStatus.version}`
)

// shop is an AppSet in the member, as a kind of child, with the image as its version says.
func shop(name, deployType, version string) string {
	return fmt.Sprintf(`
apiVersion: workload.dmall.com/v1beta1
kind: AppSet
metadata: {name: %[1]s}
spec:
  serviceName: %[1]s.example.com
  podSpec:
    deployType: %[2]s
    template:
      spec:
        terminationGracePeriodSeconds: 1
        securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
        containers:
        - {name: %[1]s, image: demo, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}
  clusterTopology:
    clusters:
    - {name: member, podSets: [{name: %[1]s-gz01-canary, replicas: 1, version: %[3]s}, {name: %[1]s-gz01-blue, replicas: 2, version: %[3]s}]}
`, name, deployType, version)
}

// site is one of the two clusters, and the test's namespace there.
type site struct {
	*cluster.Rig
	audit *audit.Log
}

// connect to a cluster, make a namespace there, and install TApp.
func connect(t *testing.T, name string, values ...string) *site {
	t.Helper()
	dir, image := os.Getenv("TAPP_FLEET"), os.Getenv("TAPP_IMAGE")
	repository, tag, found := strings.Cut(image, ":")
	if dir == "" || !found {
		t.Fatal("TAPP_FLEET and TAPP_IMAGE name no clusters and no image: run this test by `make pair-test`")
	}
	c, err := cluster.ConnectTo(filepath.Join(dir, name, "kubeconfig"), "pair-test")
	if err != nil {
		t.Fatal(err)
	}
	s := &site{Rig: c.In(t, "pair")}
	for _, namespace := range []string{releaseSpace, s.NS} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{restricted: "restricted"}}}
		if _, err := s.Kube.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	plugin := s.Program("kubectl-tapp")
	if err := errors.Join(os.RemoveAll(plugin), os.Symlink(s.Program("tapp"), plugin)); err != nil {
		t.Fatal(err)
	}
	s.audit = s.FollowAudit()
	args := []string{"install", "tapp", "../../chart", "--namespace", releaseSpace, "--set", "image.repository=" + repository, "--set-string", "image.tag=" + tag, "--set", "tls.mode=selfManaged"}
	for _, v := range values {
		args = append(args, "--set", v)
	}
	s.run("helm", args...)
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		ctx := context.WithoutCancel(t.Context())
		logs, _ := s.Command(ctx, "", "kubectl", "--namespace", releaseSpace, "logs", "--selector=app.kubernetes.io/instance=tapp", "--prefix", "--tail=30")
		t.Logf("%s:\n%s\n%s\n%s", name, s.Describe(ctx, releaseSpace), s.Describe(ctx, s.NS), logs)
	})
	return s
}

// run a program, which must succeed.
func (s *site) run(program string, args ...string) string {
	s.Helper()
	out, err := s.Command(s.Context(), "", program, args...)
	if err != nil {
		s.Fatalf("%v: %s", err, out)
	}
	return out
}

// shows waits until kubectl prints this.
func (s *site) shows(want string, args ...string) {
	s.Helper()
	s.Eventually("kubectl "+strings.Join(args, " "), func(context.Context) error {
		got, err := s.TryKubectl(args...)
		if err != nil {
			return fmt.Errorf("%w: %s", err, got)
		}
		return cluster.When(strings.TrimSpace(got) != want, got)
	})
}

// TestPair: what the chart installs on a hub and in a member is a fleet once the member has
// joined: pods run on the member's real node, an update in place keeps them, the rights
// suffice, and an AppSet that is deleted leaves nothing.
func TestPair(t *testing.T) {
	hub := connect(t, "hub", "controllers.appset.enabled=true", "api.enabled=true")
	member := connect(t, "member", "controllers.advdeployment.enabled=true")
	for _, s := range []*site{hub, member} {
		s.run("kubectl", "--namespace", releaseSpace, "rollout", "status", "deployment/tapp", "--timeout="+cluster.Patience.String())
	}
	member.run("kubectl-tapp", "fleet", "join", "member", "--pods", "--hub-kubeconfig", hub.Kubeconfig)
	if got := hub.run("kubectl-tapp", "fleet", "clusters", "--output=name"); got != "member\n" {
		t.Errorf("clusters: %q", got)
	}

	// The webhooks of the chart judge AppSets.
	const bad = "{apiVersion: workload.dmall.com/v1beta1, kind: AppSet, metadata: {name: bad}, spec: {podSpec: {deployType: tapp}}}"
	const refused = `The AppSet "bad" is invalid: spec.podSpec.template: Invalid value: deployType InPlaceSet needs a pod template`
	hub.Eventually("a bad AppSet is refused", func(context.Context) error {
		out, err := hub.TryKubectlWith(bad, "create", "--filename", "-")
		return cluster.When(err == nil || strings.TrimSpace(out) != refused, out)
	})

	kinds := []struct{ name, deployType string }{{"web", "InPlaceSet"}, {"api", "deployment"}}
	for _, k := range kinds {
		hub.KubectlWith(shop(k.name, k.deployType, "v1"), "apply", "--filename", "-")
	}
	for _, k := range kinds {
		hub.shows("Running 3 3 v1", "get", "as", k.name, columns)
	}
	const images = `--output=jsonpath={.items[*].status.containerStatuses[*].image}`
	member.shows("6", "get", "pods", "--selector=app in (web, api)", "--field-selector=status.phase=Running,spec.nodeName=node1", "--output=go-template={{len .items}}")
	if out := member.Kubectl("logs", "web-gz01-blue-0"); out == "" {
		t.Error("the kubelet has no log of an instance")
	}
	followsLog(hub, member)
	const uids = `--output=jsonpath={.items[*].metadata.uid}`
	before := member.Kubectl("get", "pods", "--selector=app=web", "--sort-by=.metadata.name", uids)
	for _, k := range kinds {
		hub.KubectlWith(shop(k.name, k.deployType, "v2"), "apply", "--filename", "-")
	}
	for _, k := range kinds {
		hub.shows("Running 3 3 v2", "get", "as", k.name, columns)
	}
	if after := member.Kubectl("get", "pods", "--selector=app=web", "--sort-by=.metadata.name", uids); after != before {
		t.Errorf("the instances were %s, and are %s", before, after)
	}
	if got := member.Kubectl("get", "pods", "--selector=app=web", images); strings.Count(got, "demo:v2") != 3 {
		t.Errorf("their images are %s", got)
	}

	for _, k := range kinds {
		hub.Kubectl("delete", "as", k.name, "--timeout="+cluster.Patience.String())
	}
	member.shows("", "get", "advdeployments,tapps,deployments,services,replicasets,pods,controllerrevisions", "--output=name")
	hub.shows("", "get", "appsets,controllerrevisions", "--output=name")

	for name, s := range map[string]*site{"hub": hub, "member": member} {
		for _, q := range s.Requests(s.audit, audit.Filter{}) {
			if strings.HasPrefix(q.User, "system:serviceaccount:"+releaseSpace+":") && q.Code == 403 && !strings.HasPrefix(q.UserAgent, "kubectl-tapp") { // which tries a new token until it has its rights
				t.Errorf("%s: it has no right to %s", name, q)
			}
		}
		s.run("helm", "uninstall", "tapp", "--namespace", releaseSpace, "--wait")
	}
}
