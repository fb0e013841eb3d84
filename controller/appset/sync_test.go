package appset

import (
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// TestLife: created with one write of the hub before all parts, nothing at rest, and
// deleted without a trace.
func TestLife(t *testing.T) {
	w := newWorld(t, "one", "two")
	w.must()
	w.expect("PATCH appset, POST revision, POST revision, PATCH status", map[string]string{"one": "Apply", "two": "Apply"})
	if w.phase() != v1beta1.PhaseInstalling {
		t.Errorf("phase %s", w.phase())
	}
	w.catchUp()
	w.must()
	w.expect("", nil)
	w.app.DeletionTimestamp = new(metav1.Now())
	w.must()
	w.expect("", map[string]string{"one": "Delete", "two": "Delete"})
	for _, m := range w.members {
		m.live = nil
	}
	w.catchUp()
	w.must()
	w.expect("PATCH appset", map[string]string{"one": "Observe", "two": "Observe"})
	if w.app != nil {
		t.Error("it is still there")
	}
}

// TestCachesBehind: what a cluster's cache does not show yet is not written again, and is
// read live when that takes too long.
func TestCachesBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "one", "two")
		w.must()
		w.took()
		w.expect("", map[string]string{"one": "Apply", "two": "Apply"})
		if result := w.must(); result.After <= 0 || result.After > patience {
			t.Errorf("comes again after %v", result.After)
		}
		w.expect("", nil)
		time.Sleep(patience)
		w.must()
		w.took()
		w.expect("", map[string]string{"one": "Observe", "two": "Observe"})

		w.catchUp()
		w.app.DeletionTimestamp = new(metav1.Now())
		w.must()
		w.must()
		w.took()
		w.expect("", map[string]string{"one": "Delete", "two": "Delete"})
	})
}

// TestToldOnce: an event is told once, also where the cache does not show the status yet that says
// the same.
func TestToldOnce(t *testing.T) {
	w := newWorld(t, "one", "two")
	w.app.Spec.PodSpec.DeployType = "none"
	behind := w.app.DeepCopy()
	for range 3 {
		w.app.Status = *behind.Status.DeepCopy()
		w.must()
		w.recorder.Flush(w.Context())
	}
	if len(w.told) != 1 || !strings.HasPrefix(w.told[0], v1beta1.ReasonInvalid) {
		t.Errorf("told %q", w.told)
	}
}

// TestTakeOver: a new leader whose caches lack a part finds it before the AppSet goes.
func TestTakeOver(t *testing.T) {
	w := newWorld(t, "one", "two")
	w.must()
	w.app.DeletionTimestamp = new(metav1.Now())
	w.lead()
	for _, m := range w.members {
		m.wrote = nil
	}
	w.took()
	w.must()
	w.expect("PATCH status", map[string]string{"one": "Observe, Delete", "two": "Observe, Delete"})
	if w.app == nil {
		t.Error("it is gone, and its parts are not")
	}
}

// TestForeignNames: a part of somebody else is found by the apply that creates, and is
// looked at again until it is gone.
func TestForeignNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "one", "two")
		w.members["two"].live = &v1beta1.AdvDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "theirs", ResourceVersion: "5"}}
		w.must()
		w.took()
		w.expect("", map[string]string{"one": "Apply", "two": "Apply, Observe"})
		w.catchUp()
		result := w.must()
		w.expect("", nil)
		time.Sleep(result.After)
		w.must()
		w.took()
		w.expect("", map[string]string{"two": "Observe"})
		w.members["two"].live = nil
		time.Sleep(patience)
		w.must()
		w.took()
		w.expect("", map[string]string{"two": "Observe, Apply"})
	})
}

// TestFaults: what one cluster does to a write leaves the other alone, and is tried again.
func TestFaults(t *testing.T) {
	for name, c := range map[string]struct {
		fault   error
		calls   string
		err     string
		stalled string
	}{
		"does not answer": {&net.OpError{Op: "dial", Err: errors.New("timeout")}, "Apply", "cluster two: cannot create the part: dial: timeout", ""},
		"refuses":         {apierrors.NewForbidden(resource, "web", errors.New("quota")), "Apply", `cluster two refused the part: advdeployments.workload.dmall.com "web" is forbidden: quota`, "Refused"},
		"has no namespace": {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "shop"), "Apply",
			`cluster two refused the part: namespaces "shop" not found`, "NamespaceMissing"},
		"panics": {nil, "Apply", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "one", "two")
			w.members["two"].fails = func(string) error {
				if c.fault == nil {
					panic("no")
				}
				return c.fault
			}
			defer func() {
				if r := recover(); (r != nil) != (c.fault == nil) {
					t.Errorf("panic %v", r)
				}
			}()
			_, err := w.step()
			if err == nil || err.Error() != c.err {
				t.Errorf("error %v, want %s", err, c.err)
			}
			w.expect("PATCH appset, POST revision, POST revision, PATCH status", map[string]string{"one": "Apply", "two": c.calls})
			stalled := ""
			for _, condition := range w.app.Status.Conditions {
				if condition.Type == v1beta1.ConditionStalled && condition.Status == metav1.ConditionTrue {
					stalled = condition.Reason
				}
			}
			if stalled != c.stalled {
				t.Errorf("stalled by %q, want %q", stalled, c.stalled)
			}
			w.members["two"].fails = nil
			w.catchUp()
			w.must()
			w.took()
			w.expect("", map[string]string{"two": "Apply"})
		})
	}
}

