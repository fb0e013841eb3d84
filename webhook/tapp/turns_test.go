package tapp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"tkestack.io/tapp/webhook/rule"
)

// TestTriedAtMost: of many templates some are tried, and which are not is said.
func TestTriedAtMost(t *testing.T) {
	v := newTestValidator()
	var tried atomic.Int32
	v.dryRuns.pods = fakePods{create: func(context.Context, *corev1.Pod) error { tried.Add(1); return nil }}
	c := candidate{now: tapp(t, "templatePool: {}")}
	c.now.Spec.TemplatePool = map[string]corev1.PodTemplateSpec{}
	for i := range 105 {
		c.now.Spec.TemplatePool[fmt.Sprintf("t%03d", i)] = c.now.Spec.Template
	}
	var w rule.Warnings
	if denied := v.dryRuns.run(t.Context(), c, &w); len(denied) > 0 || tried.Load() != maxTried {
		t.Errorf("%d are tried, %v", tried.Load(), denied)
	}
	wantLines(t, w.Texts, "spec.templatePool[t099], spec.templatePool[t100], spec.templatePool[t101] and 3 more templates: "+
		"whether the cluster takes its pods was not tried: one review tries 100 templates, the default one and then the others by name")
}

// TestTurns: a namespace that tries many waits, and no other one with it.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newTurns()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		for range triesAtOnce + triesPerSecond/2 {
			if err := all.wait(ctx, "busy"); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took < 400*time.Millisecond || took > 600*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		began = time.Now()
		if err := all.wait(ctx, "calm"); err != nil || time.Since(began) > 0 {
			t.Errorf("another namespace: %v after %v", err, time.Since(began))
		}
		soon, cancelSoon := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancelSoon()
		if err := all.wait(soon, "busy"); !errors.Is(err, errNoTurn) {
			t.Errorf("out of turn: %v", err)
		}
	})
}

// TestTurnsForgotten: namespaces that try nothing are not kept.
func TestTurnsForgotten(t *testing.T) {
	all := newTurns()
	for i := range 3 * sweepAbove {
		all.of(strings.Repeat("x", 20) + fmt.Sprint(i))
	}
	if len(all.namespaces) > sweepAbove {
		t.Errorf("%d are kept", len(all.namespaces))
	}
}
