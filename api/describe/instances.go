package describe

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	apiv1 "tkestack.io/tapp/api/v1"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/ids"
	plan "tkestack.io/tapp/plan/tapp"
	"tkestack.io/tapp/plan/view"
)

// Instance is a line of the list of instances.
func Instance(o *view.Observed, i *plan.Instance) apiv1.Instance {
	v := apiv1.Instance{ID: i.ID, Template: i.Template, State: string(i.Status), Desired: i.Desired, Available: i.Available, Current: i.Current, Reason: i.Reason, Why: i.Why}
	for _, a := range o.Actions(i.ID) {
		v.Next = append(v.Next, view.Action{Op: a.Op, Reason: a.Reason, Why: a.Why})
	}
	if i.Pod == nil {
		return v
	}
	v.Since, v.Version, v.Pod, v.Node = view.Since(i), versionOf(i.Pod), i.Pod.Name, i.Pod.Spec.NodeName
	for _, c := range i.Pod.Status.ContainerStatuses {
		v.Restarts += c.RestartCount
	}
	return v
}

// versionOf a pod is the hash of the template that it was made of, or was brought to.
func versionOf(pod *corev1.Pod) string { return pod.Labels[tappv1.LabelTemplateHash] }

// Sums are what is told of all instances together.
func Sums(o *view.Observed) apiv1.InstanceSums {
	s := apiv1.InstanceSums{States: map[string]int{}, Versions: []apiv1.Version{}, Waiting: waitingOf(o), Desired: o.Plan.Desired, MaxUnavailable: o.Plan.Budgets.Rolling.MaxUnavailable}
	at := map[string]int{}
	for k := range o.Plan.Instances {
		i := &o.Plan.Instances[k]
		s.States[string(i.Status)]++
		if i.Available {
			s.Available++
		}
		if i.Pod == nil {
			continue
		}
		hash := versionOf(i.Pod)
		n, known := at[hash]
		if !known {
			n = len(s.Versions)
			at[hash] = n
			s.Versions = append(s.Versions, apiv1.Version{Hash: hash, Images: imagesOf(i.Pod.Spec.Containers)})
		}
		s.Versions[n].Instances++
		if i.Current {
			s.Versions[n].Current++
		}
	}
	slices.SortFunc(s.Versions, func(a, b apiv1.Version) int {
		return cmp.Or(cmp.Compare(b.Instances, a.Instances), strings.Compare(a.Hash, b.Hash))
	})
	return s
}

// maxWaiting bounds how many different reasons are told.
const maxWaiting = 50

// waitingOf the instances, the reason that most of them share first.
func waitingOf(o *view.Observed) []apiv1.Waiting {
	type key struct{ reason, why string }
	waiting := map[key][]int{}
	var order []key
	for k := range o.Plan.Instances {
		i := &o.Plan.Instances[k]
		reason, why := i.Reason, i.Why
		if next := o.Actions(i.ID); reason == "" && len(next) > 0 {
			reason, why = next[0].Reason, next[0].Why
		}
		if reason == "" {
			continue
		}
		at := key{reason, why}
		if waiting[at] == nil {
			order = append(order, at)
		}
		waiting[at] = append(waiting[at], i.Num)
	}
	slices.SortStableFunc(order, func(a, b key) int { return cmp.Compare(len(waiting[b]), len(waiting[a])) })
	var out []apiv1.Waiting
	for _, k := range order[:min(len(order), maxWaiting)] {
		out = append(out, apiv1.Waiting{Instances: ids.Ranges(waiting[k]), Count: len(waiting[k]), Reason: k.reason, Why: k.why})
	}
	return out
}
