package appset

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/message"
)

var states = []v1beta1.ClusterState{v1beta1.ClusterReady, v1beta1.ClusterReady, v1beta1.ClusterSuspect, v1beta1.ClusterOffline, v1beta1.ClusterMaintaining,
	v1beta1.ClusterUnregistered, v1beta1.ClusterMistaken, v1beta1.ClusterUnfit}

// TestRandomFleets: whatever happens to clusters, caches and specs, nothing is deleted on
// a sight that is not certain, nothing is written where nothing may be, the finalizer stays
// while a part is anywhere that nobody gave up, and silent clusters count for nothing.
func TestRandomFleets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &random{T: t, world: newWorld(t, web, "one", "two", "three"), truth: map[string]*v1beta1.AdvDeployment{}}
		for range rapid.IntRange(5, 40).Draw(t, "steps") {
			r.happen()
			if r.app != nil {
				r.plan()
			}
			if r.app == nil {
				r.gone()
				return
			}
		}
		r.end()
	})
}

// random is a world whose clusters show what they have only when they are heard.
type random struct {
	*rapid.T
	*world
	// truth is what clusters have that are not heard.
	truth map[string]*v1beta1.AdvDeployment
	// abandoned by a human.
	abandoned []string
}

func (r *random) Helper() {}

func (r *random) Fatalf(format string, args ...any) { r.T.Fatalf(format, args...) }

func (r *random) happen() {
	name := rapid.SampledFrom([]string{"one", "two", "three"}).Draw(r.T, "cluster")
	c := r.clusters[name]
	switch rapid.IntRange(0, 8).Draw(r.T, "what") {
	case 0:
		if state := rapid.SampledFrom(states).Draw(r.T, "state"); state != v1beta1.ClusterReady {
			r.cut(name, state)
		} else {
			r.back(name)
		}
	case 1: // seen as empty although it is not
		if !c.Certain {
			c.Part = nil
		}
	case 2, 3:
		if c.Certain {
			r.workIn(name)
		}
	case 4:
		r.edit(func(a *v1beta1.AppSet) {
			first := &a.Spec.ClusterTopology.Clusters[0].PodSets[0]
			first.Replicas = new(intstr.FromInt32(rapid.Int32Range(0, 5).Draw(r.T, "replicas")))
			first.Version = rapid.SampledFrom([]string{"v1", "v2"}).Draw(r.T, "version")
			a.Spec.UpdateStrategy.NeedWaitingForConfirm = rapid.Bool().Draw(r.T, "gate")
		})
	case 5:
		all := newWorld(r.T, web).app.Spec.ClusterTopology.Clusters
		all = append(all, *all[1].DeepCopy())
		all[2].Name = "three"
		r.edit(func(a *v1beta1.AppSet) {
			a.Spec.ClusterTopology.Clusters = all[:rapid.IntRange(1, 3).Draw(r.T, "listed")]
		})
	case 6:
		if r.app.DeletionTimestamp == nil && rapid.Bool().Draw(r.T, "deleted") {
			r.deleteAppSet()
		}
	case 7:
		if rapid.IntRange(0, 5).Draw(r.T, "abandon") == 0 {
			r.abandoned = append(r.abandoned, name)
			annotate(r.world, v1beta1.AnnotationAbandonClusters, name)
		}
	case 8: // a backup without status, or somebody's edit of a part
		if rapid.Bool().Draw(r.T, "backup") {
			r.app = r.app.DeepCopy()
			r.app.Status = v1beta1.AppSetStatus{}
		} else if c.Part != nil && c.Certain {
			c.Part = c.Part.DeepCopy()
			c.Part.Spec.ServiceName = "theirs"
		}
	}
}

func (r *random) cut(name string, state v1beta1.ClusterState) {
	if c := r.clusters[name]; c.Certain {
		r.truth[name] = c.Part
	}
	r.silence(name, state)
}

func (r *random) back(name string) {
	if c := r.clusters[name]; !c.Certain {
		c.Part = r.truth[name]
	}
	r.hear(name)
}

