package describe

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	apiv1 "tkestack.io/tapp/api/v1"
	"tkestack.io/tapp/crd/workload/v1beta1"
)

// AppSet makes an item of the list from the status.
func AppSet(s *v1beta1.AppSet) apiv1.AppSet {
	sum := &s.Status.AggrStatus
	out := apiv1.AppSet{
		Summary: apiv1.Summary{Namespace: s.Namespace, Name: s.Name, UID: string(s.UID), Created: s.CreationTimestamp, Generation: s.Generation, ObservedGeneration: s.Status.ObservedGeneration},
		Phase:   string(sum.Status), Version: sum.Version, Desired: sum.Desired, Available: sum.Available, Unavailable: sum.UnAvailable, Unknown: sum.Unknown,
		Paused: s.Spec.UpdateStrategy.Paused, Rollout: s.Status.Rollout, Clusters: []string{},
	}
	for i := range sum.Clusters {
		out.Clusters = append(out.Clusters, sum.Clusters[i].Name)
	}
	judgeAppSet(&out, s)
	return out
}

// AppSetDetail is all that is told of an AppSet.
func AppSetDetail(s *v1beta1.AppSet) (*apiv1.AppSetDetail, error) {
	d := &apiv1.AppSetDetail{AppSet: AppSet(s), ClusterStatuses: s.Status.AggrStatus.Clusters}
	d.Commands = []apiv1.Hint{hint("Show its stages and clusters", fleetCommand(&d.Summary, "get")), hint("Tell what is left to do", fleetCommand(&d.Summary, "plan")),
		hint("Show its history", fleetCommand(&d.Summary, "history"))}
	text, err := Manifest(s, v1beta1.SchemeGroupVersion.String(), v1beta1.KindAppSet)
	d.Object = text
	return d, err
}

// judgeAppSet says in one word how the AppSet is, and what needs a human: gates that wait, what is
// stalled, and clusters that are silent.
func judgeAppSet(s *apiv1.AppSet, stored *v1beta1.AppSet) {
	judge(&s.Summary, stored.DeletionTimestamp, stored.Status.Conditions)
	if waits := meta.FindStatusCondition(stored.Status.Conditions, v1beta1.ConditionAwaitingConfirmation); isTrue(waits) {
		if s.State == apiv1.StateProgressing {
			s.State, s.Reason, s.Message, s.Since = apiv1.StateWaiting, waits.Reason, waits.Message, &waits.LastTransitionTime
		}
		gate := apiv1.Attention{Severity: apiv1.SeverityWaiting, Reason: v1beta1.ConditionAwaitingConfirmation, Message: waits.Message, Since: &waits.LastTransitionTime,
			Command: fleetCommand(&s.Summary, "confirm")}
		if r := stored.Status.Rollout; r != nil {
			for _, stage := range r.Stages {
				if stage.Token != "" {
					gate.Stage, gate.Token = stage.Name, stage.Token
				}
			}
		}
		s.Attention = append(s.Attention, gate)
	}
	if s.State == apiv1.StateProgressing && s.Paused {
		s.State = apiv1.StatePaused
		s.Attention = append(s.Attention, apiv1.Attention{Severity: apiv1.SeverityPaused, Reason: "Paused", Message: "spec.updateStrategy.paused holds what changes pods", Since: s.Since, Command: fleetCommand(&s.Summary, "resume")})
	}
	for i := range stored.Status.AggrStatus.Clusters {
		c := &stored.Status.AggrStatus.Clusters[i]
		if isQuiet(c.State) {
			continue
		}
		if s.State == apiv1.StateProgressing || s.State == apiv1.StateReady {
			s.State = apiv1.StateUnknown
		}
		s.Attention = append(s.Attention, apiv1.Attention{Severity: apiv1.SeveritySilent, Reason: cmp.Or(c.Reason, string(c.State)), Message: cmp.Or(c.Message, "the cluster is "+string(c.State)),
			Since: c.AsOf, Cluster: c.Name, Command: "kubectl tapp fleet clusters"})
	}
	for i := range s.Attention {
		if s.Attention[i].Command == "" {
			s.Attention[i].Command = fleetCommand(&s.Summary, "explain")
		}
	}
}

// isQuiet says whether a cluster in this state needs no human.
func isQuiet(state v1beta1.ClusterState) bool {
	return slices.Contains([]v1beta1.ClusterState{"", v1beta1.ClusterReady, v1beta1.ClusterSuspect, v1beta1.ClusterMaintaining}, state)
}

// fleetCommand is a command of kubectl tapp fleet about the object.
func fleetCommand(s *apiv1.Summary, verb string) string {
	return "kubectl tapp fleet " + verb + " " + s.Name + " -n " + s.Namespace
}

// Clusters what the statuses of the AppSets that are seen say of each cluster; without sees all are.
// If several do, the latest observation counts.
func Clusters(objects []any, sees func(key string) bool) []apiv1.Cluster {
	byName := map[string]*apiv1.Cluster{}
	for _, object := range objects {
		s, ok := object.(*v1beta1.AppSet)
		if !ok || sees != nil && !sees(s.Namespace+"/"+s.Name) {
			continue
		}
		for i := range s.Status.AggrStatus.Clusters {
			c := &s.Status.AggrStatus.Clusters[i]
			name := v1beta1.FoldClusterName(c.Name)
			one := byName[name]
			if one == nil {
				one = &apiv1.Cluster{Name: name}
				byName[name] = one
			}
			if one.AppSets == 0 || c.AsOf == nil || one.AsOf != nil && one.AsOf.Before(c.AsOf) {
				one.State, one.Reason, one.Message, one.AsOf = string(c.State), c.Reason, c.Message, c.AsOf
			}
			one.AppSets++
			one.Desired += c.Desired
			one.Available += c.Available
		}
	}
	out := make([]apiv1.Cluster, 0, len(byName))
	for _, c := range byName {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b apiv1.Cluster) int { return strings.Compare(a.Name, b.Name) })
	return out
}
