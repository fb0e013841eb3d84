//go:build cluster

package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/test/gen"
)

// Names and digests of images are what an in-place update is told by: each pair
// is one that a controller may wait on for ever.
func TestInPlaceImageNames(t *testing.T) {
	t.Parallel()
	for name, images := range map[string][2]string{
		"same-digest":   {"demo:v1", "demo:v1-same"},
		"library":       {"nginx:1.7.9", "docker.io/library/nginx:latest"}, // fault 6
		"short":         {"docker.io/library/nginx:1.7.9", "nginx"},
		"same-by-name":  {"nginx", "docker.io/library/nginx:latest"},
		"other-host":    {"demo:v1", "registry.example.com/library/demo:v2"},
		"host-and-port": {"demo:v1", "registry.example.com:5000/library/demo:v2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns, _ := run(t, gen.TApp("app", gen.Replicas(1), gen.Default(gen.Image(images[0]))))
			before := pods(t, ns)
			change(t, ns, "app", gen.Default(gen.Image(images[1])))
			tapp := settled(t, ns, "app")
			after := pods(t, ns)
			sameUIDs(t, before, after)
			if p := after["app-0"]; image(p, "main") != images[1] || !isAvailable(p) || p.Status.ObservedGeneration != p.Generation {
				t.Errorf("it does not run %s: %s", images[1], cluster.PodLine(p))
			}
			if tapp.Status.UpdatedReplicas != 1 {
				t.Errorf("status: %s", cluster.StatusOf(tapp))
			}
		})
	}
}

// selectApp leaves the templates free to change their other labels.
func selectApp(t *tappv1.TApp) {
	t.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "app"}}
}

func TestMetadataChangesRestartNothing(t *testing.T) {
	t.Parallel()
	ns, _ := run(t, gen.TApp("app", selectApp, gen.Default(gen.Label("tier", "front"), gen.Annotation("note", "one"), gen.Annotation("old", "yes"))))
	before := pods(t, ns)
	rollout := watchRollout(t, ns)
	change(t, ns, "app", gen.Default(gen.Label("color", "blue"), gen.Annotation("note", "two"), func(p *corev1.PodTemplateSpec) {
		delete(p.Labels, "tier")
		delete(p.Annotations, "old")
	}))
	settled(t, ns, "app")
	after := pods(t, ns)
	untouched(t, before, after)
	rollout.neverBelow(t, 3)
	for name, p := range after {
		_, tier := p.Labels["tier"]
		_, old := p.Annotations["old"]
		if tier || old { // fault 12
			t.Errorf("%s keeps what has left its template: %v %v", name, p.Labels, p.Annotations)
		}
		if p.Labels["color"] != "blue" || p.Annotations["note"] != "two" || p.Labels["app"] != "app" {
			t.Errorf("%s lacks what its template says: %v %v", name, p.Labels, p.Annotations)
		}
	}
}

// A label that somebody else put on a pod is none of the template's.
func TestForeignMetadataStays(t *testing.T) {
	t.Parallel()
	ns, _ := run(t, gen.TApp("app", selectApp, gen.Replicas(1), gen.Default(gen.Label("tier", "front"))))
	kubectl(t, ns, "label", "pod", "app-0", "by-hand=yes")
	kubectl(t, ns, "annotate", "pod", "app-0", "by-hand=yes")
	change(t, ns, "app", gen.Default(gen.Image("demo:v2"), gen.Label("tier", "back")))
	settled(t, ns, "app")
	p := pod(t, ns, "app-0")
	if p.Labels["by-hand"] != "yes" || p.Annotations["by-hand"] != "yes" || p.Labels["tier"] != "back" {
		t.Errorf("labels %v, annotations %v", p.Labels, p.Annotations)
	}
}

