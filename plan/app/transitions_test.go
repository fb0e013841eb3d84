package app

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	appv1 "tkestack.io/tapp/crd/app/v1"
	"tkestack.io/tapp/plan/manifest"
)

// fields are changes of every field that an App has, and what each of them does.
var fields = map[string]struct {
	change     func(*appv1.AppSpec)
	does, back []string
}{
	"image":             {func(s *appv1.AppSpec) { s.DeploymentTemplate.Image = "nginx:2" }, applyD, applyD},
	"replicas":          {func(s *appv1.AppSpec) { s.DeploymentTemplate.Replicas = ptr.To(int32(5)) }, applyD, applyD},
	"to zero":           {func(s *appv1.AppSpec) { s.DeploymentTemplate.Replicas = ptr.To(int32(0)) }, applyD, applyD},
	"replicas left out": {func(s *appv1.AppSpec) { s.DeploymentTemplate.Replicas = nil }, applyD, applyD},
	"ports": {func(s *appv1.AppSpec) { s.DeploymentTemplate.Ports = []corev1.ContainerPort{{ContainerPort: 80}} },
		[]string{applyD[0], applyS[0]}, []string{applyD[0], applyS[0]}},
	"env": {func(s *appv1.AppSpec) {
		s.DeploymentTemplate.Env = []corev1.EnvVar{{Name: "A", Value: "b"}, {Name: "B", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}}
	}, applyD, applyD},
	"resources": {func(s *appv1.AppSpec) {
		s.DeploymentTemplate.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("0.5")}
	}, applyD, applyD},
	"port": {func(s *appv1.AppSpec) { s.ServiceTemplate.Port = 80 }, applyS, applyS},
	"type": {func(s *appv1.AppSpec) { s.ServiceTemplate.Type = corev1.ServiceTypeNodePort }, applyS, applyS},
	"defaults spelt out": {func(s *appv1.AppSpec) {
		s.ServiceTemplate.Port, s.ServiceTemplate.Type = 8080, corev1.ServiceTypeClusterIP
	}, nil, nil},
	"deployment renamed": {func(s *appv1.AppSpec) { s.DeploymentTemplate.Name = "web2" },
		[]string{`Create Deployment "web2"`, `Delete Deployment "web"`}, []string{`Create Deployment "web"`, `Delete Deployment "web2"`}},
	"deployment emptied": {func(s *appv1.AppSpec) { s.DeploymentTemplate.Name = "" },
		[]string{`Delete Deployment "web"`}, []string{`Create Deployment "web"`}},
	"deployment left out": {func(s *appv1.AppSpec) { s.DeploymentTemplate = appv1.DeploymentTemplate{} },
		[]string{`Delete Deployment "web"`}, []string{`Create Deployment "web"`}},
	"service renamed": {func(s *appv1.AppSpec) { s.ServiceTemplate.Name = "web2" },
		[]string{`Create Service "web2"`, `Delete Service "web-svc"`}, []string{`Create Service "web-svc"`, `Delete Service "web2"`}},
	"service left out": {func(s *appv1.AppSpec) { s.ServiceTemplate = appv1.ServiceTemplate{} },
		[]string{`Delete Service "web-svc"`}, []string{`Create Service "web-svc"`}},
	"one name for both": {func(s *appv1.AppSpec) { s.ServiceTemplate.Name = "web" },
		[]string{`Create Service "web"`, `Delete Service "web-svc"`}, []string{`Create Service "web-svc"`, `Delete Service "web"`}},
	"names exchanged": {func(s *appv1.AppSpec) { s.ServiceTemplate.Name, s.DeploymentTemplate.Name = "web", "web-svc" },
		[]string{`Create Deployment "web-svc"`, `Create Service "web"`, `Delete Deployment "web"`, `Delete Service "web-svc"`},
		[]string{`Create Deployment "web"`, `Create Service "web-svc"`, `Delete Deployment "web-svc"`, `Delete Service "web"`}},
	"nothing wanted": {func(s *appv1.AppSpec) { *s = appv1.AppSpec{} },
		[]string{`Delete Deployment "web"`, `Delete Service "web-svc"`}, []string{`Create Deployment "web"`, `Create Service "web-svc"`}},
}

