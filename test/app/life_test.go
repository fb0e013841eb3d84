//go:build cluster

package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	appv1 "tkestack.io/tapp/crd/app/v1"
)

const synced = "Normal Synced: App synced successfully"

// transitions change every field of an App; what they must lead to is asked of the
// Deployment and the Service themselves.
var transitions = []struct {
	name   string
	change func(*appv1.AppSpec)
	holds  func(*rig) error
}{
	{"image", func(s *appv1.AppSpec) { s.DeploymentTemplate.Image = "nginx:1.27" }, func(r *rig) error {
		return differs("image", r.container("web").Image, "nginx:1.27")
	}},
	{"more replicas", func(s *appv1.AppSpec) { *s.DeploymentTemplate.Replicas = 3 }, func(r *rig) error {
		return differs("ready pods", r.deployment("web").Status.ReadyReplicas, int32(3))
	}},
	{"no replicas", func(s *appv1.AppSpec) { *s.DeploymentTemplate.Replicas = 0 }, func(r *rig) error {
		return differs("pods", r.deployment("web").Status.Replicas, int32(0))
	}},
	{"ports", func(s *appv1.AppSpec) {
		s.DeploymentTemplate.Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 80}}
	}, func(r *rig) error {
		return differs("ports", fmt.Sprint(len(r.container("web").Ports), r.service("web").Spec.Ports[0].TargetPort.IntVal), "1 80")
	}},
	{"env", func(s *appv1.AppSpec) {
		s.DeploymentTemplate.Env = []corev1.EnvVar{{Name: "A", Value: "b"}, {Name: "EMPTY"}, {Name: "NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}}
	}, func(r *rig) error { return differs("variables", len(r.container("web").Env), 3) }},
	{"resources", func(s *appv1.AppSpec) {
		s.DeploymentTemplate.Resources = corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("0.1")}}
	}, func(r *rig) error { return differs("cpu", r.cpu("web"), "100m") }},
	{"port", func(s *appv1.AppSpec) { s.ServiceTemplate.Port = 80 }, func(r *rig) error {
		return differs("ports", fmt.Sprint(len(r.service("web").Spec.Ports), r.service("web").Spec.Ports[0].Port), "1 80")
	}},
	{"node port", func(s *appv1.AppSpec) { s.ServiceTemplate.Type = corev1.ServiceTypeNodePort }, func(r *rig) error {
		if s := r.service("web").Spec; s.Type != corev1.ServiceTypeNodePort || s.Ports[0].NodePort == 0 {
			return fmt.Errorf("%+v", s)
		}
		return nil
	}},
	{"load balancer", func(s *appv1.AppSpec) { s.ServiceTemplate.Type = corev1.ServiceTypeLoadBalancer }, func(r *rig) error {
		return differs("type", r.service("web").Spec.Type, corev1.ServiceTypeLoadBalancer)
	}},
	{"deployment renamed", func(s *appv1.AppSpec) { s.DeploymentTemplate.Name = "other" }, func(r *rig) error {
		return differs("Deployments", r.names("deployments"), "other")
	}},
	{"deployment emptied", func(s *appv1.AppSpec) { s.DeploymentTemplate.Name = "" }, func(r *rig) error {
		return differs("Deployments", r.names("deployments"), "")
	}},
	{"service renamed", func(s *appv1.AppSpec) { s.ServiceTemplate.Name = "other" }, func(r *rig) error {
		return differs("Services", r.names("services"), "other")
	}},
	{"service emptied", func(s *appv1.AppSpec) { s.ServiceTemplate = appv1.ServiceTemplate{} }, func(r *rig) error {
		return differs("Services", r.names("services"), "")
	}},
}

func differs[T comparable](what string, got, want T) error {
	if got != want {
		return fmt.Errorf("%s: %v, want %v", what, got, want)
	}
	return nil
}

func (r *rig) container(deployment string) corev1.Container {
	return r.deployment(deployment).Spec.Template.Spec.Containers[0]
}

func (r *rig) names(resource string) string {
	r.Helper()
	return strings.TrimSpace(r.Kubectl("get", resource, "-o", "jsonpath={.items[*].metadata.name}"))
}

