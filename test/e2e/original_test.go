//go:build cluster

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/test/gen"
)

// What tkestack/tapp wrote into the template's labels, and with them into the
// pods': FNV hashes of Go structs, in decimal. Its later versions had a second
// pair of labels.
var hashesOfTheOriginal = map[string]string{
	tappv1.LabelTemplateHash: "6823430265043312943",
	tappv1.LabelUniqHash:     "12478021940187253051",
}

// asOriginal makes of the TApp what tkestack/tapp had left in the API server: its
// defaults are in spec, the hashes in the labels of the template.
func asOriginal(tapp *tappv1.TApp) *tappv1.TApp {
	s := &tapp.Spec
	s.Selector = &metav1.LabelSelector{MatchLabels: maps.Clone(s.Template.Labels)}
	maps.Copy(s.Template.Labels, hashesOfTheOriginal)
	s.DefaultTemplateName = tappv1.DefaultTemplateName
	one, all := intstr.FromInt32(1), intstr.FromString("100%")
	s.UpdateStrategy = tappv1.TAppUpdateStrategy{
		Template: tappv1.DefaultTemplateName, MaxUnavailable: &one,
		ForceUpdate: tappv1.ForceUpdateStrategy{MaxUnavailable: &all},
	}
	return tapp
}

// podOfTheOriginal makes a pod as tkestack/tapp wrote it, with its gate open.
func podOfTheOriginal(t *testing.T, ns string, tapp *tappv1.TApp, id int) {
	t.Helper()
	p := handmade(tapp, id)
	for _, c := range tapp.Spec.VolumeClaimTemplates {
		p.Spec.Volumes = slices.DeleteFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == c.Name })
		p.Spec.Volumes = append([]corev1.Volume{{Name: c.Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c.Name + "-" + p.Name},
		}}}, p.Spec.Volumes...)
	}
	p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: tappv1.GateInPlaceUpdate}}
	if tapp.UID != "" {
		p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(tapp, tappv1.GroupVersionKind())}
		p.OwnerReferences[0].BlockOwnerDeletion = nil
	}
	p = createPod(t, ns, p)
	kubectl(t, ns, "patch", "pod", p.Name, "--subresource=status", "-p", fmt.Sprintf(
		`{"status":{"conditions":[{"type":%q,"status":"True","lastTransitionTime":%q}]}}`,
		tappv1.GateInPlaceUpdate, time.Now().UTC().Format(time.RFC3339)))
	podWhere(t, ns, p.Name, "is ready", func(p *corev1.Pod) string { return unless(isReady(p), "is not ready") })
}

// claimOfTheOriginal makes the claim of an instance as tkestack/tapp wrote it: the
// TApp's own, without the label of the instance.
func claimOfTheOriginal(t *testing.T, ns string, tapp *tappv1.TApp, id int) *corev1.PersistentVolumeClaim {
	t.Helper()
	c := tapp.Spec.VolumeClaimTemplates[0].DeepCopy()
	c.Name = fmt.Sprintf("%s-%s-%d", c.Name, tapp.Name, id)
	c.Labels = maps.Clone(tapp.Spec.Selector.MatchLabels)
	c.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(tapp, tappv1.GroupVersionKind())}
	created, err := suite.Kube.CoreV1().PersistentVolumeClaims(ns).Create(t.Context(), c, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create claim %s: %v", c.Name, err)
	}
	return created
}

// takenOver checks that pods of the original were taken over without a restart
// (fault 11), and that they can be updated in place from then on.
func takenOver(t *testing.T, ns string, tapp *tappv1.TApp, before map[string]*corev1.Pod) {
	t.Helper()
	hash := func(p *corev1.Pod) string { return p.Labels[tappv1.LabelTemplateHash] }
	settled(t, ns, tapp.Name)
	after := pods(t, ns)
	untouched(t, before, after)
	for _, p := range after {
		if ref := owner(p); ref == nil || ref.UID != tapp.UID {
			t.Errorf("%s was not adopted: %v", p.Name, p.OwnerReferences)
		}
		if hash(p) == "" || hash(p) == hashesOfTheOriginal[tappv1.LabelTemplateHash] {
			t.Errorf("%s was not relabelled: %v", p.Name, p.Labels)
		}
	}
	change(t, ns, tapp.Name, gen.Default(gen.Image("demo:v2")))
	settled(t, ns, tapp.Name)
	updated := pods(t, ns)
	sameUIDs(t, before, updated)
	for _, p := range updated {
		if image(p, "main") != "demo:v2" || restarts(p, "main") != 1 {
			t.Errorf("it should have been updated in place: %s", cluster.PodLine(p))
		}
	}
}

func TestPodsOfTheOriginalWithoutOwner(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	tapp := asOriginal(gen.TApp("app", gen.Replicas(2), gen.Default(gen.Probe(), func(p *corev1.PodTemplateSpec) {
		// What the API server defaults in a pod must not count as a difference.
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: gen.DemoPort}}
		p.Spec.Volumes = []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "tmp", MountPath: "/tmp"}}
	})))
	for id := range 2 {
		podOfTheOriginal(t, ns, tapp, id)
	}
	before := pods(t, ns)
	tapp = create(t, ns, tapp)
	takenOver(t, ns, tapp, before)
}

// TestUpgradeFromTheOriginal starts the controller on a cluster where another one
// has worked: TApps, pods and claims are all there. It restarts the controller.
// Claims get the label of their instance, and are owned as the policy says: not.
// That holds also for instances that are killed (2) or scaled down (7).
func TestUpgradeFromTheOriginal(t *testing.T) {
	stopController(t)
	ns := namespace(t)
	tapp := create(t, ns, asOriginal(gen.TApp("app", withClaim("16Mi"), gen.Killed(2))))
	uids := map[string]types.UID{}
	for _, id := range []int{0, 1, 2, 7} {
		c := claimOfTheOriginal(t, ns, tapp, id)
		uids[c.Name] = c.UID
	}
	for id := range 2 {
		podOfTheOriginal(t, ns, tapp, id)
	}
	before := pods(t, ns)
	remember(t, ns, before["app-0"])
	restartController(t)
	takenOver(t, ns, tapp, before)
	claimsWhere(t, ns, "taken over", func(c *corev1.PersistentVolumeClaim) string {
		id := strings.TrimPrefix(c.Name, "data-app-")
		return unless(c.UID == uids[c.Name] && c.Labels[tappv1.LabelInstanceID] == id && len(c.OwnerReferences) == 0,
			fmt.Sprintf("has UID %s, labels %v, owners %v", c.UID, c.Labels, c.OwnerReferences))
	})
	change(t, ns, "app", gen.Default(gen.Env("VERSION", "2")), gen.MaxUnavailable("3"))
	settled(t, ns, "app")
	remembers(t, ns, before["app-0"])
}
