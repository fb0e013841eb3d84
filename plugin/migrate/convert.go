package migrate

import (
	"encoding/json"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// Annotations of a TApp about the StatefulSet that it was made from: the manifest, to go
// back, and the UID.
const (
	AnnotationManifest = "tkestack.io/migrated-statefulset"
	AnnotationUID      = "tkestack.io/migrated-statefulset-uid"
)

// Convert makes the TApp of a StatefulSet: the same names of pods and claims, the
// same template, paused until it has adopted the pods.
func Convert(set *appsv1.StatefulSet) (*tappv1.TApp, error) {
	manifest, err := json.Marshal(ManifestOf(set))
	if err != nil {
		return nil, fmt.Errorf("writing the StatefulSet: %w", err)
	}
	t := &tappv1.TApp{ObjectMeta: metav1.ObjectMeta{Name: set.Name, Namespace: set.Namespace,
		Labels: maps.Clone(set.Labels), Annotations: annotationsOf(set)}}
	t.SetGroupVersionKind(tappv1.GroupVersionKind())
	t.Annotations[AnnotationManifest], t.Annotations[AnnotationUID] = string(manifest), string(set.UID)
	one := intstr.FromInt32(1)
	in := set.Spec.DeepCopy()
	replicas := replicasOfSet(set)
	t.Spec = tappv1.TAppSpec{
		Replicas: &replicas, Selector: in.Selector, Template: in.Template, ServiceName: in.ServiceName,
		MinReadySeconds: in.MinReadySeconds, RevisionHistoryLimit: in.RevisionHistoryLimit, Paused: true,
		UpdateStrategy: tappv1.TAppUpdateStrategy{MaxUnavailable: &one},
	}
	if o := in.Ordinals; o != nil {
		t.Spec.Ordinals = &tappv1.Ordinals{Start: o.Start}
	}
	if r := in.UpdateStrategy.RollingUpdate; r != nil && r.MaxUnavailable != nil {
		t.Spec.UpdateStrategy.MaxUnavailable = r.MaxUnavailable
	}
	for _, c := range in.VolumeClaimTemplates {
		t.Spec.VolumeClaimTemplates = append(t.Spec.VolumeClaimTemplates, corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: c.Name, Labels: c.Labels, Annotations: c.Annotations}, Spec: c.Spec,
		})
	}
	if p := in.PersistentVolumeClaimRetentionPolicy; p != nil {
		t.Spec.PersistentVolumeClaimRetentionPolicy = &tappv1.PersistentVolumeClaimRetentionPolicy{
			WhenDeleted: tappv1.PersistentVolumeClaimRetentionPolicyType(p.WhenDeleted),
			WhenScaled:  tappv1.PersistentVolumeClaimRetentionPolicyType(p.WhenScaled),
		}
	}
	return t, nil
}

// annotationsOf a StatefulSet, for its TApp: without what kubectl records of the last
// apply, which is about another kind.
func annotationsOf(set *appsv1.StatefulSet) map[string]string {
	out := maps.Clone(set.Annotations)
	if out == nil {
		out = map[string]string{}
	}
	delete(out, corev1.LastAppliedConfigAnnotation)
	return out
}

// ManifestOf returns what creates the StatefulSet again.
func ManifestOf(set *appsv1.StatefulSet) *appsv1.StatefulSet {
	out := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: set.Name, Namespace: set.Namespace, Labels: set.Labels, Annotations: annotationsOf(set)},
		Spec:       *set.Spec.DeepCopy(),
	}
	for i := range out.Spec.VolumeClaimTemplates {
		out.Spec.VolumeClaimTemplates[i].Status = corev1.PersistentVolumeClaimStatus{}
	}
	out.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("StatefulSet"))
	return out
}

// sourceOf returns the StatefulSet that a TApp was made from; nil if there was none. It
// has the TApp's name and namespace.
func sourceOf(t *tappv1.TApp) (*appsv1.StatefulSet, error) {
	text, ok := t.Annotations[AnnotationManifest]
	if !ok {
		return nil, nil
	}
	set := &appsv1.StatefulSet{}
	if err := json.Unmarshal([]byte(text), set); err != nil {
		return nil, fmt.Errorf("reading the annotation %s of TApp %s: %w", AnnotationManifest, t.Name, err)
	}
	if kind := set.GroupVersionKind(); kind != appsv1.SchemeGroupVersion.WithKind("StatefulSet") || set.Name != t.Name || set.Namespace != t.Namespace {
		return nil, fmt.Errorf("the annotation %s of TApp %s is not what the migration wrote: it holds a %s %q of %s in namespace %q, and not StatefulSet %q in namespace %q",
			AnnotationManifest, t.Name, kind.Kind, set.Name, kind.GroupVersion(), set.Namespace, t.Name, t.Namespace)
	}
	return set, nil
}

func replicasOfSet(set *appsv1.StatefulSet) int32 {
	if set.Spec.Replicas == nil {
		return 1
	}
	return *set.Spec.Replicas
}

// unsupported says which fields a TApp has no counterpart for.
func unsupported(set *appsv1.StatefulSet) []string {
	var out []string
	if r := set.Spec.UpdateStrategy.RollingUpdate; r != nil && r.Partition != nil && *r.Partition != 0 {
		out = append(out, fmt.Sprintf("spec.updateStrategy.rollingUpdate.partition is %d, which a TApp has not (it has spec.templates); set it to 0", *r.Partition))
	}
	return out
}

// differences says what a TApp does in another way than the StatefulSet.
func differences(set *appsv1.StatefulSet) []string {
	var out []string
	if set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement {
		out = append(out, "spec.podManagementPolicy is OrderedReady: a TApp creates and deletes instances in parallel")
	}
	if set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		out = append(out, "spec.updateStrategy.type is OnDelete: a TApp updates by itself, unless spec.paused is true")
	}
	return out
}
