package view

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/inplace"
	plan "tkestack.io/tapp/plan/tapp"
	"tkestack.io/tapp/plan/unready"
)

// Instance is what is told of one instance of a TApp.
type Instance struct {
	Namespace string                `json:"namespace"`
	TApp      string                `json:"tapp"`
	ID        string                `json:"id"`
	Template  string                `json:"template"`
	State     tappv1.InstanceStatus `json:"state"`
	// Since is when it came to its state, if that is known.
	Since *metav1.Time `json:"since,omitempty"`
	// Available: desired, ready for minReadySeconds, neither terminating nor updating.
	Available bool `json:"available"`
	// Current: the pod follows its template.
	Current bool `json:"current"`
	// Kept: the pod was made as the instance was, or as usual, while its update was held.
	Kept bool `json:"kept,omitempty"`
	// Pod and what follows are absent without a pod.
	Pod      string   `json:"pod,omitempty"`
	UID      string   `json:"uid,omitempty"`
	Images   []string `json:"images,omitempty"`
	Node     string   `json:"node,omitempty"`
	IP       string   `json:"ip,omitempty"`
	Restarts int32    `json:"restarts,omitempty"`
	// Reason and Why say why nothing is done although the instance is not where the spec
	// wants it.
	Reason string `json:"reason,omitempty"`
	Why    string `json:"why,omitempty"`
	// Next are the actions of the plan for the instance.
	Next []Action `json:"next,omitempty"`
}

// Action is one action of a plan.
type Action struct {
	Op plan.Op `json:"op"`
	// Reason in CamelCase, and Why, one sentence: those of the event and of the log.
	Reason string `json:"reason"`
	Why    string `json:"why"`
}

// View of an instance of the plan.
func (o *Observed) View(i *plan.Instance) Instance {
	v := Instance{Namespace: o.TApp.Namespace, TApp: o.TApp.Name, ID: i.ID, Template: i.Template, State: i.Status,
		Available: i.Available, Current: i.Current, Kept: i.Kept, Reason: i.Reason, Why: i.Why}
	for _, a := range o.Actions(i.ID) {
		v.Next = append(v.Next, Action{a.Op, a.Reason, a.Why})
	}
	if i.Pod == nil {
		return v
	}
	v.Pod, v.UID, v.Node, v.IP = i.Pod.Name, string(i.Pod.UID), i.Pod.Spec.NodeName, i.Pod.Status.PodIP
	for _, c := range i.Pod.Spec.Containers {
		v.Images = append(v.Images, c.Image)
	}
	for _, c := range i.Pod.Status.ContainerStatuses {
		v.Restarts += c.RestartCount
	}
	v.Since = Since(i)
	return v
}

// Since returns when the pod came to the state of its instance.
func Since(i *plan.Instance) *metav1.Time {
	pod := i.Pod
	switch i.Status {
	case tappv1.InstanceKilling:
		if at := pod.DeletionTimestamp; at != nil {
			grace := int64(0)
			if pod.DeletionGracePeriodSeconds != nil {
				grace = *pod.DeletionGracePeriodSeconds
			}
			return &metav1.Time{Time: at.Add(-time.Duration(grace) * time.Second)}
		}
	case tappv1.InstanceUpdating:
		if at, closed := inplace.GateClosedSince(pod); closed {
			return &metav1.Time{Time: at}
		}
	case tappv1.InstanceFailed, tappv1.InstanceSucc, tappv1.InstancePodFailed, tappv1.InstancePodSucc:
		var end *metav1.Time
		for _, c := range pod.Status.ContainerStatuses {
			if t := c.State.Terminated; t != nil && (end == nil || end.Before(&t.FinishedAt)) {
				end = &t.FinishedAt
			}
		}
		if end != nil {
			return end
		}
	}
	if c := unready.Ready(pod); c != nil {
		return &c.LastTransitionTime
	}
	return &pod.CreationTimestamp
}
