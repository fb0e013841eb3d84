package migrate

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/gen"
)

func TestMigrationSource(t *testing.T) {
	for given, want := range map[string]string{
		"statefulset/web": "", "StatefulSet/web": "", "statefulsets.apps/web": "", "sts/web": "",
		"web":                 `"web" cannot be migrated; give statefulset/NAME`,
		"replicaset/web":      `"replicaset/web" cannot be migrated; give statefulset/NAME`,
		"statefulset":         `"statefulset" names no StatefulSet; give statefulset/NAME`,
		"statefulset/web/api": `"statefulset/web/api" names no StatefulSet; give statefulset/NAME`,
	} {
		name, err := (&migrating{Options: Options{Usage: func(err error) error { return err }}, from: given}).source(nil)
		if want == "" && (err != nil || name != "web") || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%s: %q, %v", given, name, err)
		}
	}
}

// TestConvert: what a StatefulSet says, its TApp says too, and remembers it.
func TestConvert(t *testing.T) {
	replicas, limit, two := int32(4), int32(3), intstr.FromString("50%")
	set := gen.StatefulSet(func(s *appsv1.StatefulSet) {
		s.Spec.Replicas, s.Spec.RevisionHistoryLimit, s.Spec.ServiceName, s.Spec.MinReadySeconds = &replicas, &limit, "svc", 9
		s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{MaxUnavailable: &two}
		s.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: 5}
		s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"},
			Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}}}
		s.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
			WhenDeleted: appsv1.DeletePersistentVolumeClaimRetentionPolicyType, WhenScaled: appsv1.RetainPersistentVolumeClaimRetentionPolicyType}
	})
	got, err := Convert(set)
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
		Annotations: map[string]string{"team": "shop", AnnotationManifest: manifest, AnnotationUID: "set"}}}
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
		set := gen.StatefulSet(c.edit)
		if never, other := unsupported(set), differences(set); !slices.Equal(never, c.never) || !slices.Equal(other, c.other) {
			t.Errorf("%q and %q, want %q and %q", never, other, c.never, c.other)
		}
	}
}

