//go:build cluster

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/cluster"
)

// eventually waits until check returns nil. What check said last is what the test
// fails with.
func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	cluster.Eventually(t, what, check)
}

// tappWhere waits until the TApp's status is about its present generation and
// check returns "".
func tappWhere(t *testing.T, ns, name, what string, check func(*tappv1.TApp) string) *tappv1.TApp {
	t.Helper()
	return in(t, ns).WaitTApp(name, what, check)
}

// settled waits until the TApp is Ready at its present generation.
func settled(t *testing.T, ns, name string) *tappv1.TApp {
	t.Helper()
	return in(t, ns).WaitReady(name)
}

// stalled waits until the TApp is Stalled, with words that the message must have.
func stalled(t *testing.T, ns, name string, words ...string) *tappv1.TApp {
	t.Helper()
	return tappWhere(t, ns, name, "Stalled", func(tapp *tappv1.TApp) string {
		c := meta.FindStatusCondition(tapp.Status.Conditions, tappv1.ConditionStalled)
		if c == nil || c.Status != metav1.ConditionTrue {
			return "not Stalled"
		}
		for _, w := range words {
			if !strings.Contains(c.Message, w) {
				return fmt.Sprintf("the message of Stalled lacks %q: %s", w, c.Message)
			}
		}
		return ""
	})
}

// instancesAre waits until the status names exactly these instances so.
func instancesAre(t *testing.T, ns, name string, want map[string]tappv1.InstanceStatus) *tappv1.TApp {
	t.Helper()
	return tappWhere(t, ns, name, fmt.Sprintf("statuses %v", want), func(tapp *tappv1.TApp) string {
		if len(tapp.Status.Statuses) != len(want) {
			return "other instances"
		}
		for id, s := range want {
			if tapp.Status.Statuses[id] != s {
				return fmt.Sprintf("instance %s is %s", id, tapp.Status.Statuses[id])
			}
		}
		return ""
	})
}

// hasEvent waits for an event about the TApp with that reason and these words.
func hasEvent(t *testing.T, ns, name, kind, reason string, words ...string) {
	t.Helper()
	in(t, ns).WaitEvent(name, kind, reason, words...)
}

const (
	normal  = corev1.EventTypeNormal
	warning = corev1.EventTypeWarning
)
