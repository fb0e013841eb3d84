package plugin

import (
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// TestFleetRetry: each retry is another one.
func TestFleetRetry(t *testing.T) {
	installing := func(a *v1beta1.AppSet) { a.Status.AggrStatus.Clusters[0].PodSets[1].Reason = "HookFailed" }
	serveFleet(t, fleetApp(t, installing), nil)
	if code, out, errOut := run(t, program, "fleet", "retry", "web", "--dry-run"); code != 0 || out != "appset.workload.dmall.com/web tries rollout 0123456789-4 again (server dry run)\n" {
		t.Errorf("with a hook that failed: exit code %d, %q, errors %q", code, out, errOut)
	}
	for was, want := range map[string]string{"": "0123456789-4", "9876543210-1/3": "0123456789-4", "0123456789-4": "0123456789-4/2", "0123456789-4/2": "0123456789-4/3"} {
		serveFleet(t, fleetApp(t, halted, func(a *v1beta1.AppSet) { a.Annotations = map[string]string{v1beta1.AnnotationRetry: was} }), nil)
		code, out, errOut := run(t, program, "fleet", "retry", "web", "--dry-run", "-o", "json")
		again := &v1beta1.AppSet{}
		if err := json.Unmarshal([]byte(out), again); err != nil || code != 0 || errOut != "" || again.Annotations[v1beta1.AnnotationRetry] != want {
			t.Errorf("after %q: exit code %d, %v, errors %q, %q", was, code, err, errOut, again.Annotations)
		}
	}
}

// seenLater is an AppSet that the controller has not seen when it is asked for first.
type seenLater struct {
	*v1beta1.AppSet
	asked *atomic.Int32
}

func (s seenLater) MarshalJSON() ([]byte, error) {
	a := s.DeepCopy()
	if s.asked.Add(1) == 1 {
		a.Status.ObservedGeneration--
		a.Status.AggrStatus.Status = v1beta1.PhaseRunning
	}
	return json.Marshal(a)
}

// TestFleetObserves: what goes by the status waits until that is about the present spec.
func TestFleetObserves(t *testing.T) {
	for args, want := range map[string]struct {
		edit func(*v1beta1.AppSet)
		out  string
	}{
		"confirm web --stage canary": {func(*v1beta1.AppSet) {}, "confirmation.workload.dmall.com/web-abc123 confirms stage canary of rollout 0123456789-4 (server dry run)\n"},
		"retry web":                  {halted, "appset.workload.dmall.com/web tries rollout 0123456789-4 again (server dry run)\n"},
	} {
		a := seenLater{fleetApp(t, want.edit), &atomic.Int32{}}
		serveFleet(t, a.AppSet, map[string]any{appSetsPath + "/web": a})
		code, out, errOut := run(t, append([]string{program, "fleet"}, strings.Fields(args+" --dry-run")...)...)
		if code != 0 || out != want.out || errOut != "Waiting for the controller to see generation 4 of web.\n" {
			t.Errorf("%s: exit code %d, %q, errors %q", args, code, out, errOut)
		}
	}
}