func (r *random) plan() {
	in := r.input()
	p := Compute(in)
	again, _ := json.Marshal(Compute(r.input()))
	if once, _ := json.Marshal(p); string(once) != string(again) {
		r.Fatalf("equal inputs gave different plans:\n%s\n%s", once, again)
	}
	for _, a := range p.Actions {
		c := r.clusters[a.Cluster]
		if a.Op != Bury && a.Op != Unbury && c.State != v1beta1.ClusterReady && c.State != v1beta1.ClusterSuspect {
			r.Fatalf("%s in cluster %s, which is %s", a.Op, a.Cluster, c.State)
		}
		if (a.Op == Delete || a.Op == Release || a.Op == Unbury) && !c.Certain {
			r.Fatalf("%s in cluster %s, of which nothing is certain", a.Op, a.Cluster)
		}
	}
	available := int32(0)
	for _, c := range r.clusters {
		if c.Certain && c.Part != nil {
			available += c.Part.Status.AggrStatus.Available
		}
	}
	if p.Status.AggrStatus.Available > available {
		r.Fatalf("%d available, and only %d in clusters that are heard", p.Status.AggrStatus.Available, available)
	}
	if p.Forget != nil && !slices.Contains(p.Forget.Finalizers, v1beta1.Finalizer) && slices.Contains(r.app.Finalizers, v1beta1.Finalizer) {
		r.gone()
	}
	for _, a := range p.Actions { // what is written to a cluster whose cache is behind is a conflict
		if c := r.clusters[a.Cluster]; a.Op != Bury && a.Op != Unbury && !c.Certain {
			return
		}
	}
	r.step()
}

// gone is for when the finalizer goes: no cluster has a part that no human gave up.
func (r *random) gone() {
	for name, c := range r.clusters {
		part := c.Part
		if !c.Certain {
			part = r.truth[name]
		}
		if part != nil && !slices.Contains(r.abandoned, name) {
			r.Fatalf("the finalizer goes, and cluster %s (%s) has a part", name, c.State)
		}
	}
}

// end of all faults: everything gets where the spec says, and stays.
func (r *random) end() {
	for name := range r.clusters {
		r.back(name)
	}
	if r.app != nil {
		r.edit(func(a *v1beta1.AppSet) { a.Spec.UpdateStrategy.NeedWaitingForConfirm = false })
	}
	for range 12 {
		if r.app != nil {
			r.settle()
		}
		r.work()
	}
	if r.app == nil {
		r.gone()
		return
	}
	r.settle()
	if phase := r.app.Status.AggrStatus.Status; phase != v1beta1.PhaseRunning {
		r.Fatalf("%s: %+v", phase, r.app.Status.Conditions)
	}
}

// TestStatusSize: the status of the largest AppSet can be stored, all told of all.
func TestStatusSize(t *testing.T) {
	long := func(n int) string { return fmt.Sprintf("%0*d", n, 0)[:n] }
	a := newWorld(t, web).app
	a.Spec.ClusterTopology.Clusters = nil
	in := Input{AppSet: a, Fleet: fleet, Now: start}
	for i := range 256 {
		name := fmt.Sprintf("c%03d-%s", i, long(58))
		cluster := v1beta1.TargetCluster{Name: name}
		part := &v1beta1.AdvDeployment{}
		part.Labels = map[string]string{v1beta1.LabelAppSetUID: string(a.UID)}
		for p := range 4 {
			podSet := v1beta1.PodSet{}
			podSet.Name, podSet.Replicas = fmt.Sprintf("p%d-%s", p, long(50)), new(intstr.FromInt32(1000))
			cluster.PodSets = append(cluster.PodSets, podSet)
			part.Status.AggrStatus.PodSets = append(part.Status.AggrStatus.PodSets, v1beta1.PodSetStatus{Name: podSet.Name, Desired: 1000, Available: 1000, HaveDeploy: new(true),
				Ready: new(int32(1000)), Update: new(int32(1000)), Current: new(int32(1000)), Revision: "u1-0123456789abcdef", Version: "v1/v2", Ordinals: "0-999",
				Reason: v1beta1.ReasonProgressing, Message: message.Cut(long(300), maxMessage)})
		}
		a.Spec.ClusterTopology.Clusters = append(a.Spec.ClusterTopology.Clusters, cluster)
		in.Clusters = append(in.Clusters, Cluster{Name: name, State: v1beta1.ClusterUnfit, AsOf: start, Message: long(500), Part: part})
	}
	p := Compute(in)
	if len(p.Status.AggrStatus.Clusters) != 256 || len(p.Status.AggrStatus.Clusters[255].PodSets) != 4 {
		t.Fatal("something is left out")
	}
	for i := range p.Status.AggrStatus.Clusters {
		if said := p.Status.AggrStatus.Clusters[i].Message; said == "" || len(said) > maxMessage {
			t.Fatalf("%d bytes: %s", len(said), said)
		}
	}
	for _, c := range p.Status.Conditions {
		if len(c.Message) > 1024 {
			t.Errorf("condition %s has %d bytes", c.Type, len(c.Message))
		}
	}
	// etcd takes 1.5 MiB; the AppSet's spec and what the API server notes beside it need room, too.
	const most = 1 << 20
	raw, _ := json.Marshal(p.Status)
	t.Logf("%d bytes", len(raw))
	if len(raw) > most {
		t.Errorf("the status has %d bytes", len(raw))
	}
}
