//go:build cluster

package admission

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/gen"
)

// TestClaimNamesCollide: creation warns where the claims of two TApps have the same names, whatever their replicas.
func TestClaimNamesCollide(t *testing.T) {
	t.Parallel()
	claim := func(name string) gen.Option {
		return func(t *tappv1.TApp) {
			c := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
			c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
			c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
			t.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{c}
		}
	}
	for name, c := range map[string]struct {
		first, firstClaim, second, secondClaim string
		collide                                bool
	}{
		"the longer claim comes last":  {"eu-db", "data", "db", "data-eu", true},
		"the longer claim comes first": {"db", "data-eu", "eu-db", "data", true},
		"alike, and not the same":      {"us-db", "data", "db", "data-eu", false},
		"the same template":            {"eu-db", "data", "db", "data", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.KubectlWith(text(t, manifest(c.first, claim(c.firstClaim))), "apply", "--filename", "-")
			out := r.KubectlWith(text(t, manifest(c.second, claim(c.secondClaim))), "apply", "--filename", "-")
			if warns := len(warnings(out, "volumeClaimTemplates", "TApp "+c.first)) > 0; warns != c.collide {
				t.Errorf("it warns: %t, want %t: %s", warns, c.collide, out)
			}
		})
	}
}
