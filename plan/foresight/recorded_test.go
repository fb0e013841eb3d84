package foresight

import (
	"strings"
	"testing"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/podset"
)

// TestRecorded: in the midst of a rollout, a third content is told from what podSets run: the
// canaries have the second one, and those that are held back the stable one.
func TestRecorded(t *testing.T) {
	const gates = "upgradeType: canary|blue, needWaitingForConfirm: true"
	stable, before, after := appSet(t, web("InPlaceSet", gates, "v1", "1", "3")), appSet(t, web("InPlaceSet", gates, "v2", "1", "3")), appSet(t, web("InPlaceSet", gates, "v3", "1", "3"))
	first, _, _ := podset.Units(stable)
	second, _, _ := podset.Units(before)
	history := podset.HistoryOf(stable, first)
	before.Status.Rollout = &v1beta1.RolloutStatus{ID: "0123456789-2", Revision: podset.Revision(second), Stable: podset.Revision(first)}
	for _, cluster := range []string{"one", "two"} {
		c := v1beta1.ClusterStatus{Name: cluster, State: v1beta1.ClusterReady}
		for i := range first {
			if first[i].Cluster != cluster {
				continue
			}
			p := v1beta1.PodSetStatus{Name: first[i].PodSet.Name, Revision: first[i].Hash}
			if strings.HasSuffix(p.Name, "canary") {
				p.Revision = second[i].Hash
			}
			c.PodSets = append(c.PodSets, p)
		}
		before.Status.AggrStatus.Clusters = append(before.Status.AggrStatus.Clusters, c)
	}
	after.Status = before.Status
	p := From(before, after, &history, now)
	want := strings.TrimSpace(`
stage canary (one, two; 1 at a time): 2 instances are updated in place: image of web from nginx:v2 to nginx:v3; then it waits for a confirmation
stage blue (one, two; 1 at a time): 5 instances are updated in place: image of web from nginx:v1 to nginx:v3
the rollout that is under way (0123456789-2) ends with this; podSets that it has not reached are told from the stable content`)
	if got := strings.Join(p.Lines(), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}

	// To scale is no other rollout.
	after = appSet(t, web("InPlaceSet", gates, "v2", "1", "2"))
	after.Status = *before.Status.DeepCopy()
	after.Status.Rollout.Stages = []v1beta1.StageStatus{{Name: "canary", Token: "t"}, {Name: "blue"}}
	p = From(before, after, &history, now)
	want = strings.TrimSpace(`
at once: 1 instance is removed: replicas from 3 to 2
stage blue (one, two; 1 at a time): 4 instances are updated in place: image of web from nginx:v1 to nginx:v2
the rollout that is under way (0123456789-2) goes on, and stage canary of it waits for a confirmation; podSets that it has not reached are told from the stable content`)
	if got := strings.Join(p.Lines(), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
