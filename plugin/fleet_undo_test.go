package plugin

import (
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/podset"
)

// TestFleetReturns: what is stored of earlier contents, and how an AppSet gets back to them.
func TestFleetReturns(t *testing.T) {
	a := fleetApp(t)
	revisions := revisionsOf(t, a)
	serveFleet(t, a, map[string]any{revisionsPath: revisions})
	code, out, errOut := run(t, program, "fleet", "history", "web", "-o", "json")
	var versions []struct {
		Revision       int64
		Versions       string
		Target, Stable bool
	}
	if err := json.Unmarshal([]byte(out), &versions); err != nil || code != 0 || errOut != "" || len(versions) != 2 {
		t.Fatalf("exit code %d, %v, errors %q: %s", code, err, errOut, out)
	}
	if v := versions[0]; v.Revision != 2 || v.Versions != "v2" || !v.Target || v.Stable {
		t.Errorf("the newest is %+v", v)
	}
	if v := versions[1]; v.Revision != 1 || v.Versions != "v1" || v.Target || !v.Stable {
		t.Errorf("the stable one is %+v", v)
	}
	code, out, errOut = run(t, program, "fleet", "undo", "web", "--dry-run", "-o", "json")
	back := &v1beta1.AppSet{}
	if err := json.Unmarshal([]byte(out), back); err != nil || code != 0 || errOut != "" {
		t.Fatalf("exit code %d, %v, errors %q: %s", code, err, errOut, out)
	}
	units, _, _ := podset.Units(back)
	if got := podset.Revision(units); got != a.Status.Rollout.Stable {
		t.Errorf("it goes back to %s, not to %s", got, a.Status.Rollout.Stable)
	}
	if back.Spec.UpdateStrategy.UpgradeType != a.Spec.UpdateStrategy.UpgradeType || len(units) != 3 || units[1].Replicas != 3 {
		t.Errorf("it changes more than the content: %+v", back.Spec)
	}
	for _, c := range []struct{ args, out, err string }{
		{"undo web --dry-run", "appset.workload.dmall.com/web goes back to revision 1 (v1) (server dry run)\n", ""},
		{"undo web --to-revision 7", "", "error: web has no revision 7: kubectl tapp fleet history web lists them\n"},
		{"retry web", "", "error: no rollout of web halted: it is Unknown\n"},
	} {
		_, out, errOut := run(t, append([]string{program, "fleet"}, strings.Fields(c.args)...)...)
		if out != c.out || errOut != c.err {
			t.Errorf("%s: %q, errors %q, want %q, %q", c.args, out, errOut, c.out, c.err)
		}
	}
}

// TestFleetReturnsClaims: claims that have grown stay so, since they cannot shrink.
func TestFleetReturnsClaims(t *testing.T) {
	claims := func(size string) func(*v1beta1.AppSet) {
		claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}}
		claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
		return func(a *v1beta1.AppSet) { a.Spec.PodSpec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim} }
	}
	a := fleetApp(t, claims("1Gi"))
	revisions := revisionsOf(t, a)
	claims("2Gi")(a)
	serveFleet(t, a, map[string]any{revisionsPath: revisions})
	code, out, errOut := run(t, program, "fleet", "undo", "web", "--dry-run", "-o", "json")
	back := &v1beta1.AppSet{}
	if err := json.Unmarshal([]byte(out), back); err != nil || code != 0 || errOut != "" {
		t.Fatalf("exit code %d, %v, errors %q: %s", code, err, errOut, out)
	}
	if got := back.Spec.PodSpec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage().String(); got != "2Gi" || back.Spec.ClusterTopology.Clusters[0].PodSets[0].Version != "v1" {
		t.Errorf("claims of %s, and %+v", got, back.Spec.ClusterTopology)
	}
}

// TestFleetUndoConflicts: a status that is written meanwhile does not end an undo, as the command
// promises; a spec that changed does.
func TestFleetUndoConflicts(t *testing.T) {
	for name, c := range map[string]struct {
		generation int64 // of the AppSet from the second answer on
		out, err   string
	}{
		"status": {4, "appset.workload.dmall.com/web goes back to revision 1 (v1) (server dry run)\n", ""},
		"spec":   {5, "", "error: the spec of web changed since this command read it; nothing was written: run it again\n"},
	} {
		a := fleetApp(t)
		a.ResourceVersion = "7"
		later := a.DeepCopy()
		later.ResourceVersion, later.Generation = "8", c.generation
		serveFleet(t, a, map[string]any{revisionsPath: revisionsOf(t, a), appSetsPath + "/web": changing{a, later, &atomic.Int32{}}})
		if _, out, errOut := run(t, program, "fleet", "undo", "web", "--dry-run"); out != c.out || errOut != c.err {
			t.Errorf("%s changed: %q, errors %q, want %q, %q", name, out, errOut, c.out, c.err)
		}
	}
}

// changing is an AppSet that somebody writes right after it was read for the first time.
type changing struct {
	first, then *v1beta1.AppSet
	asked       *atomic.Int32
}

func (c changing) MarshalJSON() ([]byte, error) {
	if c.asked.Add(1) == 1 {
		return json.Marshal(c.first)
	}
	return json.Marshal(c.then)
}
