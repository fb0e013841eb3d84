package app

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	appv1 "tkestack.io/tapp/crd/app/v1"
)

// owned is a cluster with the field ownership of the API server: an apply takes away
// only what the App alone has put there.
type owned struct {
	*testing.T
	app  *appv1.App
	kube *fake.Clientset
	// refused is what the API server, which judges what the fake does not, did not take.
	refused map[Child]string
}

func newOwned(t *testing.T) *owned {
	t.Helper()
	c := newCluster(spec(func(s *appv1.AppSpec) {
		s.DeploymentTemplate.Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 80, Protocol: corev1.ProtocolTCP}}
		s.DeploymentTemplate.Env = []corev1.EnvVar{{Name: "EMPTY"}, {Name: "FULL", Value: "1"}}
	}))
	return &owned{T: t, app: c.app, kube: fake.NewClientset()}
}

func (o *owned) deployment() *appsv1.Deployment {
	o.Helper()
	d, err := o.kube.AppsV1().Deployments("ns").Get(o.Context(), "web", metav1.GetOptions{})
	if err != nil {
		o.Fatal(err)
	}
	return d
}

func (o *owned) service() *corev1.Service {
	o.Helper()
	s, err := o.kube.CoreV1().Services("ns").Get(o.Context(), "web-svc", metav1.GetOptions{})
	if err != nil {
		o.Fatal(err)
	}
	return s
}

func (o *owned) plan() Plan {
	o.Helper()
	deployments, err := o.kube.AppsV1().Deployments("ns").List(o.Context(), metav1.ListOptions{})
	if err != nil {
		o.Fatal(err)
	}
	services, err := o.kube.CoreV1().Services("ns").List(o.Context(), metav1.ListOptions{})
	if err != nil {
		o.Fatal(err)
	}
	in := Input{App: o.app, Now: now, Refused: o.refused}
	for i := range deployments.Items {
		in.Deployments = append(in.Deployments, &deployments.Items[i])
	}
	for i := range services.Items {
		in.Services = append(in.Services, &services.Items[i])
	}
	return Compute(in)
}

// settle carries out plans until there is nothing to do, and returns what was done.
func (o *owned) settle() (out []string) {
	o.Helper()
	for range 6 {
		p := o.plan()
		if len(p.Actions) == 0 {
			return out
		}
		o.refused = map[Child]string{}
		for _, a := range p.Actions {
			out = append(out, string(a.Op)+" "+a.Child.String())
			if why := o.write(a); why != "" {
				o.refused[a.Child] = why
			}
		}
	}
	o.Fatalf("it does not come to rest: %q", out)
	return nil
}

// write as the API server does, which refuses two ports of one name.
func (o *owned) write(a Action) string {
	o.Helper()
	how, data := types.JSONPatchType, withoutConditions(o, a.Patch)
	options := metav1.PatchOptions{FieldManager: appv1.Component}
	if a.Op != Correct {
		manifest, err := json.Marshal(a.Manifest)
		if err != nil {
			o.Fatal(err)
		}
		how, data, options.Force = types.ApplyPatchType, manifest, new(true)
	}
	var err error
	var names []string
	before, existed := any(nil), a.Op != Create
	if a.Child.Kind == Deployment {
		if existed {
			before = o.deployment()
		}
		var d *appsv1.Deployment
		if d, err = o.kube.AppsV1().Deployments("ns").Patch(o.Context(), a.Child.Name, how, data, options); err == nil {
			for _, p := range d.Spec.Template.Spec.Containers[0].Ports {
				names = append(names, p.Name)
			}
		}
	} else {
		if existed {
			before = o.service()
		}
		var s *corev1.Service
		if s, err = o.kube.CoreV1().Services("ns").Patch(o.Context(), a.Child.Name, how, data, options); err == nil {
			for _, p := range s.Spec.Ports {
				names = append(names, p.Name)
			}
		}
	}
	if err != nil {
		o.Fatalf("%s %s: %v", a.Op, a.Child, err)
	}
	slices.Sort(names)
	if len(slices.Compact(slices.Clone(names))) < len(names) {
		o.restore(before)
		return "two ports of one name"
	}
	return ""
}

func (o *owned) restore(before any) {
	o.Helper()
	var err error
	switch before := before.(type) {
	case *appsv1.Deployment:
		err = o.kube.Tracker().Update(appsv1.SchemeGroupVersion.WithResource("deployments"), before, "ns")
	case *corev1.Service:
		err = o.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("services"), before, "ns")
	}
	if err != nil {
		o.Fatal(err)
	}
}

// withoutConditions leaves out what the patch holds for, which the fake does not know.
func withoutConditions(o *owned, patch []byte) []byte {
	o.Helper()
	var all []map[string]any
	if patch != nil {
		if err := json.Unmarshal(patch, &all); err != nil || all[0]["path"] != "/metadata/uid" || all[1]["path"] != "/metadata/resourceVersion" {
			o.Fatalf("%v: %s", err, patch)
		}
		all = all[2:]
	}
	raw, err := json.Marshal(all)
	if err != nil {
		o.Fatal(err)
	}
	return raw
}

