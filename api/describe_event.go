package api

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func eventOf(e *corev1.Event) Event {
	out := Event{Type: e.Type, Reason: e.Reason, Message: e.Message, Kind: e.InvolvedObject.Kind, Name: e.InvolvedObject.Name,
		Count: max(1, e.Count), First: present(e.FirstTimestamp), Last: present(e.LastTimestamp), Source: e.Source.Component}
	if out.Source == "" {
		out.Source = e.ReportingController
	}
	if out.First == nil {
		out.First = present(metav1.Time(e.EventTime))
	}
	if s := e.Series; s != nil {
		out.Count, out.Last = max(out.Count, s.Count), present(metav1.Time(s.LastObservedTime))
	}
	if out.Last == nil {
		out.Last = out.First
	}
	return out
}
