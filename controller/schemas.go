package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"tkestack.io/tapp/controller/events"
	"tkestack.io/tapp/controller/servedschema"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// heldKind is what the controller of each kind has beside: it works only while the served
// schema of its kind has the fields that objects use.
type heldKind struct {
	hold   *servedschema.Hold
	events *events.Recorder
}

// runHeld runs the controller, but for the time in which its kind is held.
func (h heldKind) runHeld(ctx, work context.Context, run func(ctx, work context.Context)) {
	telling, end := context.WithCancel(work)
	done := make(chan struct{})
	go func() { defer close(done); h.events.Run(telling) }()
	h.hold.Supervise(ctx, work, run, isUnreachable)
	end()
	<-done
}

// newHold makes the Hold of a kind, and the setup with which its controller is to be made:
// while the kind is held, it writes nothing by that.
func (s setup) newHold(kind schema.GroupVersionKind, resource string, specOf func(metav1.Object) any) (heldKind, setup, error) {
	core, err := corev1client.NewForConfig(s.api.requests)
	if err != nil {
		return heldKind{}, s, fmt.Errorf("making a client of schemas: %w", err)
	}
	told, err := corev1client.NewForConfig(s.api.events)
	if err != nil {
		return heldKind{}, s, fmt.Errorf("making a client of events: %w", err)
	}
	namespace, now := s.config.ownNamespace(), s.config.Clock
	if now == nil {
		now = clock.RealClock{}
	}
	h := heldKind{events: events.NewRecorder(events.Options{Client: told, Component: fieldManager, Host: s.host, Clock: now, Contain: s.queue.Container("events")})}
	about := corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: tappv1.SchemasConfigMap}
	h.hold = servedschema.New(servedschema.Options{
		Kind: kind, Resource: resource + "." + kind.Group, REST: core.RESTClient(), ConfigMaps: core, Namespace: namespace, FieldManager: fieldManager,
		Accepted: s.config.AcceptedSchemas, Interval: s.config.SchemaInterval, SpecOf: specOf, Clock: now, Measure: s.held.WithLabelValues(kind.Kind).Set,
		Tell: func(reason, message string) {
			if namespace == "" {
				return
			}
			level := corev1.EventTypeWarning
			if reason == servedschema.ReasonComplete {
				level = corev1.EventTypeNormal
			}
			h.events.Note(about, events.Topic{Type: level, Reason: reason, Why: message})
		},
	})
	s.api.requests = with(s.api.requests, func(r *rest.Config) { r.Wrap(h.hold.Gate) })
	return h, s, nil
}
