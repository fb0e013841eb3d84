package plugin

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plugin/migrate"
	"tkestack.io/tapp/test/gen"
)

// serveSet serves a StatefulSet with its two pods, and more; nil takes an object away.
func serveSet(t *testing.T, set *appsv1.StatefulSet, more map[string]any, edits ...func(*corev1.Pod)) {
	t.Helper()
	objects := map[string]any{setsPath + "/web": set, podsPath: podList(gen.PodOfSet(set, 0, edits...), gen.PodOfSet(set, 1, edits...)),
		claimsPath: &corev1.PersistentVolumeClaimList{Items: []corev1.PersistentVolumeClaim{
			{ObjectMeta: metav1.ObjectMeta{Name: "data-web-0"}}, {ObjectMeta: metav1.ObjectMeta{Name: "data-web-7"}},
			{ObjectMeta: metav1.ObjectMeta{Name: "data-webs-0"}}, {ObjectMeta: metav1.ObjectMeta{Name: "data-web-01"}},
		}}}
	for path, object := range more {
		if objects[path] = object; object == nil {
			delete(objects, path)
		}
	}
	serve(t, objects)
}

// trackedClaims are of an Application of Argo CD: one that is labelled already, one that it is told to
// leave, and one that is not.
func trackedClaims() *corev1.PersistentVolumeClaimList {
	tracked := func(name string, labels, annotations map[string]string) corev1.PersistentVolumeClaim {
		if labels == nil {
			labels = map[string]string{}
		}
		labels[tappv1.DefaultTrackingLabel] = "shop"
		return corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: annotations}}
	}
	return &corev1.PersistentVolumeClaimList{Items: []corev1.PersistentVolumeClaim{
		tracked("data-web-0", map[string]string{tappv1.LabelInstanceID: "0"}, nil), tracked("data-web-7", nil, nil), tracked("logs-web-0", nil, nil),
		tracked("data-web-1", nil, map[string]string{"argocd.argoproj.io/sync-options": "Prune=false,Delete=false", "argocd.argoproj.io/compare-options": "IgnoreExtraneous"}),
	}}
}

