package app

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	appv1 "tkestack.io/tapp/crd/app/v1"
)

// TestLongRefusals: what the API server says is quoted in short, and the events are told
// once, however little of them the condition has room for.
func TestLongRefusals(t *testing.T) {
	c := newCluster(spec())
	c.settle(t)
	in := c.input()
	why := strings.Repeat("no such thing ", 3000)
	in.Refused = map[Child]string{{Deployment, "web"}: why, {Service, "web-svc"}: why}
	p := Compute(in)
	if len(p.Events) != 2 {
		t.Errorf("%d events", len(p.Events))
	}
	for _, condition := range p.Status.Conditions {
		if len(condition.Message) > 1024 {
			t.Errorf("the message of %s has %d bytes", condition.Type, len(condition.Message))
		}
	}
	stalled := meta.FindStatusCondition(p.Status.Conditions, appv1.ConditionStalled)
	if want := `the cluster refuses Deployment "web": no such thing no such thing `; stalled == nil || !strings.HasPrefix(stalled.Message, want) {
		t.Errorf("%+v", stalled)
	}
	in.App = in.App.DeepCopy()
	in.App.Status = p.Status
	if again := Compute(in); len(again.Events) != 0 {
		t.Errorf("%d events are told again", len(again.Events))
	}
}
