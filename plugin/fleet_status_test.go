package plugin

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// TestFleetSuperseded: a podSet that is stalled by what it had before, and waits for its turn to get
// what mends it, does not end a rollout. One that is stalled by what it is to have does.
func TestFleetSuperseded(t *testing.T) {
	stalled := func(cluster, podSet int) func(*v1beta1.AppSet) {
		return func(a *v1beta1.AppSet) {
			a.Status.Rollout.State = "Staged"
			s := &a.Status.AggrStatus.Clusters[cluster].PodSets[podSet]
			s.Reason, s.Message = "HookFailed", "a hook failed"
			a.Status.Conditions[1] = metav1.Condition{Type: v1beta1.ConditionStalled, Status: metav1.ConditionTrue, Reason: "HookFailed", Message: "a hook failed", ObservedGeneration: 4}
		}
	}
	canary, blue := stalled(0, 0), stalled(0, 1)
	for name, c := range map[string]struct {
		edits []func(*v1beta1.AppSet)
		err   string
	}{
		"by what it had":                            {edits: []func(*v1beta1.AppSet){blue}},
		"by what it is to have":                     {edits: []func(*v1beta1.AppSet){canary}, err: "is stalled (HookFailed): a hook failed"},
		"one by this, and one by that":              {edits: []func(*v1beta1.AppSet){canary, blue}, err: "is stalled (HookFailed): a hook failed"},
		"by what it had, and nothing is on its way": {edits: []func(*v1beta1.AppSet){blue, rolledOut}, err: "is stalled (HookFailed): a hook failed"},
		"by what it had, and the cluster by another reason": {edits: []func(*v1beta1.AppSet){blue, func(a *v1beta1.AppSet) { a.Status.Conditions[1].Reason = "ClusterUnfit" }},
			err: "is stalled (ClusterUnfit): a hook failed"},
	} {
		t.Run(name, func(t *testing.T) {
			a := fleetApp(t, c.edits...)
			serveFleet(t, a, nil)
			code, _, errOut := run(t, program, "fleet", "status", "web")
			if (code == 0) != (c.err == "") || !strings.Contains(errOut, c.err) {
				t.Errorf("exit code %d, errors %q, want %q", code, errOut, c.err)
			}
		})
	}
}
