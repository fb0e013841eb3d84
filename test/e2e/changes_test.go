//go:build cluster

package e2e

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/test/gen"
)

// configure makes or changes the ConfigMap from which configured has its environment and a file.
func configure(t *testing.T, ns, value string) {
	t.Helper()
	maps := suite.Kube.CoreV1().ConfigMaps(ns)
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "config"}, Data: map[string]string{"limit": value}}
	if _, err := maps.Update(t.Context(), c, metav1.UpdateOptions{}); err == nil {
		return
	}
	if _, err := maps.Create(t.Context(), c, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// configured has the server take its version from a ConfigMap, and mounts the same value as a file, which no
// kubelet renews.
func configured(p *corev1.PodTemplateSpec) {
	c := &p.Spec.Containers[0]
	c.Env = []corev1.EnvVar{{Name: "DEMO_VERSION", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: "config"}, Key: "limit",
	}}}}
	c.VolumeMounts = []corev1.VolumeMount{{Name: "config", MountPath: "/etc/limit", SubPath: "limit"}}
	p.Spec.Volumes = []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "config"}},
	}}}
}

// runsWith checks by what an instance answers that it has this configuration.
func runsWith(t *testing.T, ns, name, value string) {
	t.Helper()
	answer := strings.TrimSpace(kubectl(t, ns, "exec", name, "--", "demo", "get", fmt.Sprintf("http://localhost:%d/version", gen.DemoPort)))
	file := kubectl(t, ns, "exec", name, "--", "demo", "read", "/etc/limit")
	if answer != value || file != value {
		t.Errorf("%s answers %q and reads %q, want %q", name, answer, file, value)
	}
}

// patch is a merge patch of the spec, as a user writes it.
func patch(t *testing.T, ns, spec string) {
	t.Helper()
	kubectl(t, ns, "patch", "tapp", "app", "--type=merge", "--patch", `{"spec": `+spec+`}`)
}