func TestNotRolledOut(t *testing.T) {
	now := metav1.Now()
	for _, c := range []struct {
		name  string
		set   func(*appsv1.StatefulSet)
		pods  func(*appsv1.StatefulSet) []*corev1.Pod
		force bool
		want  []string
	}{
		{name: "rolled out"},
		{name: "deleted", set: func(s *appsv1.StatefulSet) { s.DeletionTimestamp = &now }, want: []string{"it is being deleted"}},
		{name: "not observed", set: func(s *appsv1.StatefulSet) { s.Generation = 3 }, want: []string{"its controller has not seen its present spec yet"}},
		{name: "more replicas", set: func(s *appsv1.StatefulSet) { s.Spec.Replicas = new(int32(4)) }, want: []string{"pod web-2 is missing", "pod web-3 is missing"}},
		{name: "fewer replicas", set: func(s *appsv1.StatefulSet) { s.Spec.Replicas = nil }, want: []string{"pod web-1 is beyond spec.replicas, which is 1"}},
		{name: "another's pod", pods: func(s *appsv1.StatefulSet) []*corev1.Pod {
			return []*corev1.Pod{gen.PodOfSet(s, 0, func(p *corev1.Pod) { p.OwnerReferences[0].UID = "another" }), gen.PodOfSet(s, 1)}
		}, want: []string{"pod web-0 is not its own"}},
		{name: "old, deleted", pods: func(s *appsv1.StatefulSet) []*corev1.Pod {
			return []*corev1.Pod{gen.PodOfSet(s, 1, func(p *corev1.Pod) { p.DeletionTimestamp = &now }),
				gen.PodOfSet(s, 0, func(p *corev1.Pod) { p.Labels[appsv1.ControllerRevisionHashLabelKey] = "web-old" })}
		}, want: []string{"pod web-0 does not run the present template", "pod web-1 is being deleted"}},
		{name: "not ready", pods: oneNotReady, want: []string{"pod web-1 is not ready"}},
		{name: "not ready, by force", pods: oneNotReady, force: true},
	} {
		set := gen.RolledOut()
		if c.set != nil {
			c.set(set)
		}
		pods := []*corev1.Pod{gen.PodOfSet(set, 0), gen.PodOfSet(set, 1)}
		if c.pods != nil {
			pods = c.pods(set)
		}
		if got := (&migration{migrating: &migrating{force: c.force}, set: set}).notRolledOut(pods); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func oneNotReady(s *appsv1.StatefulSet) []*corev1.Pod {
	return []*corev1.Pod{gen.PodOfSet(s, 0), gen.PodOfSet(s, 1, func(p *corev1.Pod) { p.Status.Conditions = nil })}
}

// TestChanged: which pods are not as they were before a migration.
func TestChanged(t *testing.T) {
	set := gen.RolledOut()
	v := &migration{before: map[string]podState{"web-0": {"a", 1}, "web-1": {"b", 0}, "web-2": {"c", 2}, "web-10": {"d", 0}}}
	pod := func(id int, uid string, restarts int32) *corev1.Pod {
		return gen.PodOfSet(set, id, func(p *corev1.Pod) { p.UID, p.Status.ContainerStatuses[0].RestartCount = types.UID(uid), restarts })
	}
	got := v.changedPods([]*corev1.Pod{pod(0, "a", 1), pod(1, "new", 0), pod(2, "c", 3), pod(3, "e", 0)})
	want := []string{"pod web-1 is another one", "pod web-10 is another one", "containers of pod web-2 restarted (2 times before, 3 now)"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestGoBack: the commands name the TApp, its namespace and the annotation.
func TestGoBack(t *testing.T) {
	var out bytes.Buffer
	v := &migration{migrating: &migrating{Options: Options{Streams: genericiooptions.IOStreams{Out: &out}}, flags: &Flags{Output: new("")}}, s: &Cluster{Namespace: "shop"},
		tapp: &tappv1.TApp{ObjectMeta: metav1.ObjectMeta{Name: "web"}}}
	v.goBack()
	const want = `
To go back, without a restart as well:
  kubectl tapp migrate tapp/web -n shop --back > statefulset.json
  kubectl delete tapp web -n shop --cascade=orphan
  kubectl create -f statefulset.json
`
	if out.String() != want {
		t.Errorf("%s", out.String())
	}
}

// TestManifestForGit: without the state, the annotations of the migration and the pause.
func TestManifestForGit(t *testing.T) {
	tapp, err := Convert(gen.RolledOut())
	if err != nil {
		t.Fatal(err)
	}
	m := &migrating{Options: Options{WithoutState: func(u *unstructured.Unstructured) *unstructured.Unstructured {
		delete(u.Object, "status")
		return u
	}}}
	u, err := m.manifest(tapp)
	if err != nil {
		t.Fatal(err)
	}
	_, paused := u.Object["spec"].(map[string]any)["paused"]
	_, status := u.Object["status"]
	if annotations := u.GetAnnotations(); len(annotations) != 1 || annotations["team"] != "shop" || paused || status || u.GetKind() != "TApp" {
		t.Errorf("%v", u.Object)
	}
	if !tapp.Spec.Paused || tapp.Annotations[AnnotationUID] != "set" {
		t.Error("the TApp itself was changed")
	}
}

// TestTakingOver: a claim gets label and annotations in one write, for the version that was looked at,
// also where its StatefulSet owns it until then.
func TestTakingOver(t *testing.T) {
	set := gen.RolledOut(func(s *appsv1.StatefulSet) {
		s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
	})
	v := &migration{set: set, s: &Cluster{Tracking: func(context.Context, *tappv1.TApp) string { return "example.com/app" }}}
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-web-1", UID: "u", ResourceVersion: "7", Labels: map[string]string{"app": "web"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "Pod", Name: "web-1"}}}}
	const plain = `{"metadata":{"labels":{"tapp_instance_key":"1"},"uid":"u"}}`
	if got := string(v.takingOver(t.Context(), c)); got != plain {
		t.Errorf("not tracked: %s", got)
	}
	c.Labels["example.com/app"] = "shop"
	const tracked = `{"metadata":{"annotations":{"argocd.argoproj.io/compare-options":"IgnoreExtraneous","argocd.argoproj.io/sync-options":"Prune=false,Delete=false"},` +
		`"labels":{"tapp_instance_key":"1"},"resourceVersion":"7","uid":"u"}}`
	if got := string(v.takingOver(t.Context(), c)); got != tracked {
		t.Errorf("tracked: %s", got)
	}
	set.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenDeleted: appsv1.DeletePersistentVolumeClaimRetentionPolicyType}
	if got := string(v.takingOver(t.Context(), c)); got != plain {
		t.Errorf("the TApp's: %s", got)
	}
}