// A pod may have more containers than its template, in another order: an admission
// webhook injects them. Images go by name (fault 5).
func TestInjectedSidecarKeepsItsImage(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	tapp := gen.TApp("app", gen.Replicas(1))
	p := handmade(tapp, 0)
	p.Spec.Containers = append([]corev1.Container{sidecar("nginx:1.7.9")}, p.Spec.Containers...)
	createPod(t, ns, p)
	before := podWhere(t, ns, "app-0", "runs", func(p *corev1.Pod) string { return unless(sameImages(p), "does not run") })

	create(t, ns, tapp)
	settled(t, ns, "app")
	change(t, ns, "app", gen.Default(gen.Image("demo:v2")))
	settled(t, ns, "app")
	after := pod(t, ns, "app-0")
	if after.UID != before.UID || image(after, "side") != "nginx:1.7.9" || image(after, "main") != "demo:v2" {
		t.Errorf("it should be the same pod with a new image of main alone: %s", cluster.PodLine(after))
	}
	if restarts(after, "side") != 0 || restarts(after, "main") != 1 {
		t.Errorf("main alone should have been restarted: %s", cluster.PodLine(after))
	}
}

// With initImages NextStart an init container's image is patched, and waits for the next pod; a sidecar restarts with its own.
func TestInitContainerImages(t *testing.T) {
	t.Parallel()
	always := corev1.ContainerRestartPolicyAlways
	nextStart := func(t *tappv1.TApp) { t.Spec.UpdateStrategy.InPlaceUpdate.InitImages = tappv1.InitImagesNextStart }
	ns, _ := run(t, gen.TApp("app", gen.Replicas(1), nextStart, gen.Default(func(p *corev1.PodTemplateSpec) {
		p.Spec.InitContainers = []corev1.Container{
			{Name: "once", Image: "demo:done"},
			{Name: "proxy", Image: "nginx:1.7.9", RestartPolicy: &always},
		}
	})))
	before := pods(t, ns)
	change(t, ns, "app", gen.Default(func(p *corev1.PodTemplateSpec) {
		p.Spec.InitContainers[0].Image = "demo:v1" // fault 4: it counts as applied only if it is in the pod
		p.Spec.InitContainers[1].Image = "nginx:1.25"
	}))
	settled(t, ns, "app")
	after := pods(t, ns)
	sameUIDs(t, before, after)
	p := after["app-0"]
	if p.Spec.InitContainers[0].Image != "demo:v1" || p.Spec.InitContainers[1].Image != "nginx:1.25" {
		t.Errorf("images of the init containers: %v", p.Spec.InitContainers)
	}
	for _, s := range p.Status.InitContainerStatuses {
		if s.Name == "proxy" && (s.RestartCount != 1 || s.Image != "docker.io/library/nginx:1.25" || !s.Ready) {
			t.Errorf("the sidecar should run its new image: %+v", s)
		}
	}
	if restarts(p, "main") != 0 {
		t.Errorf("main was restarted: %s", cluster.PodLine(p))
	}
}

func TestTwoContainersAtOnce(t *testing.T) {
	t.Parallel()
	ns, _ := run(t, gen.TApp("app", gen.Replicas(2), gen.Default(gen.Container(sidecar("nginx:1.7.9")))))
	before := pods(t, ns)
	change(t, ns, "app", gen.Default(gen.Image("demo:v2"), gen.ContainerImage("side", "nginx:1.25")))
	tapp := settled(t, ns, "app")
	after := pods(t, ns)
	sameUIDs(t, before, after)
	for _, p := range after {
		if !sameImages(p) || restarts(p, "main") != 1 || restarts(p, "side") != 1 {
			t.Errorf("each container should have been restarted once: %s", cluster.PodLine(p))
		}
	}
	if tapp.Status.Statuses["0"] != tappv1.InstanceRunning {
		t.Errorf("status: %s", cluster.StatusOf(tapp))
	}
}

func unless(ok bool, wrong string) string {
	if ok {
		return ""
	}
	return wrong
}