func (o *owned) edit(change func(*appsv1.Deployment, *corev1.Service)) {
	o.Helper()
	d, s := o.deployment(), o.service()
	change(d, s)
	theirs := metav1.UpdateOptions{FieldManager: "kubectl-edit"}
	if _, err := o.kube.AppsV1().Deployments("ns").Update(o.Context(), d, theirs); err != nil {
		o.Fatal(err)
	}
	if _, err := o.kube.CoreV1().Services("ns").Update(o.Context(), s, theirs); err != nil {
		o.Fatal(err)
	}
}

// TestEditsByHand: whatever somebody does by hand to what the App says is put right,
// although the fields are theirs then; what they add beside it is left to them.
func TestEditsByHand(t *testing.T) {
	const correctS, correctD = `Correct Service "web-svc"`, `Correct Deployment "web"`
	for name, c := range map[string]struct {
		edit func(*appsv1.Deployment, *corev1.Service)
		app  func(*appv1.AppSpec) // changed at the same time
		does []string
	}{
		"port of the service": {func(_ *appsv1.Deployment, s *corev1.Service) { s.Spec.Ports[0].Port = 81 }, nil, []string{correctS}},
		"port of a service that was left behind": {func(_ *appsv1.Deployment, s *corev1.Service) {
			s.Spec.Ports[0].Port, s.OwnerReferences = 81, nil
		}, nil, []string{`Adopt Service "web-svc"`, correctS, `Adopt Service "web-svc"`}},
		"port and protocol": {func(_ *appsv1.Deployment, s *corev1.Service) {
			s.Spec.Ports[0].Port, s.Spec.Ports[0].Protocol = 81, corev1.ProtocolUDP
		}, nil, []string{correctS}},
		"port of the service, and the App's": {func(_ *appsv1.Deployment, s *corev1.Service) { s.Spec.Ports[0].Port = 81 },
			func(s *appv1.AppSpec) { s.ServiceTemplate.Port = 82 }, []string{`Apply Service "web-svc"`, correctS, `Apply Service "web-svc"`}},
		"key in the selector": {func(_ *appsv1.Deployment, s *corev1.Service) { s.Spec.Selector["a/b~c"] = "else" }, nil, []string{correctS}},
		"value in the selector": {func(_ *appsv1.Deployment, s *corev1.Service) { s.Spec.Selector[appv1.LabelApp] = "else" },
			nil, []string{`Apply Service "web-svc"`}},
		"port of the container": {func(d *appsv1.Deployment, _ *corev1.Service) {
			d.Spec.Template.Spec.Containers[0].Ports[0].ContainerPort = 81
		}, nil, []string{correctD}},
		"variable that is empty": {func(d *appsv1.Deployment, _ *corev1.Service) { d.Spec.Template.Spec.Containers[0].Env[0].Value = "2" },
			nil, []string{`Apply Deployment "web"`}},
		"variable emptied": {func(d *appsv1.Deployment, _ *corev1.Service) { d.Spec.Template.Spec.Containers[0].Env[1].Value = "" },
			nil, []string{`Apply Deployment "web"`}},
		"variable of theirs, which the App empties": {func(d *appsv1.Deployment, _ *corev1.Service) { d.Spec.Template.Spec.Containers[0].Env[1].Value = "2" },
			func(s *appv1.AppSpec) { s.DeploymentTemplate.Env[1].Value = "" }, []string{`Apply Deployment "web"`}},
		"beside it": {func(d *appsv1.Deployment, s *corev1.Service) {
			d.Spec.Template.Spec.Containers[0].Env = append(d.Spec.Template.Spec.Containers[0].Env, corev1.EnvVar{Name: "THEIRS", Value: "1"})
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "theirs", Port: 90})
		}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOwned(t)
			o.settle()
			o.edit(func(_ *appsv1.Deployment, s *corev1.Service) { s.Spec.Ports[0].NodePort = 30_000 }) // as the API server does
			o.settle()
			o.edit(c.edit)
			if c.app != nil {
				c.app(&o.app.Spec)
				o.app.Generation++
			}
			if got := o.settle(); !slices.Equal(got, c.does) {
				t.Errorf("got %q, want %q", got, c.does)
			}
			d, s := o.deployment(), o.service()
			env, want := d.Spec.Template.Spec.Containers[0].Env, o.app.Spec.DeploymentTemplate.Env
			if !slices.Equal(env[:2], want) || len(s.Spec.Selector) != 1 || s.Spec.Selector[appv1.LabelApp] != "web" {
				t.Errorf("got variables %v, selector %v", env, s.Spec.Selector)
			}
			if ports := d.Spec.Template.Spec.Containers[0].Ports; len(ports) != 1 || ports[0].ContainerPort != 80 {
				t.Errorf("got ports %v", ports)
			}
			port := o.app.Spec.ServiceTemplate.Port
			if port == 0 {
				port = 8080
			}
			if p := s.Spec.Ports[0]; p.Port != port || p.Protocol != corev1.ProtocolTCP || name != "port of the service, and the App's" && p.NodePort != 30_000 {
				t.Errorf("got port %+v", p)
			}
			if theirs := len(s.Spec.Ports) + len(env) - 3; theirs != 0 && !strings.HasPrefix(name, "beside") {
				t.Errorf("%d entries are left", theirs)
			}
		})
	}
}