// TestTransitions: every field changes and changes back.
func TestTransitions(t *testing.T) {
	r := newRig(t, "")
	r.create(simple("web", 1))
	r.ready("web")
	deployment, service := r.deployment("web"), r.service("web")
	for _, c := range transitions {
		r.edit("web", c.change)
		r.ready("web")
		r.Eventually(c.name, func(context.Context) error { return c.holds(r) })
		r.edit("web", func(s *appv1.AppSpec) { *s = simple("web", 1).Spec })
		r.ready("web")
		r.Eventually(c.name+", and back", func(context.Context) error {
			d, s := r.deployment("web"), r.service("web")
			switch {
			case d == nil || s == nil || r.names("deployments")+r.names("services") != "webweb":
				return errors.New(r.names("deployments,services"))
			case !equality.Semantic.DeepEqual(d.Spec, deployment.Spec):
				return fmt.Errorf("the Deployment was %+v\nand is %+v", deployment.Spec, d.Spec)
			case s.Spec.Type != service.Spec.Type || !equality.Semantic.DeepEqual(s.Spec.Ports, service.Spec.Ports) || !maps.Equal(s.Spec.Selector, service.Spec.Selector):
				return fmt.Errorf("the Service was %+v\nand is %+v", service.Spec, s.Spec)
			}
			return nil
		})
	}
}

// TestDrift: what others do to the children is put right, and what the App does not
// speak of is left to them.
func TestDrift(t *testing.T) {
	r := newRig(t, "")
	withEmpty := simple("web", 1)
	withEmpty.Spec.DeploymentTemplate.Env = []corev1.EnvVar{{Name: "EMPTY"}}
	r.create(withEmpty)
	r.ready("web")
	for name, c := range map[string]struct {
		do    func()
		right func(context.Context) error
	}{
		"image": {func() { r.Kubectl("set", "image", "deployment/web", "app-deploy-container=nginx:1.7.9") },
			func(context.Context) error { return differs("image", r.container("web").Image, "nginx:1.25") }},
		"scale": {func() { r.Kubectl("scale", "deployment/web", "--replicas=4") },
			func(context.Context) error { return differs("replicas", *r.deployment("web").Spec.Replicas, int32(1)) }},
		"labels": {func() { r.Kubectl("label", "deployment/web", "service/web", appv1.LabelApp+"-") }, func(context.Context) error {
			return differs("labels", r.deployment("web").Labels[appv1.LabelApp]+r.service("web").Labels[appv1.LabelApp], "webweb")
		}},
		"selector": {func() {
			r.Kubectl("patch", "service", "web", "--type=merge", "-p", `{"spec":{"selector":{"app":"else"}}}`)
		},
			func(context.Context) error {
				return differs("selector", fmt.Sprint(r.service("web").Spec.Selector), "map["+appv1.LabelApp+":web]")
			}},
		"selector's value": {func() {
			r.Kubectl("patch", "service", "web", "--type=merge", "-p", `{"spec":{"selector":{"`+appv1.LabelApp+`":"else"}}}`)
		},
			func(context.Context) error {
				return differs("selector", r.service("web").Spec.Selector[appv1.LabelApp], "web")
			}},
		"port": {func() {
			r.Kubectl("patch", "service", "web", "--type=json", "-p", `[{"op":"add","path":"/spec/ports/0/port","value":8181}]`)
		},
			func(context.Context) error {
				ports := r.service("web").Spec.Ports
				return differs("ports", fmt.Sprint(len(ports), " ", ports[0].Port), "1 8080")
			}},
		"empty variable": {func() {
			r.Kubectl("set", "env", "deployment/web", "EMPTY=2")
		},
			func(context.Context) error { return differs("variable", r.container("web").Env[0].Value, "") }},
		"deleted": {func() { r.Kubectl("delete", "deployment/web", "service/web") }, func(context.Context) error {
			if r.deployment("web") == nil || r.service("web") == nil {
				return errors.New("not there")
			}
			return nil
		}},
		"deleted in the foreground": {func() { r.Kubectl("delete", "deployment/web", "--cascade=foreground") }, func(context.Context) error {
			if d := r.deployment("web"); d == nil || d.DeletionTimestamp != nil {
				return errors.New("not there")
			}
			return nil
		}},
	} {
		c.do()
		r.Eventually(name, c.right)
		r.ready("web")
	}

	r.Kubectl("annotate", "deployment/web", "note=theirs")
	r.Kubectl("set", "env", "deployment/web", "THEIRS=1")
	r.edit("web", func(s *appv1.AppSpec) {
		s.DeploymentTemplate.Env = []corev1.EnvVar{{Name: "OURS", Value: "1"}}
	})
	r.ready("web")
	if d := r.deployment("web"); d.Annotations["note"] != "theirs" || len(r.container("web").Env) != 2 {
		t.Errorf("what others added is not left to them: %v, %v", d.Annotations, r.container("web").Env)
	}
}

