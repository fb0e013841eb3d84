package appset

import (
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/intstr"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// errDial is of a cluster that does not answer.
var errDial = &net.OpError{Op: "dial", Err: errors.New("timeout")}

// scale asks for so many instances of the first podSet in clusters.
func (w *world) scale(replicas int32, clusters ...string) {
	w.app = w.app.DeepCopy()
	w.app.Generation++
	for i := range w.app.Spec.ClusterTopology.Clusters {
		if c := &w.app.Spec.ClusterTopology.Clusters[i]; slices.Contains(clusters, c.Name) {
			c.PodSets[0].Replicas = new(intstr.FromInt32(replicas))
		}
	}
}

// TestSideBySide: a cluster that does not answer delays no write to another.
func TestSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "one", "two")
		silent := make(chan struct{})
		w.members["one"].fails = func(string) error {
			w.clusters.mu.Unlock() // others go on
			<-silent
			w.clusters.mu.Lock()
			return errDial
		}
		ended := make(chan struct{})
		go func() { defer close(ended); _, _ = w.step() }()
		synctest.Wait()
		if w.members["two"].live == nil {
			t.Error("cluster two waits for cluster one")
		}
		close(silent)
		<-ended
	})
}

// TestSilentBehind: clusters that do not answer when they are read live are waited for once,
// and side by side; a change that comes meanwhile reaches the others in the next sync.
func TestSilentBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "one", "two", "three")
		topology := &w.app.Spec.ClusterTopology
		topology.Clusters = append(topology.Clusters, *topology.Clusters[0].DeepCopy())
		topology.Clusters[2].Name = "three"
		w.must()
		for _, name := range []string{"one", "two"} { // their watches tell of nothing
			w.members[name].cached = nil
		}
		w.members["three"].cached = w.members["three"].live
		time.Sleep(patience)
		silent := make(chan struct{})
		for _, name := range []string{"one", "two"} {
			m := w.members[name]
			m.wrote = nil
			m.fails = func(string) error {
				w.clusters.mu.Unlock() // others go on
				<-silent
				w.clusters.mu.Lock()
				return errDial
			}
		}
		w.scale(4, "one", "two", "three")
		ended := make(chan struct{})
		go func() { defer close(ended); _, _ = w.step() }()
		synctest.Wait()
		for _, name := range []string{"one", "two"} {
			if got := strings.Join(w.members[name].wrote, " "); got != "Observe" {
				t.Errorf("cluster %s is asked %q while another one does not answer", name, got)
			}
		}
		w.scale(5, "one", "two", "three")
		close(silent)
		<-ended
		for _, name := range []string{"one", "two"} {
			if got := strings.Join(w.members[name].wrote, " "); got != "Observe" {
				t.Errorf("cluster %s did not answer, and is asked %q in the same sync", name, got)
			}
			w.members[name].wrote = nil
		}
		w.members["three"].wrote = nil
		_, _ = w.step()
		if got := strings.Join(w.members["three"].wrote, " "); got != "Apply" {
			t.Errorf("cluster three is asked %q", got)
		}
		for _, name := range []string{"one", "two"} {
			if got := strings.Join(w.members[name].wrote, " "); got != "Apply" {
				t.Errorf("cluster %s did not answer, and is asked %q in the next sync", name, got)
			}
		}
	})
}

// TestNoRoundAfterWait: a sync that waited for one cluster in vain ends, although another one
// refused a write that was planned on an older version of its part: that is tried in the next
// sync, which knows what was changed meanwhile.
func TestNoRoundAfterWait(t *testing.T) {
	w := newWorld(t, "one", "two")
	w.must()
	w.catchUp()
	w.scale(4, "one", "two")
	one, two := w.members["one"], w.members["two"]
	one.wrote, two.wrote = nil, nil
	one.fails = func(string) error { return errDial }
	conflicts := 1
	two.fails = func(verb string) error {
		if verb != "Apply" || conflicts == 0 {
			return nil
		}
		conflicts--
		return apierrors.NewConflict(v1beta1.SchemeGroupVersion.WithResource("advdeployments").GroupResource(), "web", errors.New("it was changed"))
	}
	_, _ = w.step()
	if got := strings.Join(two.wrote, " "); got != "Apply Observe" {
		t.Errorf("cluster two is asked %q in the sync that waited for cluster one, want Apply and Observe", got)
	}
	two.wrote = nil
	_, _ = w.step()
	if got := strings.Join(two.wrote, " "); got != "Apply" {
		t.Errorf("cluster two is asked %q in the next sync, want Apply", got)
	}
}

