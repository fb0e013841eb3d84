package plugin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/ids"
	plan "tkestack.io/tapp/plan/tapp"
	"tkestack.io/tapp/plugin/timeout"
)

// reasonInstancesFailed is the reason of the condition Ready of a TApp with nothing left
// to do, some of whose instances failed.
const reasonInstancesFailed = "InstancesFailed"

func newStatus(e *environment) *cobra.Command {
	var watch bool
	var most time.Duration
	c := &cobra.Command{
		Use:   "status NAME [-w]",
		Short: "Show how far a rollout is and what blocks it",
		Long: `Show how far a rollout is and what blocks it.

With --watch it follows the rollout to its end. The exit code is 0 when all instances run what the spec wants, and 1 when the
rollout cannot go on (the condition Stalled), instances failed, or the time is up. A node that is lost ends it only when nothing
moved for progressDeadlineSeconds. Without --watch a rollout under way is no failure.`,
		Example: `  kubectl tapp status web
  kubectl tapp status web --watch --timeout 5m`,
		Args: exactly("NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			ctx, cancel := timeout.Context(c.Context(), most)
			defer cancel()
			return e.status(ctx, args[0], watch)
		},
		ValidArgsFunction: e.completeTApps(1),
	}
	c.Flags().BoolVarP(&watch, "watch", "w", false, "Follow the rollout to its end")
	c.Flags().DurationVar(&most, "timeout", 0, "How long to follow it; 0 is for ever")
	return c
}

func (e *environment) status(ctx context.Context, name string, watch bool) error {
	s, err := e.connect()
	if err != nil {
		return err
	}
	screen := newScreen(e.streams.Out, watch)
	if !watch {
		o, err := s.observe(ctx, name)
		if err != nil {
			return err
		}
		e.note(o.unreadNote(o.Plan.Instances))
		screen.show(frame(o, screen.painter))
		_, err = o.outcome()
		return err
	}
	var last *observed
	t, err := s.get(ctx, name)
	if err == nil {
		err = s.follow(ctx, t, func(o *observed) (bool, error) {
			last = o
			if screen.live {
				screen.show(frame(o, screen.painter))
			} else {
				screen.show([]string{o.summary()})
			}
			return o.outcome()
		})
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded) && last == nil:
		return errors.New("the time was up before anything was seen of " + name)
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("the time is up: " + last.summary())
	case err != nil:
		return err
	}
	_, err = fmt.Fprintf(e.streams.Out, "tapp %q successfully rolled out\n", name)
	return err
}

// outcome says whether the rollout of the TApp's present generation is over, and
// whether it cannot go on.
func (o *observed) outcome() (bool, error) {
	if o.unobserved() {
		return false, nil
	}
	ready := o.condition(tappv1.ConditionReady)
	stalled, progressing := o.condition(tappv1.ConditionStalled), o.condition(tappv1.ConditionProgressing)
	// A lost node may come back, and the other instances go on: its rollout is over by time.
	goesOn := stalled != nil && stalled.Reason == plan.ReasonNodeLost && progressing != nil && progressing.Status == metav1.ConditionTrue
	if stalled != nil && stalled.Status == metav1.ConditionTrue && !goesOn {
		return false, fmt.Errorf("the rollout of %s is stalled (%s): %s", o.TApp.Name, stalled.Reason, stalled.Message)
	}
	if ready != nil && ready.Reason == reasonInstancesFailed {
		return false, fmt.Errorf("the rollout of %s is over: %s", o.TApp.Name, ready.Message)
	}
	// The stored condition may be older than the pods: a restart does not change the
	// generation. So the plan must say the same.
	return ready != nil && ready.Status == metav1.ConditionTrue &&
		meta.IsStatusConditionTrue(o.Plan.Status.Conditions, tappv1.ConditionReady), nil
}

// unobserved: the controller has not planned by the present spec yet.
func (o *observed) unobserved() bool { return o.TApp.Status.ObservedGeneration < o.TApp.Generation }

// condition about the present generation, or nil.
func (o *observed) condition(kind string) *metav1.Condition {
	c := meta.FindStatusCondition(o.TApp.Status.Conditions, kind)
	if c == nil || c.ObservedGeneration < o.TApp.Generation {
		return nil
	}
	return c
}

// refused is what the API server refuses the controller, in its words; empty: nothing.
func (o *observed) refused() string { return clean(o.Refused()) }

// progress of a rollout, in numbers of instances.
type progress struct {
	desired     int
	done        int // desired, available and updated
	available   int
	unavailable int // desired, and not available
	surplus     int // pods of instances that are not desired
	blocks      []block
}

// block is a reason why instances are not where the spec wants them, or what is done next.
type block struct {
	ids    []int
	reason string
	why    string
}

func (o *observed) progress() progress {
	p := progress{desired: o.Plan.Desired}
	at := map[[2]string]int{}
	for k := range o.Plan.Instances {
		i := &o.Plan.Instances[k]
		restarts := i.Pod != nil && i.Pod.Annotations[tappv1.AnnotationRestart] != ""
		switch {
		case !i.Desired && i.Pod != nil && !isCompleted(i):
			p.surplus++
		case !i.Desired:
		case i.Available && i.Current && !restarts:
			p.done++
		case !i.Available:
			p.unavailable++
		}
		if i.Available {
			p.available++
		}
		reason, why := i.Reason, i.Why
		if next := o.Actions(i.ID); reason == "" && len(next) > 0 {
			reason, why = string(next[0].Op), next[0].Why
		}
		if reason == "" {
			continue
		}
		key := [2]string{reason, why}
		n, known := at[key]
		if !known {
			n = len(p.blocks)
			at[key] = n
			p.blocks = append(p.blocks, block{reason: reason, why: why})
		}
		p.blocks[n].ids = append(p.blocks[n].ids, i.Num)
	}
	return p
}

// summary of the progress in one line, for logs.
func (o *observed) summary() string {
	if o.unobserved() {
		return fmt.Sprintf("%s: the controller has not seen generation %d yet", o.TApp.Name, o.TApp.Generation)
	}
	p := o.progress()
	parts := []string{fmt.Sprintf("%s: %d of %d instances are done, %d are available", o.TApp.Name, p.done, p.desired, p.available)}
	if p.surplus > 0 {
		parts = append(parts, fmt.Sprintf("pods that are to go: %d", p.surplus))
	}
	if refused := o.refused(); refused != "" {
		parts = append(parts, refused)
	}
	for _, b := range p.blocks {
		parts = append(parts, fmt.Sprintf("%s (%s): %s", ids.Instances(b.ids), b.reason, b.why))
	}
	return strings.Join(parts, "; ")
}
