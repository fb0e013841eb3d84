//go:build cluster

package admission

import (
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/gen"
)

func labels(l map[string]string) gen.Option {
	return func(t *tappv1.TApp) { t.Spec.Template.Labels = maps.Clone(l) }
}

// applies are the ways in which a manifest is applied.
var applies = map[string][]string{
	"client": {"apply", "--filename", "-"},
	"server": {"apply", "--server-side", "--filename", "-"},
}

// TestSelectorLeavesVersionsOut: a TApp without a selector takes the labels of its template that name no version, so
// that a version can change, image and all. Reported of others: helm/charts#7680, kubernetes/kubernetes#133637.
func TestSelectorLeavesVersionsOut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ labels, selector map[string]string }{
		"a version": {map[string]string{"app": "web", "version": "v1"}, map[string]string{"app": "web"}},
		"a chart's labels": {map[string]string{"app.kubernetes.io/name": "web", "app.kubernetes.io/instance": "shop", "app.kubernetes.io/version": "1", "helm.sh/chart": "web-1"},
			map[string]string{"app.kubernetes.io/name": "web", "app.kubernetes.io/instance": "shop"}},
		"an old chart's":    {map[string]string{"app": "web", "chart": "web-1", "release": "shop"}, map[string]string{"app": "web", "release": "shop"}},
		"of a controller":   {map[string]string{"app": "web", "pod-template-hash": "1", "controller-revision-hash": "1"}, map[string]string{"app": "web"}},
		"versions alone":    {map[string]string{"version": "v1", "helm.sh/chart": "web-1"}, map[string]string{"version": "v1", "helm.sh/chart": "web-1"}},
		"no version at all": {map[string]string{"app": "web", "tier": "front"}, map[string]string{"app": "web", "tier": "front"}},
	} {
		for way, command := range applies {
			t.Run(name+" "+way, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, nil)
				r.KubectlWith(text(t, withoutSelector("web", labels(c.labels))), command...)
				if got := r.Get("web").Spec.Selector.MatchLabels; !maps.Equal(got, c.selector) {
					t.Errorf("the selector is %v, want %v", got, c.selector)
				}
				next := maps.Clone(c.labels)
				for key := range next {
					if _, selected := c.selector[key]; !selected {
						next[key] += "-next"
					}
				}
				out, err := r.TryKubectlWith(text(t, withoutSelector("web", labels(next), gen.Default(gen.Image("demo:v2")))), command...)
				if err != nil {
					t.Fatalf("the next version is refused: %s", out)
				}
				got := r.Get("web").Spec
				if got.Template.Spec.Containers[0].Image != "demo:v2" || !maps.Equal(got.Selector.MatchLabels, c.selector) {
					t.Errorf("it is %s, with the selector %v", got.Template.Spec.Containers[0].Image, got.Selector.MatchLabels)
				}
			})
		}
	}
}

// TestStoredSelectorStays: a selector that names a version goes on to do so, whether the update leaves it out or not.
// The refusal names the label, and what to do.
func TestStoredSelectorStays(t *testing.T) {
	t.Parallel()
	l := map[string]string{"app": "web", "version": "v1"}
	stored := withoutSelector("web", labels(l))
	stored.Spec.Selector = &metav1.LabelSelector{MatchLabels: l}
	for way, command := range applies {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.KubectlWith(text(t, stored), command...)
			r.KubectlWith(text(t, withoutSelector("web", labels(l))), command...)
			if got := r.Get("web").Spec.Selector.MatchLabels; !maps.Equal(got, l) {
				t.Errorf("the selector is %v, want %v", got, l)
			}
			out, err := r.TryKubectlWith(text(t, withoutSelector("web", labels(map[string]string{"app": "web", "version": "v2"}))), command...)
			if err == nil {
				t.Fatalf("labels that the selector misses are admitted: %s", out)
			}
			if !strings.Contains(out, `spec.template.metadata.labels[version]: Invalid value: "v2"`) {
				t.Errorf("it does not name the label: %s", out)
			}
		})
	}
}

// TestSelectorOfAVersionOverlaps: two TApps that differ by their version alone, whose selectors were left out, mean the
// pods of both. Creation says so.
func TestSelectorOfAVersionOverlaps(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	at := func(name, version string) string {
		return text(t, withoutSelector(name, labels(map[string]string{"app": "web", "version": version})))
	}
	r.KubectlWith(at("blue", "v1"), "apply", "--filename", "-")
	out := r.KubectlWith(at("green", "v2"), "apply", "--filename", "-")
	if len(warnings(out, "spec.selector", "TApp blue")) == 0 {
		t.Errorf("nothing warns of it: %s", out)
	}
}

// TestClaimTemplateLabels: labels and annotations of claim templates change, for claims that are made from then on. What
// cannot change is refused by the name of the very field. Reported of others: helm/charts#7803, Smana/runlore#287.
func TestClaimTemplateLabels(t *testing.T) {
	t.Parallel()
	claim := func(version, size string, mode corev1.PersistentVolumeAccessMode) gen.Option {
		return func(t *tappv1.TApp) {
			c := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data",
				Labels: map[string]string{"app": "web", "helm.sh/chart": "web-" + version}, Annotations: map[string]string{"shop.example.com/release": version}}}
			c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{mode}
			c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
			t.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{c}
		}
	}
	for way, command := range applies {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			apply := func(image string, claim gen.Option) (string, error) {
				return r.TryKubectlWith(text(t, manifest("web", claim, gen.Default(gen.Image(image)))), command...)
			}
			if out, err := apply("demo:v1", claim("1", "1Gi", corev1.ReadWriteOnce)); err != nil {
				t.Fatal(out)
			}
			if out, err := apply("demo:v2", claim("2", "1Gi", corev1.ReadWriteOnce)); err != nil {
				t.Fatalf("another version of the chart is refused: %s", out)
			}
			if got := r.Get("web").Spec; got.VolumeClaimTemplates[0].Labels["helm.sh/chart"] != "web-2" || got.Template.Spec.Containers[0].Image != "demo:v2" {
				t.Errorf("it has the claim templates %v", got.VolumeClaimTemplates)
			}
			if out, err := apply("demo:v3", claim("3", "2Gi", corev1.ReadWriteOnce)); err != nil {
				t.Errorf("labels and a larger request at once are refused: %s", out)
			}
			out, err := apply("demo:v3", claim("4", "2Gi", corev1.ReadWriteMany))
			if err == nil || !strings.Contains(out, "spec.volumeClaimTemplates[0].spec.accessModes") {
				t.Errorf("another access mode should be refused by its field: %s", out)
			}
		})
	}
}
