package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// Events about an object, by its kind and name.
func (r *Rig) Events(ctx context.Context, kind, name string) ([]corev1.Event, error) {
	list, err := r.Kube.CoreV1().Events(r.NS).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=" + kind + ",involvedObject.name=" + name})
	if err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	return list.Items, nil
}

// WaitEvent waits for an event about a TApp with this type and reason ("": any), and with
// these words in its message.
func (r *Rig) WaitEvent(tapp, eventType, reason string, words ...string) {
	r.Helper()
	r.Eventually(fmt.Sprintf("%s event %s of TApp %s with %q", eventType, reason, tapp, words), func(ctx context.Context) error {
		events, err := r.Events(ctx, tappv1.Kind, tapp)
		if err != nil {
			return err
		}
		var seen []string
		for _, e := range events {
			missing := slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(e.Message, w) })
			if (eventType == "" || e.Type == eventType) && (reason == "" || e.Reason == reason) && !missing {
				return nil
			}
			seen = append(seen, EventLine(e))
		}
		return fmt.Errorf("events %q", seen)
	})
}

// EventLine tells of an event in one line.
func EventLine(e corev1.Event) string { return e.Type + " " + e.Reason + ": " + e.Message }
