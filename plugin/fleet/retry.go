package fleet

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/release"
)

func newRetry(all *common) *cobra.Command {
	c := &cobra.Command{
		Use:   "retry APPSET",
		Short: "Try a rollout again that halted, and releases whose hooks failed",
		Long: `Try a rollout again that halted, or that was rolled back. Its stages and gates are those with which it began, and what failed gets
its time anew. A Helm release whose hook failed gets a new revision, whose hooks run anew, also where the rollout did not halt, as in
an installation. Right after a change of the AppSet it waits until the controller has seen that. It sets the annotation ` + v1beta1.AnnotationRetry + `.`,
	}
	w, o := newWriting(all, c), newObserving(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := w.validate(); err != nil {
			return err
		}
		hub, err := w.workspace()
		if err != nil {
			return err
		}
		a, err := o.get(c.Context(), hub, args[0])
		if err != nil {
			return err
		}
		again, err := retryOf(a)
		if err != nil {
			return err
		}
		after, err := w.patch(c.Context(), hub, a, map[string]any{"metadata": map[string]any{"annotations": map[string]any{v1beta1.AnnotationRetry: again}}})
		if err != nil {
			return err
		}
		return w.report(after, "tries rollout "+a.Status.Rollout.ID+" again")
	}
	return c
}

// retryOf is what asks for another try of the rollout that halted.
func retryOf(a *v1beta1.AppSet) (string, error) {
	phase := a.Status.AggrStatus.Status
	switch {
	case a.Status.Rollout == nil || a.Status.Rollout.ID == "" || phase != v1beta1.PhaseHalted && phase != v1beta1.PhaseRolledBack && phase != v1beta1.PhaseRollingBack && !hasFailedHook(a):
		return "", fmt.Errorf("no rollout of %s halted: it is %s", a.Name, phase)
	}
	id, times, _ := strings.Cut(a.Annotations[v1beta1.AnnotationRetry], "/")
	if id != a.Status.Rollout.ID {
		return a.Status.Rollout.ID, nil
	}
	n, err := strconv.Atoi(times)
	if err != nil || n < 1 {
		n = 1
	}
	return id + "/" + strconv.Itoa(n+1), nil
}

// hasFailedHook says whether a release waits for another try.
func hasFailedHook(a *v1beta1.AppSet) bool {
	for i := range a.Status.AggrStatus.Clusters {
		for _, p := range a.Status.AggrStatus.Clusters[i].PodSets {
			if p.Reason == release.ReasonHookFailed {
				return true
			}
		}
	}
	return false
}
