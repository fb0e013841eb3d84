package fleet

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"tkestack.io/tapp/controller/events"
	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/fleet/health"
)

// reasonState begins the reason of the event that a cluster has come into a state, such as ClusterOffline.
const reasonState = "Cluster"

// news are what people are told of a cluster: each time that it is lost or cannot be used, and that
// it is back. It has the state that they were told last; empty: they need not be told that it is Ready.
type news struct{ told v1beta1.ClusterState }

// of a cluster as it is now: the state that they were told before, and whether this is another one.
// Suspect is over in a moment, and so is what a process begins with. What a human did is no news.
func (n *news) of(now *Member) (was v1beta1.ClusterState, is bool) {
	switch now.State {
	case v1beta1.ClusterSuspect:
		return "", false
	case v1beta1.ClusterMaintaining, v1beta1.ClusterUnregistered:
		n.told = ""
		return "", false
	case v1beta1.ClusterOffline:
		if now.Reason == health.ReasonConnecting || now.Reason == health.ReasonReturning || now.Reason == health.ReasonFlapping {
			return "", false
		}
	}
	was, n.told = n.told, now.State
	return was, was != now.State && (was != "" || now.State != v1beta1.ClusterReady)
}

// announce a state that is news: in the log, and by an event about the registration.
func (f *Fleet) announce(ctx context.Context, from corev1.ObjectReference, was v1beta1.ClusterState, now *Member) {
	klog.FromContext(ctx).Info("The state of a cluster changed", "cluster", now.Name, "was", was, "state", now.State, "reason", now.Reason, "message", now.Message)
	if f.Events == nil || from.Kind == "" || f.Leading != nil && !f.Leading() {
		return
	}
	on := events.Topic{Type: corev1.EventTypeWarning, Reason: reasonState + string(now.State), Why: fmt.Sprintf("cluster %s is %s: %s", now.Name, now.State, now.Message)}
	if now.State == v1beta1.ClusterReady {
		on.Type, on.Why = corev1.EventTypeNormal, fmt.Sprintf("cluster %s is Ready again; it was %s", now.Name, was)
	}
	f.Events.Note(from, on)
}
