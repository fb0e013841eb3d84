package appset

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/podset"
)

const colours = `
metadata: {name: web, namespace: shop, uid: web-1, generation: 1}
spec:
  podSpec: {deployType: tapp, template: {spec: {containers: [{name: web, image: nginx:1}]}}}
  updateStrategy: {upgradeType: canary|blue|green, needWaitingForConfirm: true, maxConcurrentClusters: 2}
  clusterTopology:
    clusters:
    - {name: one, podSets: [{name: web-gz01-canary, replicas: 1}, {name: web-gz01-blue, replicas: 2}]}
    - {name: two, podSets: [{name: web-gz01-canary, replicas: 1}, {name: web-gz01-blue, replicas: 2}]}
`

func image(name string) func(*v1beta1.AppSet) {
	return func(a *v1beta1.AppSet) { a.Spec.PodSpec.Template.Spec.Containers[0].Image = name }
}

// runs are the images that the podSets of a cluster are asked to have, in order.
func (w *world) runs(cluster, want string) *world {
	w.Helper()
	w.workIn(cluster)
	c := w.clusters[cluster]
	var got []string
	for _, p := range c.Part.Status.AggrStatus.PodSets {
		got = append(got, strings.TrimPrefix(p.Name, "web-gz01-")+"="+p.Version)
	}
	if text := strings.Join(got, " "); text != want {
		w.Fatalf("cluster %s runs %s, want %s", cluster, text, want)
	}
	return w
}

// TestCanaryBlue: a change of the template goes through the stages, past gates that are
// confirmed, and what waits is held back whole.
func TestCanaryBlue(t *testing.T) {
	w := newWorld(t, colours, "one", "two").install().says(v1beta1.PhaseRunning, "6/6/0 1", "")
	w.edit(image("nginx:2"))
	w.settle().expect("Apply one", "Apply two").runs("one", "canary=2 blue=1").runs("two", "canary=2 blue=1")
	w.settle().expect().says(v1beta1.PhaseWaitingForConfirm, "6/6/0 1/2", "")
	if c := w.condition(v1beta1.ConditionAwaitingConfirmation); c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, "stage canary is done") {
		t.Errorf("%+v", c)
	}
	if r := w.app.Status.Rollout; r.State != "Waiting" || r.Stage != "canary" || r.Stages[0].State != "Waiting" || r.Stages[1].State != "Pending" {
		t.Errorf("%+v", r)
	}
	w.edit(func(a *v1beta1.AppSet) { a.Spec.UpdateStrategy.NeedWaitingForConfirm = false })
	w.settle().expect().says(v1beta1.PhaseWaitingForConfirm, "6/6/0 1/2", "")
	w.confirm().settle().expect("Apply one", "Apply two").runs("one", "canary=2 blue=2").runs("two", "canary=2 blue=2")
	w.settle().expect("Apply one", "Apply two").work().settle().expect().says(v1beta1.PhaseRunning, "6/6/0 2", "")
	if c := w.condition(v1beta1.ConditionAwaitingConfirmation); c.Status != metav1.ConditionFalse {
		t.Errorf("%+v", c)
	}
	for _, cluster := range w.clusters {
		if len(cluster.Part.Spec.Revisions) > 0 {
			t.Error("something is held back at rest")
		}
	}
}

// TestFrom: a part in change has what its instances keep until it is their turn, in every
// state, and nothing of it is left when all is done.
func TestFrom(t *testing.T) {
	w := newWorld(t, colours, "one", "two").install()
	w.edit(func(a *v1beta1.AppSet) { a.Spec.UpdateStrategy = v1beta1.UpdateStrategy{UpgradeType: "canary|blue"} })
	w.settle()
	froms := func(cluster string) (out string) {
		t.Helper()
		part := w.clusters[cluster].Part
		units, _, problems := podset.Placed(part)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		for i := range units {
			if from := units[i].From; from != nil {
				out += " " + strings.TrimPrefix(units[i].PodSet.Name, "web-gz01-") + "=" + from.Content.Template.Spec.Containers[0].Image
			}
		}
		return out
	}
	check := func(what, one, two string) {
		t.Helper()
		if a, b := froms("one"), froms("two"); a != one || b != two {
			t.Errorf("%s: %s and%s, want%s and%s", what, a, b, one, two)
		}
	}
	check("at rest", "", "")
	w.edit(image("nginx:bad"))
	w.settle()
	check("in change", " canary=nginx:1", "")
	w.now = w.now.Add(10 * time.Minute)
	w.settle().says(v1beta1.PhaseHalted, "6/6/0 1", w.condition(v1beta1.ConditionStalled).Reason+": "+w.condition(v1beta1.ConditionStalled).Message)
	check("halted", " canary=nginx:1", "")
	w.edit(image("nginx:2"))
	w.settle()
	check("another content", " canary=nginx:1", "")
	w.edit(image("nginx:1"))
	w.settle()
	check("back", "", "")
	w.work().settle()
	w.edit(image("nginx:2"))
	for range 6 {
		w.settle().work()
	}
	w.settle().says(v1beta1.PhaseRunning, "6/6/0 2", "")
	check("done", "", "")
	if n := len(w.clusters["one"].Part.Spec.Revisions); n > 0 {
		t.Errorf("%d contents are left", n)
	}
}