// An annotation by which people ask for a restart recreates the instances within the budget, so that they run with their
// new configuration. All other annotations are written in place. Reported of others: redpanda-data/helm-charts#1239,
// openkruise/kruise#1826.
func TestAnnotationsThatRestart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		key      string
		strategy string // a patch of spec.updateStrategy, before
		restarts bool
	}{
		"checksum-of-a-chart":     {"checksum/config", `{}`, true},
		"checksum-of-an-operator": {"shop.example.com/checksum", `{}`, true},
		"restarted-at":            {"kubectl.kubernetes.io/restartedAt", `{}`, true},
		"any-other":               {"shop.example.com/owner", `{}`, false},
		"one-of-its-own":          {"shop.example.com/config", `{"restartOn": ["shop.example.com/*"]}`, true},
		"in-place-of-the-usual":   {"checksum/config", `{"restartOn": ["shop.example.com/*"]}`, false},
		"none":                    {"checksum/config", `{"restartOn": ["None"]}`, false},
		"only-in-place":           {"checksum/config", `{"inPlaceUpdate": {"policy": "InPlaceOnly"}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := namespace(t)
			configure(t, ns, "64mb")
			create(t, ns, gen.TApp("app", gen.Default(gen.Probe(), stopsSoon, configured, gen.Annotation(c.key, "1111aaaa"))))
			routes := expose(t, ns, "app")
			settled(t, ns, "app")
			patch(t, ns, `{"updateStrategy": `+c.strategy+`}`)
			settled(t, ns, "app")
			routes.served(t, 3)
			before, rollout := pods(t, ns), watchRollout(t, ns)
			configure(t, ns, "128mb")
			patch(t, ns, fmt.Sprintf(`{"template": {"metadata": {"annotations": {%q: "2222bbbb"}}}}`, c.key))
			settled(t, ns, "app")
			after := onlyPods(t, ns, "app-0", "app-1", "app-2")
			for name, p := range after {
				if p.Annotations[c.key] != "2222bbbb" {
					t.Errorf("pod %s has not got the annotation: %v", name, p.Annotations)
				}
			}
			if !c.restarts {
				untouched(t, before, after)
				rollout.neverBelow(t, 3)
				return
			}
			for name, p := range after {
				if p.UID == before[name].UID {
					t.Errorf("it should have been made anew: %s", cluster.PodLine(p))
				}
				runsWith(t, ns, name, "128mb")
			}
			rollout.neverBelow(t, 2)
			rollout.ascending(t, 1, 0, 1, 2)
			routes.neverFewer(t, 2)
		})
	}
}

// A pod that somebody annotates by hand, as he would annotate the template, is not restarted.
func TestAnnotationOfAPodRestartsNothing(t *testing.T) {
	t.Parallel()
	ns, _ := run(t, gen.TApp("app", gen.Replicas(2), gen.Default(gen.Probe(), gen.Annotation("checksum/config", "1111aaaa"))))
	before := pods(t, ns)
	kubectl(t, ns, "annotate", "pod", "--all", "--overwrite", "checksum/config=2222bbbb", "checksum/other=3333cccc")
	change(t, ns, "app", gen.Default(gen.Label("tier", "front")))
	settled(t, ns, "app")
	untouched(t, before, pods(t, ns))
}

// setUp has an init container prepare what main of the same release finds.
func setUp(p *corev1.PodTemplateSpec) {
	mounts := []corev1.VolumeMount{{Name: "plugins", MountPath: "/plugins"}}
	p.Spec.InitContainers = []corev1.Container{{Name: "setup", Image: "demo:v1", Args: []string{"write", "/plugins/list", "of v1"}, VolumeMounts: mounts}}
	p.Spec.Containers[0].VolumeMounts = mounts
	p.Spec.Volumes = []corev1.Volume{{Name: "plugins", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
}

// A release with new images of an init container and of main runs the init container first. Who wants it otherwise
// says so, and then the next start of a pod does it. Reported of others: openkruise/kruise#560.
func TestInitContainerRunsBeforeItsRelease(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		initImages string
		main       string // main's new image
		anew       bool
	}{
		"both":            {"", "demo:v2", true},
		"init-alone":      {"", "demo:v1", true},
		"both-next-start": {"NextStart", "demo:v2", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns, _ := run(t, gen.TApp("app", gen.Replicas(2), gen.Default(gen.Probe(), stopsSoon, setUp)))
			if c.initImages != "" {
				patch(t, ns, fmt.Sprintf(`{"updateStrategy": {"inPlaceUpdate": {"initImages": %q}}}`, c.initImages))
			}
			before, rollout := pods(t, ns), watchRollout(t, ns)
			patch(t, ns, fmt.Sprintf(`{"template": {"spec": {"initContainers": %s, "containers": %s}}}`, images(t, ns, "initContainers", "demo:v2"), images(t, ns, "containers", c.main)))
			settled(t, ns, "app")
			for name, p := range onlyPods(t, ns, "app-0", "app-1") {
				if anew := p.UID != before[name].UID; anew != c.anew {
					t.Errorf("it was made anew: %t, want %t: %s", anew, c.anew, cluster.PodLine(p))
				}
				ran := p.Status.InitContainerStatuses[0].Image
				if p.Spec.InitContainers[0].Image != "demo:v2" || strings.HasSuffix(ran, "demo:v2") != c.anew || image(p, "main") != c.main || !sameImages(p) {
					t.Errorf("its init container ran %s, and is to run %s next: %s", ran, p.Spec.InitContainers[0].Image, cluster.PodLine(p))
				}
			}
			rollout.neverBelow(t, 1)
		})
	}
}

// images is the list of the template's containers with another image.
func images(t *testing.T, ns, list, image string) string {
	t.Helper()
	return strings.ReplaceAll(kubectl(t, ns, "get", "tapp", "app", "--output=jsonpath={.spec.template.spec."+list+"}"), `"demo:v1"`, fmt.Sprintf("%q", image))
}

// A label that names a version moves on the running pods, also where the TApp has no selector of its own; and with
// claims whose template has it, too. Claims that there are keep what they have. Reported of others: helm/charts#7803,
// seaweedfs/seaweedfs#5207.
func TestVersionLabelsMove(t *testing.T) {
	t.Parallel()
	versioned := func(version string) gen.Option {
		return func(tapp *tappv1.TApp) {
			labels := map[string]string{"app": "app", "version": version, "helm.sh/chart": "app-" + version, "app.kubernetes.io/version": version}
			tapp.Spec.Template.Labels = labels
			tapp.Spec.VolumeClaimTemplates[0].Labels = labels
		}
	}
	ns, _ := run(t, gen.TApp("app", gen.Replicas(2), gen.Default(gen.Probe()), withClaim("16Mi"), versioned("1.4.0")))
	before := pods(t, ns)
	change(t, ns, "app", versioned("1.5.0"), gen.Default(gen.Image("demo:v2")))
	settled(t, ns, "app")
	after := pods(t, ns)
	sameUIDs(t, before, after)
	for name, p := range after {
		if p.Labels["version"] != "1.5.0" || p.Labels["helm.sh/chart"] != "app-1.5.0" || image(p, "main") != "demo:v2" {
			t.Errorf("%s has the labels %v: %s", name, p.Labels, cluster.PodLine(p))
		}
	}
	change(t, ns, "app", gen.Replicas(3))
	settled(t, ns, "app")
	onlyClaims(t, ns, "data-app-0", "data-app-1", "data-app-2")
	claimsWhere(t, ns, "have the labels of when they were made", func(c *corev1.PersistentVolumeClaim) string {
		want := map[bool]string{true: "1.5.0", false: "1.4.0"}[c.Name == "data-app-2"]
		return unless(c.Labels["version"] == want && c.Labels["helm.sh/chart"] == "app-"+want, fmt.Sprintf("has %v", c.Labels))
	})
}
