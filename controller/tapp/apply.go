package tapp

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"tkestack.io/tapp/controller/write"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
)

const (
	// applyTimeout is how long one plan is carried out. A plan grows old: what is left
	// of it then is planned anew, and the status and events move on.
	applyTimeout = 10 * time.Second
	// staleAgain is when to look again after a write that came too late, if no
	// event tells earlier.
	staleAgain = time.Second
)

// applied is what came of a plan.
type applied struct {
	write.Result
	errs    write.Failures
	refused *refused
	// reopen: an update was refused for which a gate is closed.
	reopen atomic.Bool
	again  time.Duration // when to look again at the latest; 0: never
}

// apply carries out the actions. It decides nothing: what an operation writes
// stands in the table.
func (c *Controller) apply(ctx context.Context, t *tappv1.TApp, o *object, actions []plan.Action) *applied {
	out := &applied{errs: write.Failures{Names: instances}}
	now := c.Clock.Now()
	if len(actions) == 0 {
		return out
	}
	w := c.newWriter(ctx, t, o)
	out.refused = since(o.refused, now)
	w.wrote = func(a *plan.Action, err error) {
		if o.trials.wrote(a, err, c.Clock.Now()) {
			out.reopen.Store(true)
		}
	}
	batch := write.Batch{Namespace: t.Namespace, InOrder: c.createsInOrder(ctx, t.Namespace, o, actions)}
	for i := range actions {
		a := &actions[i]
		batch.Writes = append(batch.Writes, write.Write{Op: string(a.Op), Class: classOf(a), Do: func() error { return c.act(ctx, w, a, out) }})
	}
	deadline := now.Add(applyTimeout)
	batch.Over = func() bool {
		return ctx.Err() != nil || c.stopping.Load() || c.Clock.Now().After(deadline) || c.outdated(t)
	}
	out.Result = c.writes.Run(ctx, &o.concurrency, batch)
	o.refused = out.refused.set
	if out.Terminating {
		o.terminating = c.Clock.Now().Add(terminatingAgain)
	}

	switch {
	case out.reopen.Load(): // a gate is to open again
		out.again = time.Millisecond
	case out.Failed > 0: // the backoff decides
	case out.Skipped > 0:
		out.again = time.Millisecond
	case out.Stale > 0:
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
// the same template. Whether a pod is the first of its instance or the next one makes no
// difference to a quota.
func classOf(a *plan.Action) string {
	op := a.Op
	if op == plan.OpReplace {
		op = plan.OpCreate
	}
	if a.Pod == nil {
		return string(op)
	}
	return string(op) + "/" + a.Pod.Labels[tappv1.LabelTemplateHash]
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

// idsOf an action: the instance that it is about, or none.
func idsOf(a *plan.Action) []int {
	if a.ID == "" {
		return nil
	}
	return []int{number(a.ID)}
}

// act carries out one action and tells of it.
func (c *Controller) act(ctx context.Context, w *writer, a *plan.Action, out *applied) error {
	errs := &out.errs
	op, known := c.operations[a.Op]
	if !known {
		err := fmt.Errorf("unknown operation %q", a.Op)
		errs.Add("carry out the plan", err.Error(), err, idsOf(a)...)
		return err
	}
	err := op.write(ctx, w, a)
	outcome := write.Outcome(ctx, err)
	switch outcome {
	case write.Stale:
		klog.FromContext(ctx).V(3).Info("Came too late", "op", a.Op, "instance", a.ID, "err", err)
	case write.Interrupted: // nothing to tell of the instance
		errs.Add(op.verb, ctx.Err().Error(), ctx.Err(), idsOf(a)...)
	case write.Failed:
		part := failedPart(a, err)
		op = c.operations[part]
		errs.Add(op.verb, words(err, objectOf(a)), err, idsOf(a)...)
		out.refused.note(part, a, err)
		c.recorder.failed(w.tapp, op, a, err)
	default:
		klog.FromContext(ctx).V(3).Info("Done", "op", a.Op, "instance", a.ID, "reason", a.Reason, "why", a.Why)
		c.recorder.succeeded(w.tapp, op, a)
		if a.Op == plan.OpCreate || a.Op == plan.OpReplace {
			w.forUpdate.created(a.ID)
		}
		out.refused.passed(a)
	}
	c.Metrics.actions.WithLabelValues(string(a.Op), a.Reason, outcome).Inc()
	return err
}

// words of an error for people: the API server's own, with the instance's name
// replaced, so that the same fault of 1,000 instances reads the same.
func words(err error, object string) string {
	text := write.Words(err)
	if object == "" {
		return text
	}
	s, _ := stem(object)
	return strings.ReplaceAll(text, `"`+object+`"`, `"`+s+`-<id>"`)
}

// summary of what was done, for logs.
func (a *applied) summary() string {
	var parts []string
	for op, n := range a.Done {
		parts = append(parts, fmt.Sprintf("%s:%d", op, n))
	}
	slices.Sort(parts)
	for _, part := range []struct {
		name string
		n    int
	}{{"stale", a.Stale}, {"failed", a.Failed}, {"skipped", a.Skipped}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%s:%d", part.name, part.n))
		}
	}
	return strings.Join(parts, " ")
}