// TestCorrected: an edit is put right and told, once; where the cluster insists, writing
// ends.
func TestCorrected(t *testing.T) {
	for _, insists := range []bool{false, true} {
		w := newWorld(t, "one", "two")
		w.must()
		w.catchUp()
		two := w.members["two"]
		edit := func() {
			part := two.live.DeepCopy()
			part.Spec.ServiceName = "theirs"
			two.store(part)
		}
		edit()
		w.catchUp()
		if insists {
			two.after = edit
		}
		for _, m := range w.members {
			m.wrote = nil
		}
		w.must()
		w.catchUp()
		w.must()
		w.took()
		w.expect("", map[string]string{"two": "Patch"})
		if got := two.live.Spec.ServiceName; (got == "theirs") != insists {
			t.Errorf("the service is %q", got)
		}
	}
}

// TestAbandoned: a tombstone is stored before the AppSet goes, and goes with the part when
// the cluster is back; a part without one stays, and is counted.
func TestAbandoned(t *testing.T) {
	w := newWorld(t, "one", "two")
	w.must()
	w.catchUp()
	w.must()
	two := w.members["two"]
	two.State, two.Fresh, two.AsOf = v1beta1.ClusterOffline, false, time.Now()
	w.members["one"].live = nil
	w.catchUp()
	w.app.DeletionTimestamp = new(metav1.Now())
	w.app.Annotations[v1beta1.AnnotationAbandonClusters] = "two"
	w.took()
	two.wrote, w.members["one"].wrote = nil, nil
	w.must()
	w.expect("POST configmap, PATCH appset", map[string]string{"one": "Observe"})
	if w.app != nil {
		t.Fatal("it is still there")
	}
	w.must()
	w.expect("", nil)
	two.State, two.Fresh = v1beta1.ClusterReady, true
	cached := two.cached
	two.cached = nil
	w.must()
	w.expect("", map[string]string{"two": "Observe"})
	two.cached = cached
	w.must()
	w.expect("", map[string]string{"two": "Delete"})
	two.live = nil
	w.catchUp()
	w.must()
	w.expect("DELETE configmap", map[string]string{"two": "Observe"})

	two.store(&v1beta1.AdvDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "left", Labels: map[string]string{v1beta1.LabelFleetID: "hub-1"},
		Annotations: map[string]string{v1beta1.AnnotationAppSet: "shop/web"}}})
	w.catchUp()
	w.must()
	w.expect("", nil)
	w.partChanged("two", "shop", "web")
	w.working.Store(true)
	if got := w.orphans(); got != 1 {
		t.Errorf("%v orphans are told of", got)
	}
}

// TestLateWrites: an AppSet that has changed meanwhile is left to its event.
func TestLateWrites(t *testing.T) {
	w := newWorld(t, "one", "two")
	w.conflict = true
	w.must()
	w.expect("", nil)
	w.must()
	w.expect("PATCH appset, POST revision, POST revision, PATCH status", map[string]string{"one": "Apply", "two": "Apply"})
}

// TestGoneBehindTheCache: what a write found to be gone stays gone while the cache still
// shows it, or each sync would forget the cluster, remember it, and find the same again.
func TestGoneBehindTheCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "one", "two")
		w.must()
		w.catchUp()
		w.must()
		w.took()
		w.app.DeletionTimestamp = new(metav1.Now())
		w.members["one"].live = nil // its watch does not tell of it
		w.members["two"].fails = func(op string) error {
			if op == "Delete" {
				return &net.OpError{Op: "dial", Err: errors.New("no route")}
			}
			return nil
		}
		for range 5 {
			_, _ = w.step()
		}
		if got := strings.Join(w.members["one"].wrote, " "); strings.Count(got, "Delete") != 1 {
			t.Errorf("did %s in cluster one, want one deletion", got)
		}
		if got := w.took(); len(got) > 3 {
			t.Errorf("wrote %v to the hub", got)
		}
		time.Sleep(patience)
		w.members["one"].wrote = nil
		_, _ = w.step()
		if got := strings.Join(w.members["one"].wrote, " "); got != "Observe" {
			t.Errorf("did %q in cluster one after %v, want to look again", got, patience)
		}
	})
}
