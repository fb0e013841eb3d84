package tapp

import (
	"context"
	"errors"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"tkestack.io/tapp/controller/cache"
	"tkestack.io/tapp/controller/loop"
	"tkestack.io/tapp/controller/status"
	"tkestack.io/tapp/controller/write"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/refusal"
	plan "tkestack.io/tapp/plan/tapp"
	"tkestack.io/tapp/process/parallel"
)

// object is what is remembered of one TApp from sync to sync. Nothing in it
// decides what happens to an instance, and it is lost at every restart.
type object struct {
	guard       cache.Guard
	concurrency write.Concurrency
	status      status.Throttle
	problems    told
	// nodesAfter is the node that was read last, where a sync cannot read all, and
	// nodesBefore what the reads of such nodes said.
	nodesAfter  string
	nodesBefore map[string]plan.NodeState
	// data of the TApp's revisions by UID, while plans ask for it: it never changes.
	data map[types.UID]runtime.RawExtension
	// forUpdate has the instances whose pods this process deleted for an update.
	forUpdate forUpdate
	// refused is what the API server refuses; nil: nothing has been tried yet.
	refused refusal.Set
	// claims in use that are being deleted, of which events told.
	claims map[types.UID]bool
	// noQuotaUntil is until when the namespace counts as one without quotas.
	noQuotaUntil time.Time
	// trials are what the API server said of what is to come.
	trials trials
	// terminating is until when nothing is created, because the namespace is being deleted.
	terminating time.Time
}

// sync takes one TApp a step on.
func (c *Controller) sync(ctx context.Context, k loop.Key) (loop.Result, error) {
	t, err := c.lister.TApps(k.Namespace).Get(k.Name)
	if apierrors.IsNotFound(err) {
		c.objects.Forget(k)
		return loop.Result{Progress: loop.AtRest}, nil
	}
	if err != nil {
		return loop.Result{}, err
	}
	o := c.objects.Get(k, t.UID)
	v, wait, err := c.snapshot(ctx, t, o)
	if v == nil || err != nil {
		return loop.Result{After: wait}, err
	}
	began := c.Clock.Now()
	p, err := c.compute(ctx, v, o)
	decided := c.Clock.Now()
	o.refused = p.Refused

	// An edit of the spec goes first: it holds for the version that was planned on,
	// and the status makes another one.
	edits, history := partBy(plan.OpPruneTemplates, p.History)
	edited := c.apply(ctx, v.tapp, o, edits)

	// The status tells of what was observed and not of what is being done about it,
	// so that neither write waits for the other.
	var rest time.Duration
	var statusErr error
	var telling parallel.Group
	defer telling.Wait() // nothing of a sync outlives it, also when it panics
	telling.Do(func() { rest, statusErr = c.putStatus(ctx, v.tapp, o, &p) })
	tries, actions := partBy(plan.OpTry, p.Actions)
	c.ask(ctx, v.tapp, o, tries)
	done := c.apply(ctx, v.tapp, o, append(history, actions...))
	c.tellProblems(v.tapp, o, p.Problems)
	c.tellClaims(v.tapp, o, p.Terminating)
	telling.Wait()
	if len(p.Actions) == 0 && rest == 0 && meta.IsStatusConditionTrue(p.Status.Conditions, tappv1.ConditionReady) {
		c.recorder.Settled(v.tapp.UID)
	}
	if len(p.Actions) > 0 {
		klog.FromContext(ctx).V(2).Info("Synced", "generation", v.tapp.Generation, "pods", len(v.pods), "actions", done.summary(),
			"took", c.Clock.Since(began))
	}
	result := loop.Result{After: loop.Soonest(p.Wait, rest, edited.again, done.again), Progress: progressOf(&p), Writing: c.Clock.Since(decided)}
	return result, errors.Join(err, edited.errs.Join(), done.errs.Join(), statusErr)
}

func progressOf(p *plan.Plan) loop.Progress {
	if meta.IsStatusConditionTrue(p.Status.Conditions, tappv1.ConditionProgressing) {
		return loop.UnderWay
	}
	return loop.AtRest
}

// partBy parts the actions of an operation from the others.
func partBy(op plan.Op, all []plan.Action) (of, others []plan.Action) {
	for _, a := range all {
		if a.Op == op {
			of = append(of, a)
		} else {
			others = append(others, a)
		}
	}
	return of, others
}

// snapshot returns what to plan on; nil, and how long to wait for an event at
// most, when that cannot be said yet.
func (c *Controller) snapshot(ctx context.Context, t *tappv1.TApp, o *object) (*view, time.Duration, error) {
	return c.observer.Observe(ctx, &o.guard, cache.Sources[*view]{
		Cached: func(context.Context) (*view, error) { return c.cached(t) },
		Live: func(ctx context.Context) (*view, error) {
			return c.live(ctx, loop.Key{Namespace: t.Namespace, Name: t.Name}, t.UID)
		},
	})
}

// compute makes the plan, and makes it again with evidence when it asks for
// some. Evidence that cannot be had is an error, and the plan goes on without.
func (c *Controller) compute(ctx context.Context, v *view, o *object) (plan.Plan, error) {
	began := time.Now()
	o.forUpdate.followed(v.pods)
	in := plan.Input{TApp: v.tapp, Pods: v.pods, Claims: v.claims, Revisions: v.revisions, Now: c.Clock.Now(), NodesAfter: o.nodesAfter, NoCreationUntil: o.terminating, Policy: c.policy(),
		ForUpdate: o.forUpdate.ids(), Refused: o.refused, Trials: o.trials.known()}
	p := plan.Compute(in)
	c.Metrics.planDuration.Observe(time.Since(began).Seconds())
	o.forUpdate.keep(p.Instances)
	if !p.NeedsRevisions {
		o.data = nil
	} else if read, err := c.readRevisions(ctx, v, o); err != nil {
		return p, err
	} else {
		in.Revisions, in.RevisionsRead = read, true
		p = plan.Compute(in)
	}
	var unread, unreadNodes error
	if len(p.Workloads) > 0 {
		in.Workloads, unread = c.readWorkloads(ctx, v.tapp.Namespace, p.Workloads)
	}
	if len(p.Evidence) == 0 {
		o.nodesBefore = nil
	} else {
		nodes := p.Evidence[:min(len(p.Evidence), c.NodesPerSync)]
		o.nodesAfter = nodes[len(nodes)-1]
		in.Nodes, unreadNodes = c.readNodes(ctx, nodes)
		in.NodesBefore = o.remember(p.Evidence, in.Nodes)
	}
	if in.Workloads == nil && in.Nodes == nil {
		return p, errors.Join(unread, unreadNodes)
	}
	in.Now = c.Clock.Now()
	return plan.Compute(in), errors.Join(unread, unreadNodes)
}

// remember what was read of nodes, as long as evidence about them is asked for, and returns
// what is known from before.
func (o *object) remember(asked []string, read map[string]plan.NodeState) map[string]plan.NodeState {
	known := make(map[string]plan.NodeState, len(asked))
	for _, name := range asked {
		if state, ok := o.nodesBefore[name]; ok {
			known[name] = state
		}
	}
	maps.Copy(known, read)
	o.nodesBefore = known
	return known
}