var applyD, applyS = []string{`Apply Deployment "web"`}, []string{`Apply Service "web-svc"`}

// TestTransitions: every field changes and changes back; each way does what it has
// to and nothing else, and back means back.
func TestTransitions(t *testing.T) {
	for name, f := range fields {
		t.Run(name, func(t *testing.T) {
			c := newCluster(spec())
			c.settle(t)
			first := c.objects(t)

			f.change(&c.app.Spec)
			c.app.Generation++
			if got := c.settle(t); !slices.Equal(got, f.does) {
				t.Errorf("there: %q, want %q", got, f.does)
			}
			c.isRight(t)
			c.app.Spec = spec()
			c.app.Generation++
			if got := c.settle(t); !slices.Equal(got, f.back) {
				t.Errorf("back: %q, want %q", got, f.back)
			}
			c.isRight(t)
			if last := c.objects(t); last != first {
				t.Errorf("back is\n%s, and was\n%s", last, first)
			}
		})
	}
}

// TestEveryField: no field of the API is without a transition.
func TestEveryField(t *testing.T) {
	base := spec()
	changed := map[string]bool{}
	for _, f := range fields {
		s := spec()
		f.change(&s)
		for _, part := range []struct {
			name string
			a, b any
		}{
			{"deploymentTemplate", base.DeploymentTemplate, s.DeploymentTemplate}, {"serviceTemplate", base.ServiceTemplate, s.ServiceTemplate},
		} {
			a, b := reflect.ValueOf(part.a), reflect.ValueOf(part.b)
			for i := range a.NumField() {
				if !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
					changed[part.name+"."+a.Type().Field(i).Name] = true
				}
			}
		}
	}
	want := reflect.TypeFor[appv1.DeploymentTemplate]().NumField() + reflect.TypeFor[appv1.ServiceTemplate]().NumField()
	if len(changed) != want {
		t.Errorf("only %v are changed, of %d fields", changed, want)
	}
}

// isRight: what there is is what the App says, and no more.
func (c *cluster) isRight(t *testing.T) {
	t.Helper()
	a := c.app.DeepCopy()
	appv1.Default(a)
	for name, d := range c.deployments {
		if name != a.Spec.DeploymentTemplate.Name || len(manifest.Differences(manifest.Stamp(deploymentManifest(a), appv1.AnnotationApplied), d)) > 0 {
			t.Errorf("there is a Deployment %s that should not be so: %+v", name, d.Spec)
		}
	}
	for name, s := range c.services {
		if name != a.Spec.ServiceTemplate.Name || len(manifest.Differences(manifest.Stamp(serviceManifest(a), appv1.AnnotationApplied), s)) > 0 {
			t.Errorf("there is a Service %s that should not be so: %+v", name, s.Spec)
		}
	}
	if (len(c.deployments) == 1) != (a.Spec.DeploymentTemplate.Name != "") || (len(c.services) == 1) != (a.Spec.ServiceTemplate.Name != "") {
		t.Errorf("there are %d Deployments and %d Services", len(c.deployments), len(c.services))
	}
	if got := conditions(c.app.Status)[0]; got != "Ready=True Synced: App synced successfully" {
		t.Errorf("it is %s", got)
	}
}

// objects of the cluster without what changes with every write.
func (c *cluster) objects(t *testing.T) string {
	t.Helper()
	var out []any
	for _, d := range c.deployments {
		d = d.DeepCopy()
		d.UID, d.ResourceVersion, d.Generation, d.Status.ObservedGeneration = "", "", 0, 0
		out = append(out, d)
	}
	for _, s := range c.services {
		s = s.DeepCopy()
		s.UID, s.ResourceVersion = "", ""
		out = append(out, s)
	}
	content, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
