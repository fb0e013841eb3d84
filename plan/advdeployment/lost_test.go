package advdeployment

import (
	"strings"
	"testing"
	"time"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// stalls a child for a reason, as its own controller tells.
func (w *world) stalls(child Child, reason, text string) {
	w.children[child].Object["status"].(map[string]any)["conditions"] = []any{map[string]any{"type": "Stalled", "status": "True", "reason": reason, "message": text}}
}

// TestNodeLost: a lost node stalls the AdvDeployment and halts no rollout by itself; what is
// a fault does, and gives the reason.
func TestNodeLost(t *testing.T) {
	w := newWorld(t, coloured("nginx:v1", "upgradeType: canary|blue"))
	w.run()
	w.spec(coloured("nginx:v2", "upgradeType: canary|blue"))
	w.step()
	w.tell(canary, 1, 1, 0)
	w.stalls(canary, "NodeLost", "node a is lost (instance 0)")
	w.step()
	w.tell(canary, 1, 1, 0) // it is as if all had changed at once
	w.step()
	const lost = `TApp "a-gz01-canary": node a is lost (instance 0)`
	w.expect("the rollout goes on", w.d.Status.AggrStatus.Status, v1beta1.PhaseUpdating)
	w.expect("told", w.condition(v1beta1.ConditionStalled), "True NodeLost: "+lost)
	w.images("blue waits", "v2", "v1")
	w.now = w.now.Add(10 * time.Minute)
	w.step()
	w.tell(canary, 1, 1, 0) // it follows that it is held
	w.step()
	w.expect("nothing moved", w.d.Status.AggrStatus.Status, v1beta1.PhaseHalted)
	if got := w.condition(v1beta1.ConditionStalled); !strings.HasPrefix(got, "True RolloutHalted: ") || !strings.HasSuffix(got, "; "+lost) {
		t.Errorf("halted: %s", got)
	}

	w = newWorld(t, coloured("nginx:v1", ""))
	w.run()
	w.stalls(canary, "NodeLost", "node a is lost (instance 0)")
	w.stalls(blue, "InvalidSpec", "no")
	w.step()
	w.expect("a fault goes first", w.condition(v1beta1.ConditionStalled), `True InvalidSpec: TApp "a-gz01-blue": no; `+lost)

	w = newWorld(t, coloured("nginx:v1", "upgradeType: canary|blue"))
	w.run()
	w.spec(coloured("nginx:v2", "upgradeType: canary|blue"))
	w.step()
	w.tell(canary, 1, 1, 0)
	w.stalls(canary, "InvalidSpec", "no")
	w.step()
	w.tell(canary, 1, 1, 0)
	w.step()
	w.expect("a fault halts at once", w.d.Status.AggrStatus.Status, v1beta1.PhaseHalted)
}

// TestMended: what is wrong with a content that the rollout replaces in its turn needs no help.
func TestMended(t *testing.T) {
	w := newWorld(t, coloured("nginx:v1", gated))
	w.run()
	w.stalls(blue, "InvalidSpec", "no")
	w.step()
	const said = `TApp "a-gz01-blue": no`
	w.expect("at rest", w.condition(v1beta1.ConditionStalled), "True InvalidSpec: "+said)
	w.spec(coloured("nginx:v2", gated))
	w.step()
	w.tell(canary, 1, 1, 0)
	w.step()
	w.expect("while the canary changes", w.condition(v1beta1.ConditionStalled), "False Synced: nothing is in the way")
	if got := w.condition(v1beta1.ConditionReconciling); !strings.HasPrefix(got, "True ") || !strings.Contains(got, said+"; another content is on its way there") {
		t.Errorf("it says %s", got)
	}
	w.spec(coloured("nginx:v2", gated+", paused: true"))
	w.run()
	w.stalls(blue, "InvalidSpec", "no")
	w.step()
	w.expect("while nothing changes", w.condition(v1beta1.ConditionStalled), "True InvalidSpec: "+said)
}
