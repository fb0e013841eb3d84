package template

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

func TestRecord(t *testing.T) {
	spec := &corev1.PodTemplateSpec{}
	if text := MarshalRecord(spec); text != `{}` {
		t.Errorf("of nothing: %s", text)
	}
	spec.Labels = map[string]string{"b": "1", "a": "2", tappv1.LabelTemplateHash: "x", tappv1.LabelUniqHash: "y"}
	spec.Annotations = map[string]string{"c/d": "3"}
	spec.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "i:1"}}
	spec.Spec.Containers = []corev1.Container{{Name: "app", Image: "a:1"}}
	text := MarshalRecord(spec)
	if text != `{"labels":["a","b"],"annotations":["c/d"],"labelDigests":["d4735e3a265e16ee","6b86b273ff34fce1"],"annotationDigests":["4e07408562bedb8b"],"images":{"app":"a:1","init":"i:1"}}` {
		t.Errorf("%s", text)
	}
	r := ReadRecord(text)
	if !r.HasLabel("a", "2") || r.HasLabel("a", "1") || r.HasLabel("c/d", "3") || !r.HasAnnotation("c/d", "3") || r.HasAnnotation("a", "2") {
		t.Errorf("%+v", r)
	}
	// What an earlier version wrote lists keys only.
	if r := ReadRecord(`{"labels":["a"],"annotations":["b"]}`); r.HasLabel("a", "2") || r.HasAnnotation("b", "") {
		t.Errorf("%+v", r)
	}
}

// TestThreeWayImages: what the template says now and said before, and what the pod has.
func TestThreeWayImages(t *testing.T) {
	mine, foreign := "v1-aaaaaaaaaaaaaaaa", "2473541281"
	for _, c := range []struct {
		about, hash, recorded, has, want string
		changes                          bool
	}{
		{"unchanged", mine, "web:1", "web:1", "web:1", false},
		{"changed", mine, "web:1", "web:1", "web:2", true},
		{"a mirror's, unchanged", mine, "web:1", "mirror.local/web:1", "web:1", false},
		{"a mirror's, changed", mine, "web:1", "mirror.local/web:1", "web:2", true},
		{"anything, unchanged", mine, "web:1", "other:9", "web:1", false},
		{"back to what the pod has", mine, "web:2", "web:1", "web:1", false},
		{"respelled", mine, "web", "web", "docker.io/library/web:latest", true},
		{"no record", mine, "", "mirror.local/web:1", "web:1", true},
		{"another program's, the record is stale", foreign, "web:2", "web:1", "web:2", true},
		{"another program's, a mirror's", foreign, "", "mirror.local/library/web:1", "web:1", false},
		{"another program's, changed", foreign, "", "mirror.local/web:1", "web:2", true},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{tappv1.LabelTemplateHash: c.hash}, Annotations: map[string]string{}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "mesh", Image: "mesh:1"}, {Name: "app", Image: c.has}}}}
		if c.recorded != "" {
			pod.Annotations[tappv1.AnnotationTemplateKeys] = `{"images":{"app":"` + c.recorded + `"}}`
		}
		want := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: c.want}}}}
		r := RecordOf(pod)
		if got := r.ChangesImages(pod, want); got != c.changes || len(r.ImageChanges(pod, want)) > 0 != c.changes {
			t.Errorf("%s: %t, %v", c.about, got, r.ImageChanges(pod, want))
		}
	}
}

func TestIsCopy(t *testing.T) {
	digest, other := "@sha256:"+strings.Repeat("1", 64), "@sha256:"+strings.Repeat("2", 64)
	for _, c := range []struct {
		image, of string
		is        bool
	}{
		{"nginx", "docker.io/library/nginx:latest", true},
		{"mirror.local/nginx:1.25", "nginx:1.25", true},
		{"mirror.local:5000/hub/library/nginx:1.25", "nginx:1.25", true},
		{"mirror.local/docker.io/team/web:1", "team/web:1", true},
		{"mirror.local/quay.io/team/web:1", "quay.io/team/web:1", true},
		{"mirror.local/nginx", "nginx", true},
		{"nginx:1.25" + digest, "nginx:1.25", true},
		{"mirror.local/nginx:1.25" + digest, "nginx:1.25", true},
		{"mirror.local/nginx" + digest, "nginx:1.25" + digest, true},
		{"mirror.local/nginx:1.26", "nginx:1.25", false},
		{"mirror.local/nginx", "nginx:1.25", false},
		{"mirror.local/my-nginx:1.25", "nginx:1.25", false},
		{"mirror.local/web:1", "team/web:1", false},
		{"nginx" + digest, "nginx:1.25", false},
		{"mirror.local/nginx" + other, "nginx" + digest, false},
		{"nginx:1.25", "nginx:1.25" + digest, false},
		{"team/nginx:1.25", "library/nginx:1.25", true}, // a project that copies; it cannot be told from one of its own
		{"", "nginx", false}, {"nginx", "", false}, {"NGINX", "nginx", false},
	} {
		if got := IsCopy(c.image, c.of); got != c.is {
			t.Errorf("%s of %s: %t", c.image, c.of, got)
		}
	}
}

