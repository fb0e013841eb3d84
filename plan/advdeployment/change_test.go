package advdeployment

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/podset"
)

// change is the part of an AppSet in the midst of a change from one image to another.
func (w *world) change(from, to, podSet string) {
	w.Helper()
	written := func(image string) string {
		return fmt.Sprintf(`{podSpec: {deployType: tapp, template: {spec: {containers: [{name: a, image: 'nginx:%s', resources: {}}]}}}, topology: {podSets: [{name: web, replicas: 4, %s}]}}`, image, podSet)
	}
	w.spec(written(from))
	units, _, problems := podset.Placed(w.d)
	if len(problems) > 0 {
		w.Fatal(problems)
	}
	former := &podset.Former{Content: units[0].Content, Hash: units[0].Hash}
	w.spec(written(to))
	if err := podset.ChangeFrom(&w.d.Spec, "web", former); err != nil {
		w.Fatal(err)
	}
}

// has says what the TApp has: the template of those that wait, of those whose turn has
// come, and which these are.
func (w *world) has() string {
	image := func(path ...string) string {
		_, tag, _ := strings.Cut(w.field(webTApp, append(path, "spec", "containers")...), "nginx:")
		tag, _, _ = strings.Cut(tag, `"`)
		return tag
	}
	return image("spec", "template") + " " + image("spec", "templatePool", templateNext) + " " + w.field(webTApp, "spec", "templates") + " " + w.field(webTApp, "spec", "paused")
}

// shows statuses of instances, and counts.
func (w *world) shows(updated, available int64, statuses ...string) {
	w.Helper()
	o, seen := w.children[webTApp], map[string]any{}
	for id, status := range statuses {
		seen[fmt.Sprint(id)] = status
	}
	o.Object["status"] = map[string]any{"observedGeneration": o.GetGeneration(), "replicas": int64(4), "readyReplicas": available,
		"availableReplicas": available, "updatedReplicas": updated, "statuses": seen}
	o.SetResourceVersion(w.version())
	w.step()
}

func newPart(t *testing.T) *world {
	w := newWorld(t, `{podSpec: {deployType: tapp, template: {spec: {containers: [{name: a, image: 'nginx:v1', resources: {}}]}}}, topology: {podSets: [{name: web, replicas: 4}]}}`)
	w.d.Labels = map[string]string{v1beta1.LabelAppSetUID: "u"}
	w.run()
	return w
}

const (
	up, down = "Running", "Pending"
	absent   = "NotCreated"
)

// TestTurns: an instance keeps what it has, also when its pod is made anew, until the budget
// has room for it; and nothing is left of the change when it is done.
func TestTurns(t *testing.T) {
	w := newPart(t)
	w.change("v1", "v2", "maxUnavailable: 2")
	w.step()
	w.expect("the first two", w.has(), `v1 v2 {"0":"workload-next","1":"workload-next"} false`)
	w.expect("as a rolling update", w.field(webTApp, "spec", "updateStrategy"), `{"maxUnavailable":2,"template":"workload-next"}`)
	w.step()
	w.expect("nobody has looked", w.has(), `v1 v2 {"0":"workload-next","1":"workload-next"} false`)
	w.shows(2, 2, down, down, up, up)
	w.expect("none is done", w.has(), `v1 v2 {"0":"workload-next","1":"workload-next"} false`)
	w.expect("what has the content", *w.d.Status.AggrStatus.PodSets[0].Update, int32(0))
	w.shows(4, 3, up, down, up, up)
	w.expect("one is done, and the other is not available", w.has(), `v1 v2 {"0":"workload-next","1":"workload-next","2":"workload-next"} false`)

	// Halted: none comes to its turn, whatever becomes of pods.
	w.change("v1", "v2", "maxUnavailable: 0")
	w.step()
	w.shows(2, 2, up, up, up, absent)
	w.shows(3, 3, up, up, up, down)
	w.expect("held", w.has(), `v1 v2 {"0":"workload-next","1":"workload-next","2":"workload-next"} true`)

	w.change("v1", "v2", "maxUnavailable: 1")
	w.step()
	w.shows(4, 4, up, up, up, up)
	w.expect("the last one", w.has(), `v1 v2 {"0":"workload-next","1":"workload-next","2":"workload-next","3":"workload-next"} false`)
	w.shows(3, 3, up, up, up, down)
	w.expect("its turn goes on", w.has(), `v1 v2 {"0":"workload-next","1":"workload-next","2":"workload-next","3":"workload-next"} false`)
	w.expect("status", w.d.Status.AggrStatus.Status, v1beta1.PhaseUpdating)
	w.shows(4, 4, up, up, up, up)
	w.expect("done", w.has(), "v2  null false")
	w.shows(4, 4, up, up, up, up)
	w.expect("status", w.d.Status.AggrStatus.Status, v1beta1.PhaseRunning)
	w.expect("again", w.step(), []string(nil))
	w.expect("no mark", w.children[webTApp].GetAnnotations()[v1beta1.AnnotationFrom], "")
}

// TestTurnsOfOthers: who is out of service already comes first and costs nothing, stopped
// instances are nobody's business, and a way back leaves alone who never changed.
func TestTurnsOfOthers(t *testing.T) {
	w := newPart(t)
	if err := unstructured.SetNestedField(w.children[webTApp].Object, map[string]any{"1": "Killed"}, "spec", "statuses"); err != nil {
		t.Fatal(err)
	}
	w.shows(2, 2, up, "Killed", up, absent)
	w.change("v1", "bad", "maxUnavailable: 1")
	w.step()
	w.expect("the one without a pod", w.has(), `v1 bad {"3":"workload-next"} false`)
	w.change("v1", "v2", "maxUnavailable: 1")
	w.step()
	w.expect("another content goes on with it", w.has(), `v1 v2 {"3":"workload-next"} false`)
	w.change("v2", "v1", "")
	w.step()
	w.expect("back", w.has(), "v1  null false")
}