// TestCascade: background and foreground deletion take the children along, orphans
// stay as they are, and an App of the same name takes them up.
func TestCascade(t *testing.T) {
	r := newRig(t, "")
	for _, cascade := range []string{"background", "foreground"} {
		r.create(simple("web", 1))
		r.ready("web")
		r.Kubectl("delete", "app", "web", "--cascade="+cascade)
		r.Eventually(cascade, func(context.Context) error {
			return differs("left", r.names("apps.appcontroller.k8s.io,deployments,services,pods"), "")
		})
	}
	r.create(simple("web", 1))
	r.ready("web")
	deployment, service := r.deployment("web").UID, r.service("web").UID
	r.Kubectl("delete", "app", "web", "--cascade=orphan")
	r.Eventually("the children are free", func(context.Context) error {
		return differs("owners", len(r.deployment("web").OwnerReferences)+len(r.service("web").OwnerReferences), 0)
	})
	r.Never(3*time.Second, "orphans are left alone", func(context.Context) error {
		if r.deployment("web").DeletionTimestamp != nil || len(r.deployment("web").OwnerReferences) > 0 {
			return errors.New("not so")
		}
		return nil
	})
	r.create(simple("web", 2))
	a := r.ready("web")
	if d, s := r.deployment("web"), r.service("web"); d.UID != deployment || s.UID != service || d.OwnerReferences[0].UID != a.UID || *d.Spec.Replicas != 2 {
		t.Errorf("the orphans were not taken up: %v, %v", d.ObjectMeta, s.ObjectMeta)
	}
}

// TestConflict: what belongs to somebody else is not touched, and its name is taken
// as soon as it is free.
func TestConflict(t *testing.T) {
	r := newRig(t, "")
	r.Kubectl("create", "deployment", "web", "--image=nginx:1.7.9")
	r.Kubectl("create", "service", "clusterip", "web", "--tcp=1:1")
	const exists = `Resource "web" already exists and is not managed by App`
	r.create(simple("web", 1))
	r.stalled("web", exists+": there is a Deployment of this name, and nobody controls it; "+exists+": there is a Service of this name, and nobody controls it")
	r.hasEvent("web", "Warning ErrResourceExists: "+exists)
	r.Never(3*time.Second, "it is not touched", func(context.Context) error {
		fields := append(r.deployment("web").ManagedFields, r.service("web").ManagedFields...)
		if slices.ContainsFunc(fields, func(f metav1.ManagedFieldsEntry) bool { return f.Manager == appv1.Component }) {
			return fmt.Errorf("it was written to: %v", fields)
		}
		return nil
	})
	if n := r.events("web")["Warning ErrResourceExists: "+exists]; n != 1 {
		t.Errorf("the event was told %d times", n)
	}
	r.Kubectl("delete", "deployment/web", "service/web")
	a := r.ready("web")
	if d, s := r.deployment("web"), r.service("web"); d.OwnerReferences[0].UID != a.UID || s.OwnerReferences[0].UID != a.UID {
		t.Errorf("the App has not got them: %v, %v", d.OwnerReferences, s.OwnerReferences)
	}
	r.hasEvent("web", synced)

	// The same between two Apps: the second one waits, and is told by the cache.
	second := simple("second", 1)
	second.Spec.DeploymentTemplate.Name = "web"
	r.create(second)
	r.stalled("second", exists+`: there is a Deployment of this name, and App "web" controls it`)
	r.edit("web", func(s *appv1.AppSpec) { s.DeploymentTemplate.Name = "renamed" })
	r.ready("second")
	r.ready("web")
	if d := r.deployment("web"); d.OwnerReferences[0].Name != "second" || d.Spec.Selector.MatchLabels[appv1.LabelApp] != "second" {
		t.Errorf("it is %v's", d.OwnerReferences)
	}
}

// TestRefused: the API server's words reach the user, and a fixed App gets through.
func TestRefused(t *testing.T) {
	r := newRig(t, "")
	a := simple("web", 1)
	a.Spec.DeploymentTemplate.Image = ""
	r.create(a)
	r.stalled("web", `the cluster refuses Deployment "web": Deployment.apps "web" is invalid: spec.template.spec.containers[0].image: Required value`)
	if r.service("web") == nil {
		t.Error("the Service waits for the Deployment")
	}
	r.edit("web", func(s *appv1.AppSpec) { s.DeploymentTemplate.Image = "nginx:1.25" })
	r.ready("web")
}

