package describe

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	apiv1 "tkestack.io/tapp/api/v1"
)

// Event is what is told of an event, whichever of the two APIs of events wrote it.
func Event(e *corev1.Event) apiv1.Event {
	out := apiv1.Event{Type: e.Type, Reason: e.Reason, Message: e.Message, Kind: e.InvolvedObject.Kind, Name: e.InvolvedObject.Name,
		Count: max(1, e.Count), First: apiv1.Present(e.FirstTimestamp), Last: apiv1.Present(e.LastTimestamp), Source: e.Source.Component}
	if out.Source == "" {
		out.Source = e.ReportingController
	}
	if out.First == nil {
		out.First = apiv1.Present(metav1.Time(e.EventTime))
	}
	if s := e.Series; s != nil {
		out.Count, out.Last = max(out.Count, s.Count), apiv1.Present(metav1.Time(s.LastObservedTime))
	}
	if out.Last == nil {
		out.Last = out.First
	}
	return out
}
