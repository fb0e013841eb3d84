package tapp

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"tkestack.io/tapp/controller/events"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/ids"
	plan "tkestack.io/tapp/plan/tapp"
)

// component is who events come from.
const component = "tapp-controller"

// recorder tells of what was done with instances.
type recorder struct{ *events.Recorder }

func newRecorder(o Options) recorder {
	return recorder{events.NewRecorder(events.Options{Client: o.Events, Component: component, Host: o.Host, Clock: o.Clock, Names: instances, Sent: o.Metrics.events, Contain: o.Queue.Container("events")})}
}

func (r recorder) succeeded(t *tappv1.TApp, op operation, a *plan.Action) {
	if op.success == "" {
		return
	}
	r.Note(reference(t), events.Topic{Type: corev1.EventTypeNormal, Reason: op.success, Title: op.past, Why: a.Why}, idsOf(a)...)
}

func (r recorder) failed(t *tappv1.TApp, op operation, a *plan.Action, err error) {
	r.Note(reference(t), events.Topic{Type: corev1.EventTypeWarning, Reason: op.failure, Title: "cannot " + op.verb, Why: words(err, objectOf(a))}, idsOf(a)...)
}

// problem tells of something that the spec gets wrong, without naming instances.
func (r recorder) problem(t *tappv1.TApp, reason, message string) {
	r.Note(reference(t), events.Topic{Type: corev1.EventTypeWarning, Reason: reason, Why: message})
}

func reference(t *tappv1.TApp) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: tappv1.SchemeGroupVersion.String(), Kind: tappv1.Kind,
		Namespace: t.Namespace, Name: t.Name, UID: t.UID, ResourceVersion: t.ResourceVersion,
	}
}

// instances names instances for people.
func instances(some []int) string {
	some = slices.Clone(some)
	slices.Sort(some)
	return ids.Instances(slices.Compact(some))
}
