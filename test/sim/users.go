package sim

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/sim/apiserver"
)

// mostReplicas of a TApp in a crowd, and fewReplicas of any other.
const (
	mostReplicas = 8
	fewReplicas  = 5
)

// Edit is something that a user does at a step.
type Edit struct {
	Step int
	// App is the key of the TApp.
	App  string
	Kind string
	// A and B say more: an id, a number, an image.
	A, B int
}

func (e Edit) String() string {
	return fmt.Sprintf("step %d: %s %s %d %d", e.Step, e.App, e.Kind, e.A, e.B)
}

// editKinds that a script is drawn from; the ones that matter most several times.
func editKinds() []string {
	return []string{"image", "image", "image", "image", "spoil", "spoil", "env", "env", "label", "unlabel", "scale", "scale", "scale",
		"kill", "kill", "start", "pool", "pool", "assign", "rolling", "rollback", "rollback", "pause", "resume", "budget", "forced",
		"policy", "drain", "retention", "grow", "delete", "restart", "force", "resources", "resources", "autodelete", "limit"}
}

func images() []string { return []string{"demo:v1", "demo:v2", "demo:v3", "demo:v4"} }

func spoilt() []string {
	return []string{"demo:" + neverPulled, "demo:" + neverReady, "demo:" + crashes}
}

// draft is a TApp as a user creates it.
func draft(rng *rand.Rand, key string, p Plan) *tappv1.TApp {
	namespace, name, _ := strings.Cut(key, "/")
	chance := func(percent int) bool { return rng.IntN(100) < percent }
	t := &tappv1.TApp{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	t.Spec.Replicas = ptr.To(1 + rng.Int32N(fewReplicas))
	t.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}}}
	// The webhook sets it; without one, labels that change before the first status is
	// stored change which pods are the TApp's.
	t.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	t.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: images()[0]}}
	if chance(50) || p.Requests { // a pod that requests nothing cannot be resized to request something
		t.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
		t.Spec.UpdateStrategy.InPlaceUpdate.Resources = true
	}
	if chance(25) {
		t.Spec.Template.Spec.Containers = append(t.Spec.Template.Spec.Containers, corev1.Container{Name: "side", Image: "side:v1"})
	}
	if chance(15) {
		t.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "init:v1"}}
	}
	if chance(8) {
		t.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	}
	t.Spec.UpdateStrategy.MaxUnavailable = budget(rng.IntN(4))
	if chance(30) {
		t.Spec.UpdateStrategy.ForceUpdate.MaxUnavailable = budget(rng.IntN(4))
	}
	if chance(20) {
		t.Spec.UpdateStrategy.InPlaceUpdate.Drain = ptr.To(false)
	}
	if chance(10) {
		t.Spec.UpdateStrategy.InPlaceUpdate.Policy = tappv1.ReCreate
	}
	if chance(10) {
		t.Spec.UpdateStrategy.InPlaceUpdate.GracePeriodSeconds = 3
	}
	if chance(10) {
		t.Spec.MinReadySeconds = 5
	}
	t.Spec.ForceDeletePod = chance(30)
	t.Spec.NeverMigrate = chance(6)
	if chance(25) || p.Claims {
		t.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"},
			Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}}}}
		t.Spec.PersistentVolumeClaimRetentionPolicy = retention(rng.IntN(4))
	}
	return t
}

func budget(n int) *intstr.IntOrString {
	return ptr.To([]intstr.IntOrString{intstr.FromInt32(1), intstr.FromInt32(2), intstr.FromString("30%"), intstr.FromString("100%")}[n%4])
}

func retention(n int) *tappv1.PersistentVolumeClaimRetentionPolicy {
	p := &tappv1.PersistentVolumeClaimRetentionPolicy{}
	if n&1 != 0 {
		p.WhenDeleted = tappv1.DeletePersistentVolumeClaim
	}
	if n&2 != 0 {
		p.WhenScaled = tappv1.DeletePersistentVolumeClaim
	}
	return p
}

// edit carries out an edit.
func (w *world) edit(e Edit) {
	t, exists := apiserver.Find[*tappv1.TApp](w.Store, tapps, e.App)
	who := w.as("user")
	switch {
	case e.Kind == "create":
		if !exists {
			_, _ = w.Create(tapps, clone(w.drafts[e.App]), who)
		}
	case !exists:
	case e.Kind == "delete":
		policy := []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan}[e.A%3]
		_, _ = w.Remove(tapps, e.App, metav1.DeleteOptions{PropagationPolicy: &policy}, who)
	case e.Kind == "restart":
		pod := e.App + "-" + strconv.Itoa(e.A%fewReplicas)
		_, _ = w.Update(pods, pod, "", who, func(o object) error {
			annotations := o.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[tappv1.AnnotationRestart] = "now"
			o.SetAnnotations(annotations)
			return nil
		})
	case e.Kind == "fill":
		_, _ = w.Update(tapps, e.App, "", who, func(o object) error {
			fillUp(o.(*tappv1.TApp), e)
			return nil
		})
	default:
		if e.Kind == "rollback" {
			w.rollBack(t, who)
			return
		}
		_, _ = w.Update(tapps, e.App, "", who, func(o object) error {
			rewrite(&o.(*tappv1.TApp).Spec, e)
			return nil
		})
	}
}

// rollBack gives a TApp the templates that it had first.
func (w *world) rollBack(t *tappv1.TApp, who apiserver.Actor) {
	first := w.drafts[keyOf(t)]
	_, _ = w.Update(tapps, keyOf(t), "", who, func(o object) error {
		s := &o.(*tappv1.TApp).Spec
		s.Template = *first.Spec.Template.DeepCopy()
		for name := range s.TemplatePool {
			s.TemplatePool[name] = *first.Spec.Template.DeepCopy()
		}
		return nil
	})
}