// TestMigrate: what --dry-run says, of sets that can be migrated and of others.
func TestMigrate(t *testing.T) {
	withClaims := func(s *appsv1.StatefulSet) {
		s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
	}
	converted, err := migrate.Convert(gen.RolledOut())
	if err != nil {
		t.Fatal(err)
	}
	behind := &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(3))}
	foreign := webTApp(2)
	foreign.SetGroupVersionKind(tappv1.GroupVersionKind())
	mounts := func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-" + p.Name}}}}
	}
	for _, c := range []struct {
		name     string
		set      *appsv1.StatefulSet
		more     map[string]any
		pod      func(*corev1.Pod)
		args     []string
		code     int
		out, err string
	}{
		{name: "good", set: gen.RolledOut(), out: `1/5  StatefulSet web is rolled out, and its 2 pods would not restart
2/5  would label 2 pods and 0 claims
3/5  would make TApp web
4/5  would delete StatefulSet web without its pods
5/5  TApp web would adopt 2 pods
`},
		{name: "labelled already, claims, in order", set: gen.RolledOut(withClaims, func(s *appsv1.StatefulSet) { s.Spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement }),
			pod: func(p *corev1.Pod) {
				p.Labels[tappv1.LabelInstanceID] = strings.TrimPrefix(p.Name, "web-")
				mounts(p)
			},
			err: "Warning: spec.podManagementPolicy is OrderedReady: a TApp creates and deletes instances in parallel\n",
			out: `1/5  StatefulSet web is rolled out, and its 2 pods would not restart
2/5  would label 0 pods and 2 claims
3/5  would make TApp web
4/5  would delete StatefulSet web without its pods
5/5  TApp web would adopt 2 pods
`},
		{name: "claims of an Application", set: gen.RolledOut(withClaims), more: map[string]any{claimsPath: trackedClaims()}, pod: mounts,
			out: `1/5  StatefulSet web is rolled out, and its 2 pods would not restart
2/5  would label 2 pods and 3 claims, and annotate 2 claims for Argo CD, which would prune what a StatefulSet leaves
3/5  would make TApp web
4/5  would delete StatefulSet web without its pods
5/5  TApp web would adopt 2 pods
`},
		{name: "claims that go with it", set: gen.RolledOut(withClaims, func(s *appsv1.StatefulSet) {
			s.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenDeleted: appsv1.DeletePersistentVolumeClaimRetentionPolicyType}
		}), more: map[string]any{claimsPath: trackedClaims()}, pod: mounts,
			out: `1/5  StatefulSet web is rolled out, and its 2 pods would not restart
2/5  would label 2 pods and 2 claims
3/5  would make TApp web
4/5  would delete StatefulSet web without its pods
5/5  TApp web would adopt 2 pods
`},
		{name: "begun", set: gen.RolledOut(), more: map[string]any{tappsPath + "/web": converted}, out: `1/5  TApp web was made from StatefulSet web before: going on
2/5  would label 2 pods and 0 claims
3/5  TApp web is there already
4/5  would delete StatefulSet web without its pods
5/5  TApp web would adopt 2 pods
`},
		{name: "gone", set: gen.RolledOut(), more: map[string]any{tappsPath + "/web": converted, setsPath + "/web": nil},
			out: `1/5  TApp web was made from StatefulSet web before: going on
2/5  would label 2 pods and 0 claims
3/5  TApp web is there already
4/5  StatefulSet web is gone already
5/5  TApp web would adopt 2 pods
`},
		{name: "changed since", set: gen.RolledOut(func(s *appsv1.StatefulSet) { s.Spec.Replicas = new(int32(3)) }), more: map[string]any{tappsPath + "/web": converted}, code: 1,
			err: "error: StatefulSet web changed after TApp web was made from it, and still has its pods: delete the TApp, and begin again\n"},
		{name: "another TApp", set: gen.RolledOut(), more: map[string]any{tappsPath + "/web": foreign}, code: 1,
			err: "error: there is a TApp web already, and it was not made from this StatefulSet\n"},
		{name: "made from another set", set: gen.RolledOut(func(s *appsv1.StatefulSet) { s.UID = "new" }), more: map[string]any{tappsPath + "/web": converted}, code: 1,
			err: "error: there is a TApp web already, and it was not made from this StatefulSet\n"},
		{name: "nothing there", set: gen.RolledOut(), more: map[string]any{setsPath + "/web": nil}, code: 1,
			err: "error: statefulsets.apps \"web\" not found\n"},
		{name: "one reason", set: gen.RolledOut(func(s *appsv1.StatefulSet) { s.Spec.UpdateStrategy.RollingUpdate = behind }), code: 1,
			err: "error: StatefulSet web is not migrated: spec.updateStrategy.rollingUpdate.partition is 3, which a TApp has not (it has spec.templates); set it to 0\n"},
		{name: "several reasons", set: gen.RolledOut(func(s *appsv1.StatefulSet) { s.Spec.UpdateStrategy.RollingUpdate = behind }), code: 1,
			pod: func(p *corev1.Pod) { p.Status.Conditions = nil },
			err: "error: StatefulSet web is not migrated:\n  spec.updateStrategy.rollingUpdate.partition is 3, which a TApp has not (it has spec.templates); set it to 0\n  pod web-0 is not ready\n  pod web-1 is not ready\n"},
		{name: "pods would restart", set: gen.RolledOut(), pod: func(p *corev1.Pod) { p.Spec.Containers[0].Image = "web:0" }, code: 1,
			err: "error: StatefulSet web is not migrated: 2 instances are updated in place (0-1): image of web from web:0 to web:1; rolling, at most 1 at a time\n"},
		{name: "pods would restart, by force", set: gen.RolledOut(), pod: func(p *corev1.Pod) { p.Spec.Containers[0].Image = "web:0" }, args: []string{"--force"},
			err: "Warning: 2 instances are updated in place (0-1): image of web from web:0 to web:1; rolling, at most 1 at a time\n",
			out: `1/5  StatefulSet web is rolled out, and TApp web would change its pods
2/5  would label 2 pods and 0 claims
3/5  would make TApp web
4/5  would delete StatefulSet web without its pods
5/5  TApp web would adopt 2 pods
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			edit := func(p *corev1.Pod) {
				if c.pod != nil {
					c.pod(p)
				}
			}
			serveSet(t, c.set, c.more, edit)
			for _, dryRun := range []string{"server", "client"} {
				code, out, errOut := run(t, append([]string{program, "migrate", "sts/web", "--dry-run=" + dryRun}, c.args...)...)
				if code != c.code || out != c.out || errOut != c.err {
					t.Errorf("--dry-run=%s: exit code %d, errors\n%s\nprinted\n%s", dryRun, code, errOut, out)
				}
			}
		})
	}
}
