package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/podset"
)

// unitView is what is told of one podSet in one cluster.
type unitView struct {
	Cluster string               `json:"cluster"`
	State   v1beta1.ClusterState `json:"state,omitempty"`
	AsOf    *metav1.Time         `json:"asOf,omitempty"`
	PodSet  string               `json:"podSet"`
	Group   string               `json:"group,omitempty"`
	Wanted  *wanted              `json:"wanted,omitempty"`
	Status  v1beta1.PodSetStatus `json:"status"`
	Why     string               `json:"why,omitempty"`
	cluster *v1beta1.ClusterStatus
}

// wanted is what the spec asks for; nil: it has no such unit any more.
type wanted struct {
	Kind     string `json:"kind"`
	Replicas int32  `json:"replicas"`
	Version  string `json:"version,omitempty"`
	Content  string `json:"content"`
}

// name of a unit, as the commands take it.
func (u *unitView) name() string { return u.Cluster + "/" + u.PodSet }

// isSilent says whether what is told may not be true any more.
func (u *unitView) isSilent() bool { return u.State != v1beta1.ClusterReady || u.AsOf != nil }

// unitsOf an AppSet: those of the spec in its order, and then those that are left.
func unitsOf(a *v1beta1.AppSet) (units []unitView, problems []podset.Problem) {
	placed, _, problems := podset.Units(a)
	for i := range placed {
		u := &placed[i]
		units = append(units, unitView{
			Cluster: u.Cluster, PodSet: u.PodSet.Name, Group: u.Group,
			Wanted: &wanted{Kind: u.Content.DeployType, Replicas: u.Replicas, Version: u.Version, Content: u.Hash},
		})
	}
	for i := range a.Status.AggrStatus.Clusters {
		cluster := &a.Status.AggrStatus.Clusters[i]
		of := func(u *unitView) bool {
			return v1beta1.FoldClusterName(u.Cluster) == v1beta1.FoldClusterName(cluster.Name)
		}
		for k := range units {
			if of(&units[k]) {
				units[k].sees(cluster)
			}
		}
		for k := range cluster.PodSets {
			p := &cluster.PodSets[k]
			if slices.ContainsFunc(units, func(u unitView) bool { return of(&u) && u.PodSet == p.Name }) {
				continue
			}
			left := unitView{Cluster: cluster.Name, PodSet: p.Name}
			left.sees(cluster)
			units = append(units, left)
		}
	}
	for k := range units {
		units[k].Why = units[k].why(a)
	}
	return units, problems
}

// sees what the status tells of its cluster.
func (u *unitView) sees(cluster *v1beta1.ClusterStatus) {
	u.cluster, u.State, u.AsOf = cluster, cluster.State, cluster.AsOf
	for i := range cluster.PodSets {
		if cluster.PodSets[i].Name == u.PodSet {
			u.Status = cluster.PodSets[i]
		}
	}
}

// isDone says whether a unit has all that it is to have.
func (u *unitView) isDone() bool {
	s := &u.Status
	return u.Wanted != nil && !u.isSilent() && s.Name != "" && s.Desired == u.Wanted.Replicas && s.Available >= s.Desired &&
		s.Update != nil && *s.Update >= s.Desired && (s.Revision == "" || s.Revision == u.Wanted.Content) && !podset.IsBroken(s)
}

// why a unit is not where the spec wants it, in a sentence; empty: it is. The first
// hindrance counts: what is behind it does not matter until it is gone.
func (u *unitView) why(a *v1beta1.AppSet) string {
	stalled := condition(a, v1beta1.ConditionStalled)
	switch s := &u.Status; {
	case isUnobserved(a):
		return fmt.Sprintf("the controller has not seen generation %d yet", a.Generation)
	case isTrue(stalled) && stalled.Reason == v1beta1.ReasonInvalid:
		return "the spec cannot be carried out: " + stalled.Message
	case u.cluster == nil:
		return "nothing is known of the cluster yet"
	case u.State == v1beta1.ClusterMaintaining:
		return "its cluster is in maintenance, and is brought up afterwards"
	case u.isSilent():
		return u.whySilent()
	case u.isDone():
		return ""
	case s.Message != "":
		return s.Message
	case u.cluster.Message != "" && u.cluster.Reason != "": // without a reason, nothing waits for it
		return u.cluster.Message
	case u.Wanted == nil:
		return "the spec has it no more, and it goes when the others are available"
	case a.Spec.UpdateStrategy.Paused:
		return "the AppSet is paused: kubectl tapp fleet resume " + a.Name
	case s.Revision != "" && s.Revision != u.Wanted.Content:
		return u.whyHeld(a)
	case s.Available < s.Desired:
		return fmt.Sprintf("%d of %d instances are available", s.Available, s.Desired)
	case s.Update != nil && *s.Update < s.Desired:
		return fmt.Sprintf("%d of %d instances have its content", *s.Update, s.Desired)
	case s.Desired != u.Wanted.Replicas:
		return fmt.Sprintf("it has %d instances, and is to have %d", s.Desired, u.Wanted.Replicas)
	}
	return "its cluster has not told of it yet"
}

func (u *unitView) whySilent() string {
	why := fmt.Sprintf("its cluster is %s", cmp.Or(string(u.State), "unknown"))
	if u.State == v1beta1.ClusterReady {
		why = "its cluster answers, and what it has is not known to be current"
	}
	if u.AsOf != nil {
		why += ", and was seen last at " + u.AsOf.UTC().Format(time.RFC3339)
	}
	if u.cluster.Message != "" {
		why += ": " + u.cluster.Message
	}
	return why
}

// whyHeld says what keeps its content from a unit.
func (u *unitView) whyHeld(a *v1beta1.AppSet) string {
	r := a.Status.Rollout
	if r == nil || r.Stage == "" {
		return "it is not its turn yet"
	}
	stage := stageOf(r, r.Stage)
	switch {
	case stage != nil && stage.Token != "":
		return fmt.Sprintf("stage %s is done, and waits for a confirmation: kubectl tapp fleet confirm %s", r.Stage, a.Name)
	case a.Status.AggrStatus.Status == v1beta1.PhaseHalted:
		return fmt.Sprintf("the rollout halted in stage %s", r.Stage)
	case a.Status.AggrStatus.Status == v1beta1.PhaseRolledBack:
		return fmt.Sprintf("the rollout failed in stage %s, and it runs what it ran before", r.Stage)
	}
	return fmt.Sprintf("stage %s is under way", r.Stage)
}

func stageOf(r *v1beta1.RolloutStatus, name string) *v1beta1.StageStatus {
	for i := range r.Stages {
		if r.Stages[i].Name == name {
			return &r.Stages[i]
		}
	}
	return nil
}