// TestCompareAdmittedPods: what admission is known to rewrite in pods of another program
// is no difference, and what it does not rewrite is one.
func TestCompareAdmittedPods(t *testing.T) {
	probe := func(path string, port int32) *corev1.Probe {
		return &corev1.Probe{PeriodSeconds: 5, ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt32(port)}}}
	}
	asks := func(port int) string {
		text, _ := json.Marshal(map[string]any{"/app-health/app/livez": map[string]any{"httpGet": map[string]any{"path": "/ok", "port": port, "scheme": "HTTP"}, "timeoutSeconds": 1}})
		return string(text)
	}
	for _, c := range []struct {
		about  string
		change func(pod *corev1.Pod, app *corev1.Container)
		fields string
	}{
		{"nothing", func(*corev1.Pod, *corev1.Container) {}, ""},
		{"Istio's probe", func(_ *corev1.Pod, app *corev1.Container) { app.LivenessProbe = probe("/app-health/app/livez", 15020) }, ""},
		{"Istio's probe, of which the agent tells", func(pod *corev1.Pod, app *corev1.Container) {
			app.LivenessProbe = probe("/app-health/app/livez", 15020)
			pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: istioProbers, Value: asks(8080)}}
		}, ""},
		{"Istio's probe of another one", func(pod *corev1.Pod, app *corev1.Container) {
			app.LivenessProbe = probe("/app-health/app/livez", 15020)
			pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: istioProbers, Value: asks(9090)}}
		}, "spec.containers[app].livenessProbe.httpGet.path,spec.containers[app].livenessProbe.httpGet.port"},
		{"Istio's probe with another period", func(_ *corev1.Pod, app *corev1.Container) {
			app.LivenessProbe = probe("/app-health/app/livez", 15020)
			app.LivenessProbe.PeriodSeconds = 10
		}, "spec.containers[app].livenessProbe.periodSeconds"},
		{"Kuma's probe", func(_ *corev1.Pod, app *corev1.Container) { app.LivenessProbe = probe("/8080/ok", 9000) }, ""},
		{"a probe of a port of the sidecar", func(_ *corev1.Pod, app *corev1.Container) { app.LivenessProbe = probe("/x", 20100) }, ""},
		{"a probe of another port", func(_ *corev1.Pod, app *corev1.Container) { app.LivenessProbe = probe("/ok", 8081) }, "spec.containers[app].livenessProbe.httpGet.port"},
		{"a probe of a port of the template's own", func(_ *corev1.Pod, app *corev1.Container) { app.LivenessProbe = probe("/ok", 7070) }, "spec.containers[app].livenessProbe.httpGet.port"},
		{"a probe that is gone", func(_ *corev1.Pod, app *corev1.Container) { app.LivenessProbe = nil }, "spec.containers[app].livenessProbe"},
		{"a mirror's image", func(_ *corev1.Pod, app *corev1.Container) { app.Image = "mirror.local/library/web:1" }, ""},
		{"another image", func(_ *corev1.Pod, app *corev1.Container) { app.Image = "mirror.local/web:0" }, "spec.containers[app].image"},
		{"AlwaysPullImages", func(_ *corev1.Pod, app *corev1.Container) { app.ImagePullPolicy = corev1.PullAlways }, ""},
		{"never pulled", func(_ *corev1.Pod, app *corev1.Container) { app.ImagePullPolicy = corev1.PullNever }, "spec.containers[app].imagePullPolicy"},
		{"native sidecar", func(pod *corev1.Pod, _ *corev1.Container) {
			always := corev1.ContainerRestartPolicyAlways
			pod.Spec.InitContainers = append([]corev1.Container{{Name: "mesh-init", Image: "mesh:1", RestartPolicy: &always}}, pod.Spec.InitContainers...)
		}, ""},
		{"an annotation that a mesh merged", func(pod *corev1.Pod, _ *corev1.Container) { pod.Annotations["prometheus.io/port"] = "15020" }, ""},
		{"ports of Galaxy", func(pod *corev1.Pod, _ *corev1.Container) {
			pod.Annotations[tappv1.AnnotationPortMapping] = `[{"hostPort":31000}]`
		}, ""},
		{"a merged annotation, and another label", func(pod *corev1.Pod, _ *corev1.Container) {
			pod.Annotations["prometheus.io/port"], pod.Labels["app"] = "15020", "other"
			pod.Annotations[tappv1.AnnotationPortMapping] = `[{"hostPort":31000}]`
		}, "metadata.labels[app],metadata.annotations[prometheus.io/port]"},
		{"an annotation that is gone", func(pod *corev1.Pod, _ *corev1.Container) { delete(pod.Annotations, "prometheus.io/port") }, "metadata.annotations[prometheus.io/port]"},
		{"resources of a VerticalPodAutoscaler", func(pod *corev1.Pod, app *corev1.Container) {
			pod.Annotations[annotationVPA] = "Pod resources updated by web: container 0: cpu request"
			app.Resources.Requests = corev1.ResourceList{"cpu": *quantity("2")}
		}, ""},
		{"resources of nobody", func(_ *corev1.Pod, app *corev1.Container) {
			app.Resources.Requests = corev1.ResourceList{"cpu": *quantity("2")}
		}, "spec.containers[app].resources.requests[cpu]"},
	} {
		want := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"prometheus.io/port": "8080", tappv1.AnnotationPortMapping: ""}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{
				{Name: "app", Image: "web:1", ImagePullPolicy: corev1.PullIfNotPresent, Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
					LivenessProbe: probe("/ok", 0), Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": *quantity("1")}}},
				{Name: "own", Image: "own:1", Ports: []corev1.ContainerPort{{ContainerPort: 7070}}},
			}}}
		want.Spec.Containers[0].LivenessProbe.HTTPGet.Port = intstr.FromString("http")
		pod := want.DeepCopy()
		pod.Spec.Containers = append([]corev1.Container{{Name: "mesh", Image: "mesh:1", Ports: []corev1.ContainerPort{{ContainerPort: 20100}}}}, pod.Spec.Containers...)
		c.change(pod, &pod.Spec.Containers[1])
		d := Compare(pod, want)
		if got := strings.Join(d.Fields, ","); got != c.fields || d.None != (c.fields == "") {
			t.Errorf("%s: %+v", c.about, d)
		}
	}
}

func quantity(text string) *resource.Quantity { q := resource.MustParse(text); return &q }