// TestWaitedOnce: right after a sync that waited for one cluster in vain, the next one waits
// for no other that is to be read live before it writes.
func TestWaitedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "one", "two")
		w.must()
		w.members["one"].cached = w.members["one"].live
		w.members["two"].cached = nil // its watch tells of nothing
		time.Sleep(patience - time.Second)
		w.scale(4, "one")
		w.members["one"].fails = func(string) error { return errDial }
		_, _ = w.step() // waits for one
		time.Sleep(time.Second)
		w.members["one"].fails = nil
		w.members["one"].wrote, w.members["two"].wrote = nil, nil
		w.scale(5, "one", "two")
		_, _ = w.step()
		if got := strings.Join(w.members["two"].wrote, " "); got != "Apply" {
			t.Errorf("cluster two is asked %q right after a sync that waited, want Apply alone", got)
		}
		if got := strings.Join(w.members["one"].wrote, " "); got != "Apply" {
			t.Errorf("cluster one is asked %q", got)
		}
		w.members["two"].cached, w.members["two"].wrote = nil, nil
		time.Sleep(patience)
		w.scale(6, "one", "two")
		_, _ = w.step()
		if got := strings.Join(w.members["two"].wrote, " "); got != "Observe Apply" {
			t.Errorf("cluster two is asked %q after a while, want Observe and Apply", got)
		}
	})
}

// oneLeft is a world in which cluster one has left, and is to be forgotten, while cluster two
// is to be scaled to 4.
func oneLeft(t *testing.T) (w *world, one, two *cluster) {
	t.Helper()
	w = newWorld(t, "one", "two")
	w.must()
	w.catchUp()
	w.must()
	one, two = w.members["one"], w.members["two"]
	one.live, one.cached = nil, nil
	one.wrote, two.wrote = nil, nil
	w.app = w.app.DeepCopy()
	w.app.Generation++
	w.app.Spec.ClusterTopology.Clusters = w.app.Spec.ClusterTopology.Clusters[1:]
	w.app.Spec.ClusterTopology.Clusters[0].PodSets[0].Replicas = new(intstr.FromInt32(4))
	w.took()
	return w, one, two
}

// TestSilentGone: a cluster that left and does not answer when it is read live, before it is
// forgotten, delays no write to the others.
func TestSilentGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, one, two := oneLeft(t)
		silent := make(chan struct{})
		one.fails = func(string) error {
			w.clusters.mu.Unlock() // others go on
			<-silent
			w.clusters.mu.Lock()
			return errDial
		}
		ended := make(chan error)
		go func() { _, err := w.step(); ended <- err }()
		synctest.Wait()
		if got := two.live.Spec.Topology.PodSets[0].Replicas.String(); got != "4" {
			t.Errorf("cluster two has %s instances, and waits for cluster one", got)
		}
		close(silent)
		if err := <-ended; err == nil || err.Error() != "cluster one: cannot look whether it has a part: dial: timeout" {
			t.Errorf("error %v", err)
		}
		if took := strings.Join(w.took(), ", "); strings.Contains(took, "PATCH appset") {
			t.Errorf("wrote %q to the hub", took)
		}
		w.expect("", map[string]string{"one": "Observe", "two": "Apply"})
		one.fails = nil
		w.catchUp()
		w.must()
		if took := strings.Join(w.took(), " "); !strings.HasPrefix(took, "PATCH appset") || strings.Contains(w.app.Annotations[v1beta1.AnnotationClusters], "one") {
			t.Errorf("wrote %q, and the clusters are %s", took, w.app.Annotations[v1beta1.AnnotationClusters])
		}
	})
}

// TestOneWait: a sync that waited for a cluster in vain waits for no other one, and forgets it
// later.
func TestOneWait(t *testing.T) {
	w, _, two := oneLeft(t)
	for _, answers := range []bool{false, true} {
		two.fails = func(string) error {
			if answers {
				return apierrors.NewForbidden(resource, "web", errors.New("quota"))
			}
			return errDial
		}
		if _, err := w.step(); err == nil {
			t.Error("no error")
		}
		w.took()
		w.expect("", map[string]string{"two": "Apply", "one": map[bool]string{true: "Observe"}[answers]})
	}
}

// TestForgetAfterRead: where a cluster did not answer when it was read live, none that left is
// looked at in the same sync, before it is forgotten.
func TestForgetAfterRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "one", "two")
		w.must()
		one, two := w.members["one"], w.members["two"]
		one.cached, two.cached = one.live, nil // the watch of two tells of nothing
		w.must()
		one.live, one.cached = nil, nil
		time.Sleep(patience)
		w.app = w.app.DeepCopy()
		w.app.Generation++
		w.app.Spec.ClusterTopology.Clusters = w.app.Spec.ClusterTopology.Clusters[1:]
		two.fails = func(string) error { return errDial }
		one.wrote, two.wrote = nil, nil
		_, _ = w.step()
		if got := strings.Join(append(one.wrote, two.wrote...), " "); got != "Observe" || len(two.wrote) != 1 {
			t.Errorf("cluster one is asked %q, and two %q, want Observe of two alone", one.wrote, two.wrote)
		}
		two.fails = nil
		w.must()
		if got := strings.Join(one.wrote, " "); got != "Observe" {
			t.Errorf("cluster one is asked %q in the next sync, want Observe", got)
		}
	})
}
