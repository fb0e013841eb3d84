package tapp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/klog/v2"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
)

const (
	// applyMost is how long one plan is carried out. A plan grows old: what is left
	// of it then is planned anew, and the status and events move on.
	applyMost = 10 * time.Second
	// staleAgain is when to look again after a write that came too late, if no
	// event tells earlier.
	staleAgain = time.Second
)

// applied is what came of a plan.
type applied struct {
	errs  failures
	again time.Duration // when to look again at the latest; 0: never

	mu      sync.Mutex
	done    map[plan.Op]int
	stale   int
	failed  int
	skipped int
	ending  bool // the namespace is being deleted
}

// apply carries out the actions. It decides nothing: what an operation writes
// stands in the table.
func (c *Controller) apply(ctx context.Context, t *tappv1.TApp, o *object, actions []plan.Action) *applied {
	out := &applied{done: map[plan.Op]int{}}
	now := c.Clock.Now()
	if rest := o.ending.Sub(now); rest > 0 {
		var left bool
		if actions, left = withoutCreations(actions); left {
			out.again = rest
		}
	}
	if len(actions) == 0 {
		return out
	}
	w := c.newWriter(ctx, t, &o.guard)
	writes := make([]task, 0, len(actions))
	for i := range actions {
		a := &actions[i]
		writes = append(writes, task{class: classOf(a), do: func() error {
			end := c.turns.take(ctx)
			defer end()
			return c.act(ctx, w, a, out)
		}})
	}
	deadline := now.Add(applyMost)
	start := newSlowStart(o.momentum.at(now, c.neighbours.at(t.Namespace, actions, now)), func() bool {
		return ctx.Err() != nil || c.stopping.Load() || c.Clock.Now().After(deadline) || c.outdated(t)
	})
	out.skipped = start.run(writes)
	now = c.Clock.Now()
	o.momentum.keep(start, out.failed == 0, now)
	c.neighbours.keep(t.Namespace, out.done, out.failed == 0, now)
	if out.ending {
		o.ending = now.Add(endingAgain)
	}

	switch {
	case out.failed > 0: // the backoff decides
	case out.skipped > 0:
		out.again = time.Millisecond
	case out.stale > 0:
		out.again = staleAgain
	}
	return out
}

// outdated says whether the spec changed since the plan was made.
func (c *Controller) outdated(t *tappv1.TApp) bool {
	now, err := c.lister.TApps(t.Namespace).Get(t.Name)
	return err != nil || now.UID != t.UID || now.Generation > t.Generation || now.DeletionTimestamp != nil && t.DeletionTimestamp == nil
}

// classOf groups actions that are expected to fail alike: the same operation with
// the same template.
func classOf(a *plan.Action) string {
	if a.Pod == nil {
		return string(a.Op)
	}
	return string(a.Op) + "/" + a.Pod.Labels[tappv1.LabelTemplateHash]
}

// objectOf an action: the name that errors contain.
func objectOf(a *plan.Action) string {
	switch {
	case a.Revision != nil:
		return a.Revision.Name
	case a.Claim != nil:
		return a.Claim.Name
	case a.Pod != nil:
		return a.Pod.Name
	}
	return ""
}

// act carries out one action and tells of it.
func (c *Controller) act(ctx context.Context, w *writer, a *plan.Action, out *applied) error {
	op, known := c.operations[a.Op]
	if !known {
		return fmt.Errorf("the planner asks for %q, which nobody knows how to do", a.Op)
	}
	err := op.write(ctx, w, a)
	result := "done"
	switch {
	case errors.Is(err, errStale):
		result = "stale"
		klog.FromContext(ctx).V(3).Info("Came too late", "op", a.Op, "instance", a.ID, "err", err)
	case err != nil && ctx.Err() != nil:
		// This process ends or has lost its lease, which is nothing to tell of the
		// instance; whether the write was made, the next leader sees.
		result = "brokenOff"
		out.errs.addFor(op.verb, objectOf(a), a.ID, ctx.Err())
	case err != nil:
		result = "failed"
		out.errs.addFor(op.verb, objectOf(a), a.ID, err)
		c.recorder.failed(w.tapp, op, a, err)
	default:
		klog.FromContext(ctx).V(3).Info("Done", "op", a.Op, "instance", a.ID, "reason", a.Reason, "why", a.Why)
		c.recorder.succeeded(w.tapp, op, a)
	}
	c.Metrics.actions.WithLabelValues(string(a.Op), a.Reason, result).Inc()

	out.mu.Lock()
	defer out.mu.Unlock()
	switch result {
	case "stale":
		out.stale++
		out.ending = out.ending || terminates(err)
	case "failed":
		out.failed++
	case "done":
		out.done[a.Op]++
	}
	return err
}

// summary of what was done, for logs.
func (a *applied) summary() string {
	var parts []string
	for op, n := range a.done {
		parts = append(parts, fmt.Sprintf("%s:%d", op, n))
	}
	slices.Sort(parts)
	for _, part := range []struct {
		name string
		n    int
	}{{"stale", a.stale}, {"failed", a.failed}, {"skipped", a.skipped}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%s:%d", part.name, part.n))
		}
	}
	return strings.Join(parts, " ")
}