// TestScale: by kubectl, and through the subresource with its selector, as an
// autoscaler does.
func TestScale(t *testing.T) {
	r := newRig(t, "")
	r.create(simple("web", 1))
	r.ready("web")
	r.Kubectl("scale", "app", "web", "--replicas=3")
	r.ready("web")
	var scale *autoscalingv1.Scale
	r.Eventually("the scale tells of three", func(ctx context.Context) error {
		var err error
		if scale, err = r.Apps.GetScale(ctx, "web", metav1.GetOptions{}); err != nil {
			return err
		}
		return differs("scale", fmt.Sprintf("%d %d %s", scale.Spec.Replicas, scale.Status.Replicas, scale.Status.Selector), "3 3 appcontroller.k8s.io/app=web")
	})
	pods, err := r.Kube.CoreV1().Pods(r.NS).List(t.Context(), metav1.ListOptions{LabelSelector: scale.Status.Selector})
	if err != nil || len(pods.Items) != 3 {
		t.Errorf("the selector matches %d pods, %v", len(pods.Items), err)
	}
	scale.Spec.Replicas = 0
	if _, err := r.Apps.UpdateScale(t.Context(), "web", scale, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if a := r.ready("web"); a.Status.Ready != "0/0" || *a.Spec.DeploymentTemplate.Replicas != 0 {
		t.Errorf("got %+v", a.Status)
	}
}

// TestTwoApps do not select each other's pods.
func TestTwoApps(t *testing.T) {
	r := newRig(t, "")
	r.create(simple("a", 1))
	r.create(simple("b", 2))
	r.ready("a")
	r.ready("b")
	for name, want := range map[string]int{"a": 1, "b": 2} {
		r.Eventually("the Service of "+name+" has its own endpoints", func(context.Context) error {
			out := r.Kubectl("get", "endpointslices", "-l", "kubernetes.io/service-name="+name, "-o", "json")
			var list struct {
				Items []struct{ Endpoints []any }
			}
			if err := json.Unmarshal([]byte(out), &list); err != nil || len(list.Items) != 1 {
				return errors.New(fmt.Sprint(err, len(list.Items)))
			}
			return differs("endpoints", len(list.Items[0].Endpoints), want)
		})
	}
}

// TestOverruled: admission that rewrites an image is not fought with.
func TestOverruled(t *testing.T) {
	r := newRig(t, "")
	policy := strings.ReplaceAll(`{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy", "metadata": {"name": "NAME"}, "spec": {
		"matchConstraints": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "NAME"}},
			"resourceRules": [{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["deployments"]}]},
		"failurePolicy": "Fail", "reinvocationPolicy": "Never", "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression":
			"[JSONPatch{op: \"replace\", path: \"/spec/template/spec/containers/0/image\", value: \"mirror.example.com/nginx:1.25\"}]"}}]}}`, "NAME", r.NS)
	binding := strings.ReplaceAll(`{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicyBinding", "metadata": {"name": "NAME"}, "spec": {"policyName": "NAME"}}`, "NAME", r.NS)
	for resource, manifest := range map[string]string{"mutatingadmissionpolicies": policy, "mutatingadmissionpolicybindings": binding} {
		path := "/apis/admissionregistration.k8s.io/v1/" + resource
		if err := r.Kube.RESTClient().Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body([]byte(manifest)).Do(t.Context()).Error(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Kubectl("delete", resource, r.NS) })
	}
	r.Eventually("the policy works", func(ctx context.Context) error {
		probe := simple("probe", 0)
		d := map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": probe.Name, "namespace": r.NS},
			"spec": map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"a": "b"}}, "template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"a": "b"}}, "spec": map[string]any{"containers": []any{map[string]any{"name": "a", "image": "a"}}}}}}
		content, err := json.Marshal(d)
		if err != nil {
			return err
		}
		out, err := r.Kube.AppsV1().Deployments(r.NS).Patch(ctx, probe.Name, types.ApplyPatchType, content, metav1.PatchOptions{FieldManager: "probe", DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return err
		}
		return differs("image", out.Spec.Template.Spec.Containers[0].Image, "mirror.example.com/nginx:1.25")
	})
	log := r.FollowAudit()
	r.create(simple("web", 1))
	a := r.ready("web")
	if !strings.HasSuffix(a.Status.Conditions[0].Message, "image is mirror.example.com/nginx:1.25 instead of nginx:1.25") {
		t.Errorf("the condition does not tell: %+v", a.Status.Conditions[0])
	}
	counts := r.rest(log)
	delete(counts, "patch apps/status 200")
	if got := slices.Sorted(maps.Keys(counts)); fmt.Sprint(counts) != "map[create events/ 201:1 patch deployments/ 201:1 patch services/ 201:1]" {
		t.Errorf("it was fought with: %v %v", got, counts)
	}
}

func (r *rig) cpu(deployment string) string {
	limits := r.container(deployment).Resources.Limits
	return limits.Cpu().String()
}
