package plugin

import (
	"encoding/json"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

func setOf(edit func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "set", ResourceVersion: "7",
		Annotations: map[string]string{"team": "shop", corev1.LastAppliedConfigAnnotation: "{}"}}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	set.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
	if edit != nil {
		edit(set)
	}
	return set
}

func TestMigrationSource(t *testing.T) {
	for given, want := range map[string]string{
		"statefulset/web": "", "StatefulSet/web": "", "statefulsets.apps/web": "", "sts/web": "",
		"web":                 `"web" cannot be migrated; give statefulset/NAME`,
		"replicaset/web":      `"replicaset/web" cannot be migrated; give statefulset/NAME`,
		"statefulset":         `"statefulset" names no StatefulSet; give statefulset/NAME`,
		"statefulset/web/api": `"statefulset/web/api" names no StatefulSet; give statefulset/NAME`,
	} {
		name, err := (&migrating{from: given}).source(nil)
		if want == "" && (err != nil || name != "web") || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%s: %q, %v", given, name, err)
		}
	}
}

// TestConvert: what a StatefulSet says, its TApp says too, and remembers it.
func TestConvert(t *testing.T) {
	replicas, limit, two := int32(4), int32(3), intstr.FromString("50%")
	set := setOf(func(s *appsv1.StatefulSet) {
		s.Spec.Replicas, s.Spec.RevisionHistoryLimit, s.Spec.ServiceName, s.Spec.MinReadySeconds = &replicas, &limit, "svc", 9
		s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{MaxUnavailable: &two}
		s.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: 5}
		s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"},
			Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}}}
		s.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
			WhenDeleted: appsv1.DeletePersistentVolumeClaimRetentionPolicyType, WhenScaled: appsv1.RetainPersistentVolumeClaimRetentionPolicyType}
	})
	got, err := convert(set)
	if err != nil {
		t.Fatal(err)
	}
	const manifest = `{"kind":"StatefulSet","apiVersion":"apps/v1","metadata":{"name":"web","namespace":"shop","annotations":{"team":"shop"}},` +
		`"spec":{"replicas":4,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{},"spec":{"containers":null}},` +
		`"volumeClaimTemplates":[{"metadata":{"name":"data"},"spec":{"resources":{}},"status":{}}],"serviceName":"svc",` +
		`"podManagementPolicy":"Parallel","updateStrategy":{"rollingUpdate":{"maxUnavailable":"50%"}},"revisionHistoryLimit":3,` +
		`"minReadySeconds":9,"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Delete","whenScaled":"Retain"},"ordinals":{"start":5}},` +
		`"status":{"replicas":0,"availableReplicas":0}}`
	want := &tappv1.TApp{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop",
		Annotations: map[string]string{"team": "shop", annotationMigrated: manifest, annotationMigratedUID: "set"}}}
	want.SetGroupVersionKind(tappv1.GroupVersionKind())
	want.Spec = tappv1.TAppSpec{Replicas: &replicas, Selector: set.Spec.Selector, ServiceName: "svc", MinReadySeconds: 9,
		Ordinals: &tappv1.Ordinals{Start: 5}, RevisionHistoryLimit: &limit, Paused: true, UpdateStrategy: tappv1.TAppUpdateStrategy{MaxUnavailable: &two},
		VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}},
		PersistentVolumeClaimRetentionPolicy: &tappv1.PersistentVolumeClaimRetentionPolicy{
			WhenDeleted: tappv1.DeletePersistentVolumeClaim, WhenScaled: tappv1.RetainPersistentVolumeClaim}}
	is, _ := json.Marshal(got)
	should, _ := json.Marshal(want)
	if string(is) != string(should) {
		t.Errorf("it is\n%s\nand should be\n%s", is, should)
	}
	back, err := sourceOf(got)
	if err != nil || replicasOfSet(back) != 4 {
		t.Errorf("it remembers %v, %v", back, err)
	}
}

func TestWhatATAppCannotSay(t *testing.T) {
	for _, c := range []struct {
		edit         func(*appsv1.StatefulSet)
		never, other []string
	}{
		{nil, nil, nil},
		{func(s *appsv1.StatefulSet) {
			s.Spec.PodManagementPolicy, s.Spec.UpdateStrategy.Type = "", appsv1.OnDeleteStatefulSetStrategyType
		}, nil, []string{
			"spec.podManagementPolicy is OrderedReady: a TApp creates and deletes instances in parallel",
			"spec.updateStrategy.type is OnDelete: a TApp updates by itself, unless spec.paused is true",
		}},
		{func(s *appsv1.StatefulSet) {
			s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(2))}
		}, []string{
			"spec.updateStrategy.rollingUpdate.partition is 2, which a TApp has not (it has spec.templates); set it to 0",
		}, nil},
	} {
		set := setOf(c.edit)
		if never, other := unsupported(set), differences(set); !slices.Equal(never, c.never) || !slices.Equal(other, c.other) {
			t.Errorf("%q and %q, want %q and %q", never, other, c.never, c.other)
		}
	}
}
