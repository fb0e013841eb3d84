package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/rollout"
	"tkestack.io/tapp/plugin/timeout"
)

// Screen shows frames of lines, one in the place of the other where it can.
type Screen interface{ Show(lines []string) }

func newStatus(all *common) *cobra.Command {
	watch, most := false, time.Duration(0)
	c := &cobra.Command{
		Use:   "status APPSET [-w]",
		Short: "Show the stages of a rollout, its budget, and what holds it",
		Long: `Show the stages of a rollout, its budget, and what holds it.

With --watch it follows the rollout to its end. The exit code is 0 when all instances in all clusters run what the spec wants,
and 1 when the rollout halted or cannot go on (the condition Stalled), or the time is up. At a gate it waits, and for a node that
is lost until the rollout halts. Without --watch a rollout under way is no failure.`,
		Example: `  kubectl tapp fleet status web
  kubectl tapp fleet status web --watch --timeout 30m`,
		Args:              all.named,
		ValidArgsFunction: all.completeAppSets,
		RunE: func(c *cobra.Command, args []string) error {
			w, err := all.workspace()
			if err != nil {
				return err
			}
			if !watch {
				a, err := w.get(c.Context(), args[0])
				if err != nil {
					return err
				}
				all.screen(false).Show(frame(a))
				_, err = outcome(a)
				return err
			}
			ctx, cancel := timeout.Context(c.Context(), most)
			defer cancel()
			return w.follow(ctx, args[0])
		},
	}
	c.Flags().BoolVarP(&watch, "watch", "w", false, "Follow the rollout to its end")
	c.Flags().DurationVar(&most, "timeout", 0, "How long to follow it; 0 is for ever")
	return c
}

// screen of the output; moving: a frame takes the place of the one before, where there is
// a terminal.
func (c *common) screen(moving bool) Screen { return c.Screen(moving) }

// follow the rollout of an AppSet to its end.
func (w *workspace) follow(ctx context.Context, name string) error {
	a, err := w.get(ctx, name)
	if err != nil {
		return err
	}
	uid := a.UID
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = selector
			return w.appSets.AppSets(w.namespace).List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = selector
			return w.appSets.AppSets(w.namespace).Watch(ctx, o)
		},
	}
	screen := w.screen(true)
	_, err = watchtools.UntilWithSync(ctx, source, &v1beta1.AppSet{}, nil, func(e watch.Event) (bool, error) {
		now, ok := e.Object.(*v1beta1.AppSet)
		if !ok {
			return false, nil
		}
		if e.Type == watch.Deleted || now.UID != uid {
			return false, fmt.Errorf("AppSet %s was deleted", name)
		}
		a = now
		screen.Show(frame(a))
		return outcome(a)
	})
	switch {
	case err != nil && ctx.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("the time is up: %s", summary(a))
	case err != nil:
		return err
	}
	w.say("AppSet %q successfully rolled out", name)
	return nil
}

// outcome says whether the rollout of the present spec is over, and whether it cannot go
// on.
func outcome(a *v1beta1.AppSet) (bool, error) {
	if isUnobserved(a) {
		return false, nil
	}
	stalled := condition(a, v1beta1.ConditionStalled)
	switch phase := a.Status.AggrStatus.Status; {
	case phase == v1beta1.PhaseHalted, phase == v1beta1.PhaseRolledBack:
		why := string(phase)
		if isTrue(stalled) {
			why += ": " + stalled.Message
		}
		return false, fmt.Errorf("the rollout of %s failed: %s. To go back: kubectl tapp fleet undo %s; to try again: kubectl tapp fleet retry %s", a.Name, why, a.Name, a.Name)
	case isTrue(stalled) && stalled.Reason == v1beta1.ReasonNodeLost && a.Status.Rollout != nil && a.Status.Rollout.State != string(rollout.Done):
		return false, nil // the rollout halts by itself when nothing moves for too long
	case isTrue(stalled):
		return false, fmt.Errorf("the rollout of %s is stalled (%s): %s", a.Name, stalled.Reason, stalled.Message)
	}
	return isTrue(condition(a, v1beta1.ConditionReady)), nil
}

