//go:build cluster

package e2e

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/test/gen"
)

func remove(t *testing.T, ns, name string, policy metav1.DeletionPropagation) {
	t.Helper()
	if err := suite.TApps(ns).Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
		t.Fatalf("delete TApp %s: %v", name, err)
	}
}

func tappGone(t *testing.T, ns, name string) {
	t.Helper()
	eventually(t, "TApp "+name+" is gone", func(ctx context.Context) error {
		tapp, err := suite.TApps(ns).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		}
		return fmt.Errorf("finalizers %v; status: %s", tapp.Finalizers, cluster.StatusOf(tapp))
	})
}

// A TApp that is being deleted creates nothing, in whichever order its pods go,
// and a foreground deletion ends (fault 8).
func TestDelete(t *testing.T) {
	t.Parallel()
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			// Instance 2 takes its time to end, so that the others are long gone.
			ns, _ := run(t, gen.TApp("app", gen.Pool("slow", gen.Env("DEMO_STOP_DELAY", "3s")), gen.Use("slow", 2)))
			var created atomic.Int32
			t.Cleanup(suite.feed.follow(func(s step) {
				if s.pod().Namespace == ns && s.Old == nil {
					created.Add(1)
				}
			}))
			remove(t, ns, "app", policy)
			tappGone(t, ns, "app")
			noPods(t, ns)
			if n := created.Load(); n > 0 {
				t.Errorf("%d pods were created after the deletion", n)
			}
		})
	}
}

func TestOrphansAreAdoptedByTheNextOne(t *testing.T) {
	t.Parallel()
	ns, _ := run(t, gen.TApp("app"))
	before := pods(t, ns)
	remove(t, ns, "app", metav1.DeletePropagationOrphan)
	tappGone(t, ns, "app")
	orphans := onlyPods(t, ns, "app-0", "app-1", "app-2")
	for _, p := range orphans {
		if owner(p) != nil {
			t.Errorf("%s still has an owner", p.Name)
		}
	}
	untouched(t, before, orphans)

	tapp := create(t, ns, gen.TApp("app"))
	settled(t, ns, "app")
	after := onlyPods(t, ns, "app-0", "app-1", "app-2")
	untouched(t, before, after)
	for _, p := range after {
		if ref := owner(p); ref == nil || ref.UID != tapp.UID {
			t.Errorf("%s was not adopted: %v", p.Name, p.OwnerReferences)
		}
	}
}

// Orphans of an older template are adopted, and then updated in place.
func TestOrphansOfAnOlderTemplate(t *testing.T) {
	t.Parallel()
	ns, _ := run(t, gen.TApp("app", gen.Replicas(2)))
	before := pods(t, ns)
	remove(t, ns, "app", metav1.DeletePropagationOrphan)
	tappGone(t, ns, "app")
	create(t, ns, gen.TApp("app", gen.Replicas(2), gen.Default(gen.Image("demo:v2"))))
	settled(t, ns, "app")
	after := onlyPods(t, ns, "app-0", "app-1")
	sameUIDs(t, before, after)
	for _, p := range after {
		if image(p, "main") != "demo:v2" || restarts(p, "main") != 1 {
			t.Errorf("it should have been updated in place: %s", cluster.PodLine(p))
		}
	}
}

// A finalizer on a pod keeps its instance dying; no second pod, no end without it.
func TestPodWithFinalizer(t *testing.T) {
	t.Parallel()
	ns, _ := run(t, gen.TApp("app", gen.Replicas(2)))
	kubectl(t, ns, "patch", "pod", "app-1", "--type=merge", "-p", `{"metadata":{"finalizers":["example.com/hold"]}}`)
	uid := pod(t, ns, "app-1").UID
	kubectl(t, ns, "delete", "pod", "app-1", "--wait=false")
	instancesAre(t, ns, "app", map[string]tappv1.InstanceStatus{"0": running, "1": tappv1.InstanceKilling})
	if p := pod(t, ns, "app-1"); p.UID != uid {
		t.Errorf("it was made anew: %s", cluster.PodLine(p))
	}
	kubectl(t, ns, "patch", "pod", "app-1", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	podGone(t, ns, "app-1", uid)
	settled(t, ns, "app")
}
