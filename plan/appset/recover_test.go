package appset

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// TestLostRecord: without a record, what runs is stable.
func TestLostRecord(t *testing.T) {
	w := newWorld(t, colours, "one", "two").install()
	w.revisions = []*appsv1.ControllerRevision{}
	w.edit(image("nginx:2"))
	w.settle().runs("one", "canary=2 blue=1").runs("two", "canary=2 blue=1")
	w.settle().says(v1beta1.PhaseWaitingForConfirm, "6/6/0 1/2", "")
}

// TestLostRecordReached: without a record, what has the content that is asked for already, since
// it has no instances or its stage came first, does not make that stable.
func TestLostRecordReached(t *testing.T) {
	for order, want := range map[string]string{"upgradeType": "canary=2 blue=1", "stages": "canary=1 blue=1"} {
		t.Run(order, func(t *testing.T) {
			w := newWorld(t, colours+"    - {name: three, podSets: [{name: web-gz01-blue, replicas: 0}]}\n    - {name: four, podSets: [{name: web-gz01-blue, replicas: 1}]}\n", "one", "two", "three", "four").install()
			w.edit(func(a *v1beta1.AppSet) {
				if order == "stages" {
					a.Spec.UpdateStrategy.UpgradeType, a.Spec.UpdateStrategy.Stages = "", []v1beta1.Stage{{Name: "first", Clusters: []string{"four"}, Confirm: new(true)}}
				}
			})
			w.edit(image("nginx:2"))
			for range 2 {
				w.settle().work().settle().runs("one", want).runs("two", want).says(v1beta1.PhaseWaitingForConfirm, "7/7/0 1/2", "")
				w.revisions = []*appsv1.ControllerRevision{}
			}
		})
	}
}

// TestUnseenInstallation: a hub that was started anew, and has seen no cluster yet, does not
// take an installation under way for none: what was asked for before is stable.
func TestUnseenInstallation(t *testing.T) {
	for name, unseen := range map[string][]string{"all": {"one", "two"}, "one of them": {"two"}, "none": nil} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, colours, "one", "two")
			w.settle().runs("one", "canary=1 blue=1").runs("two", "canary=1 blue=1")
			parts := map[string]*v1beta1.AdvDeployment{}
			for _, cluster := range unseen {
				parts[cluster] = w.clusters[cluster].Part
				w.silence(cluster, v1beta1.ClusterOffline)
				w.clusters[cluster].Part = nil
			}
			w.edit(image("nginx:2"))
			w.settle()
			for cluster, part := range parts {
				w.hear(cluster)
				w.clusters[cluster].Part = part
			}
			for range 3 {
				w.settle().work()
			}
			w.runs("one", "canary=2 blue=1").runs("two", "canary=2 blue=1")
			w.settle().says(v1beta1.PhaseWaitingForConfirm, "6/6/0 1/2", "")
		})
	}
}

// TestLostRecordUnseen: a hub that lost its record, and has not seen all clusters since it was
// started anew, does not take a change under way for stable, nor for an installation.
func TestLostRecordUnseen(t *testing.T) {
	for name, unseen := range map[string][]string{"all": {"one", "two"}, "those that wait": {"two"}, "those in change": {"one"}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, colours, "one", "two").install()
			w.edit(func(a *v1beta1.AppSet) {
				a.Spec.UpdateStrategy.Stages, a.Spec.UpdateStrategy.UpgradeType = []v1beta1.Stage{{Name: "first", Clusters: []string{"one"}, Confirm: new(true)}}, ""
			})
			w.edit(image("nginx:2"))
			w.settle().work().settle().runs("one", "canary=2 blue=2").runs("two", "canary=1 blue=1")
			w.settle().says(v1beta1.PhaseWaitingForConfirm, "6/6/0 1/2", "")
			w.revisions, w.wrote = []*appsv1.ControllerRevision{}, nil
			parts := map[string]*v1beta1.AdvDeployment{}
			for _, cluster := range unseen {
				parts[cluster] = w.clusters[cluster].Part
				w.silence(cluster, v1beta1.ClusterOffline)
				w.clusters[cluster].Part = nil
			}
			w.settle().expect()
			if r := w.app.Status.Rollout; r.State != "Unknown" || !strings.HasPrefix(r.Message, "no record tells what is stable") || w.app.Status.AggrStatus.Status != v1beta1.PhaseUnknown {
				t.Errorf("%s: %+v", w.app.Status.AggrStatus.Status, r)
			}
			for cluster, part := range parts {
				w.hear(cluster)
				w.clusters[cluster].Part = part
			}
			w.settle().work().settle().runs("one", "canary=2 blue=2").runs("two", "canary=1 blue=1")
			w.says(v1beta1.PhaseWaitingForConfirm, "6/6/0 1/2", "")
		})
	}
}

// TestRan: that something of an installation ran stays on the status, and has the change of its
// content go through stages.
func TestRan(t *testing.T) {
	for name, c := range map[string]struct {
		ran  bool
		want string
	}{"nothing": {false, "Installing false"}, "one instance, which is down by now": {true, "Staged false"}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, colours, "one", "two")
			w.settle()
			if c.ran {
				w.workIn("one")
				w.settle()
				for i := range w.clusters["one"].Part.Status.AggrStatus.PodSets {
					w.clusters["one"].Part.Status.AggrStatus.PodSets[i].Available = 0
				}
				w.settle()
			}
			if r := w.app.Status.Rollout; r.Ran != c.ran || r.State != "Installing" {
				t.Fatalf("it is %s, and ran: %t", r.State, r.Ran)
			}
			w.edit(image("nginx:2"))
			w.settle()
			if r := w.app.Status.Rollout; fmt.Sprint(r.State, " ", r.Ran) != c.want {
				t.Errorf("it is %s %t, want %s", r.State, r.Ran, c.want)
			}
		})
	}
}
