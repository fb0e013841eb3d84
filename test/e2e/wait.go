//go:build cluster

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// patience is how long anything may take that a test waits for. It is there to
// end what hangs, not to measure: a busy machine must not fail a test.
const patience = 180 * time.Second

// eventually waits until check returns nil. What check said last is what the test
// fails with.
func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	within(t, patience, what, check)
}

func within(t *testing.T, limit time.Duration, what string, check func(context.Context) error) {
	t.Helper()
	if err := poll(t.Context(), limit, check); err != nil {
		t.Fatalf("%s: not within %s; last seen: %v", what, limit, err)
	}
}

// poll calls check until it returns nil, and returns its last error when time is
// up.
func poll(ctx context.Context, limit time.Duration, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(150 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil { // else it only says that time is up
			last = err
		}
		select {
		case <-ctx.Done():
			return last
		case <-tick.C:
		}
	}
}

// always fails as soon as check does, and ends well when the time has passed: for
// what must not happen. Such a time is part of what is tested, and short.
func always(t *testing.T, during time.Duration, what string, check func(context.Context) error) {
	t.Helper()
	holds := errors.New("holds")
	err := poll(t.Context(), during, func(ctx context.Context) error {
		if err := check(ctx); err != nil && ctx.Err() == nil {
			t.Fatalf("%s: %v", what, err)
		}
		return holds
	})
	if !errors.Is(err, holds) {
		t.Fatalf("%s: %v", what, err)
	}
}

// tappWhere waits until the TApp's status is about its present generation and
// check returns "".
func tappWhere(t *testing.T, ns, name, what string, check func(*tappv1.TApp) string) *tappv1.TApp {
	t.Helper()
	var tapp *tappv1.TApp
	eventually(t, "TApp "+name+": "+what, func(ctx context.Context) error {
		var err error
		if tapp, err = suite.tapps.TApps(ns).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		if tapp.Status.ObservedGeneration != tapp.Generation {
			return fmt.Errorf("observedGeneration %d of %d", tapp.Status.ObservedGeneration, tapp.Generation)
		}
		if wrong := check(tapp); wrong != "" {
			return fmt.Errorf("%s; status: %s", wrong, statusOf(tapp))
		}
		return nil
	})
	return tapp
}

// settled waits until the TApp is Ready at its present generation.
func settled(t *testing.T, ns, name string) *tappv1.TApp {
	t.Helper()
	eventually(t, "TApp "+name+" is Ready", func(ctx context.Context) error { return ready(ctx, ns, name) })
	return get(t, ns, name)
}

// ready says what keeps the TApp from being Ready at its present generation.
func ready(ctx context.Context, ns, name string) error {
	tapp, err := suite.tapps.TApps(ns).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	stale := tapp.Status.ObservedGeneration != tapp.Generation
	if stale || !meta.IsStatusConditionTrue(tapp.Status.Conditions, tappv1.ConditionReady) ||
		meta.IsStatusConditionTrue(tapp.Status.Conditions, tappv1.ConditionStalled) {
		return fmt.Errorf("generation %d, observed %d: %s", tapp.Generation, tapp.Status.ObservedGeneration, statusOf(tapp))
	}
	return nil
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

// statusOf tells the status of a TApp in one line.
func statusOf(t *tappv1.TApp) string {
	s := &t.Status
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %d replicas, %d ready, %d available, %d updated", s.AppStatus, s.Replicas, s.ReadyReplicas, s.AvailableReplicas, s.UpdatedReplicas)
	if len(s.Statuses) <= 12 {
		fmt.Fprintf(&b, ", %v", s.Statuses)
	}
	for _, c := range s.Conditions {
		fmt.Fprintf(&b, "; %s %s (%s: %s)", c.Type, c.Status, c.Reason, c.Message)
	}
	return b.String()
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
	eventually(t, fmt.Sprintf("%s event %s of %s with %q", kind, reason, name, words), func(ctx context.Context) error {
		events, err := suite.kube.CoreV1().Events(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		var seen []string
		for _, e := range events.Items {
			if e.InvolvedObject.Kind != tappv1.Kind || e.InvolvedObject.Name != name {
				continue
			}
			seen = append(seen, e.Type+" "+e.Reason+": "+e.Message)
			if e.Type == kind && (reason == "" || e.Reason == reason) && containsAll(e.Message, words) {
				return nil
			}
		}
		return fmt.Errorf("events %q", seen)
	})
}

func containsAll(s string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(s, w) {
			return false
		}
	}
	return true
}

const (
	normal  = corev1.EventTypeNormal
	warning = corev1.EventTypeWarning
)