// TestUndo: the spec that is set back returns at once, without gates.
func TestUndo(t *testing.T) {
	w := newWorld(t, colours, "one", "two").install()
	w.edit(image("nginx:2"))
	w.settle().work().settle()
	w.wrote = nil
	w.edit(image("nginx:1"))
	w.settle().expect("Apply one", "Apply two").runs("one", "canary=1 blue=1")
	w.work().settle().says(v1beta1.PhaseRunning, "6/6/0 1", "")
}

// TestJoin: a cluster that joins while a gate waits is created with what is stable.
func TestJoin(t *testing.T) {
	w := newWorld(t, colours, "one", "two", "three").install()
	w.edit(image("nginx:2"))
	w.settle().work().settle()
	w.wrote = nil
	id := w.app.Status.Rollout.ID
	w.edit(func(a *v1beta1.AppSet) {
		more := *a.Spec.ClusterTopology.Clusters[1].DeepCopy()
		more.Name = "three"
		a.Spec.ClusterTopology.Clusters = append(a.Spec.ClusterTopology.Clusters, more)
	})
	w.settle().runs("three", "canary=2 blue=1")
	w.settle().says(v1beta1.PhaseWaitingForConfirm, "9/9/0 1/2", "")
	if w.app.Status.Rollout.ID != id {
		t.Error("it is another rollout")
	}
	w.confirm().settle().work().settle().work().settle().work().settle().says(v1beta1.PhaseRunning, "9/9/0 2", "")
}

// TestHistory: what was stable before is kept, within the limit.
func TestHistory(t *testing.T) {
	w := newWorld(t, colours, "one", "two")
	w.edit(func(a *v1beta1.AppSet) {
		a.Spec.UpdateStrategy = v1beta1.UpdateStrategy{}
		a.Spec.RevisionHistoryLimit = new(int32(1))
	})
	w.install()
	for _, name := range []string{"nginx:2", "nginx:3", "nginx:4"} {
		w.edit(image(name))
		for range 4 {
			w.settle().work().settle()
		}
	}
	w.says(v1beta1.PhaseRunning, "6/6/0 4", "")
	var records, histories int
	for _, r := range w.revisions {
		if r.Labels[v1beta1.LabelRevision] == v1beta1.RevisionRecord {
			records++
		} else {
			histories++
		}
	}
	if records != 1 || histories != 2 {
		t.Errorf("%d records, %d revisions", records, histories)
	}
}

// TestDataIsOrdered: every patch of a revision, the garbage collector's too, brings its data
// into this order, and the API server refuses a patch that changes the data.
func TestDataIsOrdered(t *testing.T) {
	w := newWorld(t, colours, "one", "two").install()
	for _, r := range w.revisions {
		var ordered any
		if err := json.Unmarshal(r.Data.Raw, &ordered); err != nil {
			t.Fatal(err)
		}
		if again, _ := json.Marshal(ordered); string(again) != string(r.Data.Raw) {
			t.Errorf("revision %s has %s", r.Name, r.Data.Raw)
		}
	}
}

// TestJoinInstallation: a podSet that is added while the installation goes on is installed with
// the others, and only what is asked for after that goes through the gates.
func TestJoinInstallation(t *testing.T) {
	w := newWorld(t, colours, "one", "two")
	w.settle()
	w.edit(func(a *v1beta1.AppSet) {
		podSets := &a.Spec.ClusterTopology.Clusters[1].PodSets
		more := *(*podSets)[0].DeepCopy()
		more.Name = "two-more"
		*podSets = append(*podSets, more)
	})
	w.settle().says(v1beta1.PhaseInstalling, "7/0/0", "")
	if r := w.app.Status.Rollout; r.Stable != "" {
		t.Errorf("%s is taken for stable", r.Stable)
	}
	w.work().settle().says(v1beta1.PhaseRunning, "7/7/0 1", "")
	w.edit(image("nginx:2"))
	w.settle().says(v1beta1.PhaseUpdating, "7/7/0 1", "")
}