// summary in one line.
func summary(a *v1beta1.AppSet) string {
	sums := &a.Status.AggrStatus
	if isUnobserved(a) {
		return fmt.Sprintf("the controller has not seen generation %d of %s yet", a.Generation, a.Name)
	}
	out := fmt.Sprintf("%s is %s, %d of %d instances are available", a.Name, sums.Status, sums.Available, sums.Desired)
	if r := a.Status.Rollout; r != nil && r.Stage != "" {
		out += ", in stage " + r.Stage
	}
	return out
}

// barWidth of stages, in characters.
const barWidth = 20

// frame shows the rollout of an AppSet.
func frame(a *v1beta1.AppSet) []string {
	sums, r := &a.Status.AggrStatus, a.Status.Rollout
	if isUnobserved(a) {
		return []string{summary(a)}
	}
	head := fmt.Sprintf("%s  %s  %s", a.Name, sums.Status, cmp.Or(sums.Version, "-"))
	if r != nil && r.ID != "" {
		head += "  rollout " + r.ID
	}
	out := []string{head}
	if r != nil {
		for i := range r.Stages {
			out = append(out, stageLine(a, &r.Stages[i]))
		}
	}
	if r != nil && r.Message != "" {
		out = append(out, "waits: "+r.Message)
	}
	out = append(out, fmt.Sprintf("instances: %d of %d available", sums.Available, sums.Desired)+unknown(sums), budgetLine(a))
	units, _ := unitsOf(a)
	done := 0
	for i := range units {
		if units[i].Why == "" {
			done++
		}
	}
	out = append(out, fmt.Sprintf("podSets: %d of %d as the spec says", done, len(units)))
	const most = 12
	told := 0
	for i := range units {
		if units[i].Why == "" {
			continue
		}
		if told == most {
			out = append(out, fmt.Sprintf("  ... %d more: kubectl tapp fleet get %s", len(units)-done-most, a.Name))
			break
		}
		told++
		out = append(out, "  "+units[i].name()+": "+units[i].Why)
	}
	return out
}

func unknown(sums *v1beta1.AppSetAggregate) string {
	if sums.Unknown == 0 {
		return ""
	}
	return fmt.Sprintf(", nothing is known of %d", sums.Unknown)
}

func stageLine(a *v1beta1.AppSet, s *v1beta1.StageStatus) string {
	done := barWidth
	if s.PodSets > 0 {
		done = int(s.Done) * barWidth / int(s.PodSets)
	}
	line := fmt.Sprintf("[%s%s] %s  %s  %d of %d podSets done", strings.Repeat("#", done), strings.Repeat(".", barWidth-done), s.Name, cmp.Or(s.State, "-"), s.Done, s.PodSets)
	if s.Failed > 0 {
		line += fmt.Sprintf(", %d failed", s.Failed)
	}
	switch {
	case s.Token != "":
		line += ", waits for a confirmation: kubectl tapp fleet confirm " + a.Name + " --stage " + s.Name
	case s.ConfirmedBy != "":
		line += ", confirmed by " + s.ConfirmedBy
	}
	return line
}

// budgetLine tells how much of the fleet's budget is in use: every desired instance that is
// not known to be available, as the budget itself counts.
func budgetLine(a *v1beta1.AppSet) string {
	sums, limit := &a.Status.AggrStatus, a.Spec.UpdateStrategy.MaxUnavailable
	if limit == nil {
		return "budget: each object's own, in each cluster"
	}
	most, err := intstr.GetScaledValueFromIntOrPercent(limit, int(sums.Desired), true)
	if err != nil {
		return "budget: " + limit.String() + " is none"
	}
	if r := a.Status.Rollout; r != nil && r.Budget != nil {
		return fmt.Sprintf("budget: %d of %d instances in use, %d unavailable", r.Charged, *r.Budget, sums.UnAvailable)
	}
	granted := int32(0)
	for i := range sums.Clusters {
		for k := range sums.Clusters[i].PodSets {
			if b := sums.Clusters[i].PodSets[k].Budget; b != nil {
				granted += *b
			}
		}
	}
	return fmt.Sprintf("budget: %d instances, %d of them unavailable, %d granted to podSets", most, sums.UnAvailable, granted)
}
