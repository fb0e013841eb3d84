package appset

import (
	"strings"
	"testing"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// podSetsOf the part of a cluster, with what they are held back at.
func (w *world) podSetsOf(cluster string) string {
	var out []string
	for _, p := range w.clusters[cluster].Part.Spec.Topology.PodSets {
		out = append(out, p.Name)
	}
	return strings.Join(out, " ")
}

// TestPodSetsRenamed: a cluster keeps its podSets until it is the turn of those that replace them.
func TestPodSetsRenamed(t *testing.T) {
	for name, strategy := range map[string]v1beta1.UpdateStrategy{
		"one cluster after the other": {},
		"past a gate":                 {CanaryClusters: []string{"One"}, NeedWaitingForConfirm: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, web, "one", "two")
			w.app.Spec.UpdateStrategy = strategy
			w.install()
			w.edit(func(a *v1beta1.AppSet) {
				a.Spec.ClusterTopology.Clusters[0].PodSets[0].Name = "web-x"
				a.Spec.ClusterTopology.Clusters[1].PodSets[0].Name = "web-y"
				a.Spec.PodSpec.Template.Spec.Containers[0].Args = []string{"--new"}
			})
			content := w.clusters["two"].Part.Status.AggrStatus.PodSets[0].Revision
			w.settle()
			if one, two := w.podSetsOf("one"), w.podSetsOf("two"); one != "web-x web-b" || two != "web-a" {
				t.Fatalf("one has %s, and two %s", one, two)
			}
			w.work().settle()
			if strategy.NeedWaitingForConfirm {
				if two := w.podSetsOf("two"); two != "web-a" {
					t.Fatalf("two has %s before its gate is open", two)
				}
				if now := w.clusters["two"].Part.Status.AggrStatus.PodSets[0].Revision; now != content {
					t.Errorf("what stays was changed from %s to %s", content, now)
				}
				w.says(v1beta1.PhaseWaitingForConfirm, "6/6/0 v1/v2", "")
				w.confirm().settle()
			}
			if two := w.podSetsOf("two"); two != "web-y" {
				t.Fatalf("two has %s", two)
			}
			w.work().settle().work().settle().says(v1beta1.PhaseRunning, "6/6/0 v1/v2", "")
		})
	}
}

// TestPodSetMoves: a cluster that leaves keeps its podSets until those that replace them in another one
// had their turn, too.
func TestPodSetMoves(t *testing.T) {
	w := newWorld(t, web, "one", "two").install()
	w.edit(func(a *v1beta1.AppSet) {
		a.Spec.UpdateStrategy = v1beta1.UpdateStrategy{Stages: []v1beta1.Stage{{Name: "canary", Groups: []string{"canary"}, Confirm: new(true)}}}
		one := &a.Spec.ClusterTopology.Clusters[0]
		one.PodSets[0].Meta = map[string]string{v1beta1.LabelGroup: "canary"}
		one.PodSets = append(one.PodSets, *a.Spec.ClusterTopology.Clusters[1].PodSets[0].DeepCopy())
		one.PodSets[2].Name = "web-c"
		a.Spec.ClusterTopology.Clusters = a.Spec.ClusterTopology.Clusters[:1]
		a.Spec.PodSpec.Template.Spec.Containers[0].Args = []string{"--new"}
	})
	w.settle().work().settle().work().settle()
	if one, two := w.podSetsOf("one"), w.clusters["two"].Part; one != "web-a web-b" || two == nil || two.DeletionTimestamp != nil {
		t.Fatalf("one has %s, and the part of two is %+v", one, two)
	}
	w.says(v1beta1.PhaseWaitingForConfirm, "3/3/0 v1/v2", "")
	w.confirm().settle().work()
	if one, two := w.podSetsOf("one"), w.clusters["two"].Part; one != "web-a web-b web-c" || two == nil || two.DeletionTimestamp != nil {
		t.Fatalf("past the gate one has %s, and the part of two is %+v", one, two)
	}
	w.settle().work().settle().work().settle()
	if two := w.clusters["two"].Part; two != nil && two.DeletionTimestamp == nil {
		t.Errorf("all is available, and the part of two stays: %+v", two.Status)
	}
}

// TestFirstOfItsGroup: what is stable is known also where stages name a group that it does not have.
// A podSet that is new changes nothing about the others, and asks nobody.
func TestFirstOfItsGroup(t *testing.T) {
	w := newWorld(t, strings.Replace(web, "{name: web-a, replicas: 2, version: v1}", "{name: web-a, replicas: 2, version: v1, meta: {sym-group: canary}}", 1), "one", "two").install()
	w.edit(func(a *v1beta1.AppSet) {
		a.Spec.UpdateStrategy = v1beta1.UpdateStrategy{Stages: []v1beta1.Stage{{Name: "first", Groups: []string{"canary"}, Confirm: new(true)}, {Name: "second", Groups: []string{"blue"}, Confirm: new(true)}}}
		one := &a.Spec.ClusterTopology.Clusters[0]
		one.PodSets = append(one.PodSets, *one.PodSets[1].DeepCopy())
		one.PodSets[2].Name, one.PodSets[2].Meta = "web-c", map[string]string{v1beta1.LabelGroup: "blue"}
	})
	w.settle().work().settle().work().settle().says(v1beta1.PhaseRunning, "7/7/0 v1/v2", "")
	if one := w.podSetsOf("one"); one != "web-a web-b web-c" {
		t.Errorf("one has %s", one)
	}
}

// TestPausedRollout: what is paused does not go on, and says so.
func TestPausedRollout(t *testing.T) {
	w := newWorld(t, web, "one", "two").install()
	w.edit(func(a *v1beta1.AppSet) {
		a.Spec.PodSpec.Template.Spec.Containers[0].Args = []string{"--new"}
		a.Spec.UpdateStrategy.Paused = true
	})
	w.settle().work().settle()
	want := "rollout " + w.app.Status.Rollout.ID + " does not go on: spec.updateStrategy.paused is true"
	if ready := w.condition(v1beta1.ConditionReady); ready.Message != want || w.app.Status.AggrStatus.Status != v1beta1.PhasePaused {
		t.Errorf("%s, %s", w.app.Status.AggrStatus.Status, ready.Message)
	}
}
