package release

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/metadata/fake"
	clocktesting "k8s.io/utils/clock/testing"

	plan "tkestack.io/tapp/plan/release"
)

// What a plan waits for is read anew, and nothing else is; a record is read with all others.
func TestExpire(t *testing.T) {
	job, other := plan.Ref{APIVersion: "batch/v1", Kind: "Job", Namespace: "shop", Name: "job"}, plan.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "job"}
	s := &State{listed: time.Unix(1800000000, 0)}
	s.of("web").objects[job], s.of("web").objects[other] = sight{}, sight{}
	s.Expire("web", []plan.Ref{job})
	if seen := s.of("web").objects; len(seen) != 1 || s.listed.IsZero() {
		t.Errorf("known: %v, listed at %s", seen, s.listed)
	} else if _, known := seen[other]; !known {
		t.Errorf("known: %v", seen)
	}
	s.Expire("web", []plan.Ref{plan.RecordRef("web")})
	if !s.listed.IsZero() {
		t.Error("the records are not read anew")
	}
}

// What is known of the objects of hooks is not believed when they are to run.
func TestHooksAreDoubted(t *testing.T) {
	job, other := plan.Ref{APIVersion: "batch/v1", Kind: "Job", Namespace: "shop", Name: "job"}, plan.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "job"}
	s := &State{}
	r := s.of("web")
	r.objects[job], r.objects[other] = sight{}, sight{}
	r.doubt([]plan.Hook{{Object: plan.Object{Content: map[string]any{"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": "job"}}}}})
	if _, known := r.objects[job]; known || len(r.objects) != 1 {
		t.Errorf("known: %v", r.objects)
	}
}

// At rest records are read once a minute, and at once where somebody may have run helm. If
// he has, the objects are read, too.
func TestDoubt(t *testing.T) {
	scheme := fake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	heads := fake.NewSimpleMetadataClient(scheme)
	store := func(version int, resourceVersion string) {
		t.Helper()
		head := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: fmt.Sprint("sh.helm.release.v1.web.v", version), ResourceVersion: resourceVersion,
			Labels: map[string]string{"owner": "helm", "name": "web", "version": fmt.Sprint(version), "status": "deployed"}}}
		_ = heads.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("secrets"), "shop", head.Name)
		if err := heads.Tracker().Add(head); err != nil {
			t.Fatal(err)
		}
	}
	clock := clocktesting.NewFakePassiveClock(time.Unix(1800000000, 0))
	o := New(Options{Clock: clock, As: func(string, string) (*Access, error) { return &Access{Heads: heads}, nil }})
	s, object := &State{}, plan.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "web"}
	observe := func(what string, reads, known int) {
		t.Helper()
		heads.ClearActions()
		s.of("web").objects[object] = sight{&unstructured.Unstructured{}, clock.Now()}
		if err := o.Observe(t.Context(), s, Owner{Namespace: "shop", Name: "app"}, []string{"web"}, func(plan.Ref) (*unstructured.Unstructured, bool) { return nil, false }); err != nil {
			t.Fatal(err)
		}
		// A list by the AdvDeployment's name, and one by the names of releases.
		if got := len(heads.Actions()); got != 2*reads || len(s.of("web").objects) != known || s.fresh != (reads > 0) {
			t.Errorf("%s: %d reads, objects %v, fresh: %v", what, got, s.of("web").objects, s.fresh)
		}
	}
	store(1, "5")
	observe("at first", 1, 0)
	observe("at rest", 0, 1)
	s.MarkStale()
	observe("stale", 1, 1)
	observe("at rest again", 0, 1)
	store(1, "6")
	observe("nobody says so", 0, 1)
	s.MarkStale()
	observe("somebody wrote a record", 1, 0)
	store(2, "7")
	s.MarkStale()
	observe("somebody made a record", 1, 0)
	clock.SetTime(clock.Now().Add(resync + time.Second))
	observe("after a minute", 1, 0)
}
