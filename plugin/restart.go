package plugin

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/ids"
)

type restart struct {
	*environment
	*writing
	*waiting
	*selection
	letGo
}

func newRestart(e *environment) *cobra.Command {
	c := &cobra.Command{
		Use:   "restart NAME [IDS]",
		Short: "Restart instances, within the budget",
		Long: `Restart instances: each gets another pod, with the same name and claims. The request is written to the pods, and the
controller follows it as it would follow a new template: instances of the rolling template within spec.updateStrategy.maxUnavailable,
all others within forceUpdate.maxUnavailable. An instance that does not serve does not wait.

Without IDS all instances restart that have a pod, as kubectl rollout restart does it, which does not know TApps.

The pod of an instance whose claim is being deleted stays, since the claim and its data go with it (ClaimTerminating). With --now
it does not: the claim may go, also where the pod ended, or is to go because of a scale-down.`,
		Example: `  # All instances that have a pod
  kubectl tapp restart web --wait

  # Some of them
  kubectl tapp restart web 0-3,7 --wait

  # One whose claim is being deleted: the claim goes, and a new one is made
  kubectl tapp restart web 3 --now`,
		Args:              atLeastName,
		ValidArgsFunction: e.completeInstances,
	}
	r := &restart{environment: e, writing: newPlanned(e, c), waiting: newWaiting(c), selection: newSelection(c)}
	r.flag(c)
	c.RunE = func(c *cobra.Command, args []string) error { return r.run(c.Context(), args[0], args[1:]) }
	return c
}

func (r *restart) run(ctx context.Context, name string, args []string) error {
	if err := r.writing.validate(); err != nil {
		return err
	}
	if err := r.letGo.validate(r.all, args); err != nil {
		return err
	}
	s, err := r.connect()
	if err != nil {
		return err
	}
	o, err := s.observe(ctx, name)
	if err != nil {
		return err
	}
	ids, pods, err := r.chosen(o, args)
	if err != nil {
		return err
	}
	if r.plan {
		for n, pod := range pods {
			if pods[n], err = r.request(ctx, s, o, ids[n], pod); err != nil {
				return err
			}
		}
		return r.tellPods(ctx, s, o.TApp, pods)
	}
	before := map[int]types.UID{}
	for n, pod := range pods {
		before[ids[n]] = pod.UID
		after, err := r.request(ctx, s, o, ids[n], pod)
		if err != nil {
			return err
		}
		if err := r.report(after, "restart requested"); err != nil {
			return err
		}
	}
	if !r.wait || r.dryRun != dryRunNone {
		return nil
	}
	return r.until(ctx, s, o.TApp, ids, func(o *observed, id int) (string, error) {
		if i := o.Instance(id); i != nil && i.Pod != nil && i.Pod.UID == before[id] {
			return o.whyNot(i), nil
		}
		return missingAvailable(o, id)
	})
}

// chosen are the instances that restart, and their pods. All are checked before the first
// one is restarted. Where none is named, those are left out that have no pod to restart.
func (r *restart) chosen(o *observed, args []string) (chosen []int, pods []*corev1.Pod, err error) {
	named := r.all || len(args) > 0
	args, leaving := r.split(o, args)
	all := ids.Of(&o.TApp.Spec).All()
	if named && len(leaving) > 0 && len(args) == 0 {
		all = nil
	} else if named {
		if all, err = r.ids(o.TApp, args); err != nil {
			return nil, nil, err
		}
	}
	all = append(all, leaving...)
	if o.TApp.Spec.Paused {
		return nil, nil, fmt.Errorf("%s is paused, so that nothing would restart; resume it first", o.TApp.Name)
	}
	var left []int
	for _, id := range all {
		pod, err := r.restartable(o, id)
		switch {
		case err == nil:
			chosen, pods = append(chosen, id), append(pods, pod)
		case named:
			return nil, nil, err
		default:
			left = append(left, id)
		}
	}
	if !named && len(chosen) == 0 {
		return nil, nil, fmt.Errorf("%s has no instance with a pod to restart", o.TApp.Name)
	}
	if len(left) > 0 {
		r.note("Left out, without a pod to restart: " + ids.Instances(left))
	}
	return chosen, pods, nil
}

// restartable returns the pod of an instance that can restart; with --now also one that stays
// for nothing but its claims.
func (r *restart) restartable(o *observed, id int) (*corev1.Pod, error) {
	pod, err := o.restartable(id)
	if i := o.Instance(id); err != nil && r.now && len(o.terminating(id)) > 0 && i.Pod.DeletionTimestamp == nil {
		return i.Pod, nil
	}
	return pod, err
}

// restartable returns the pod of an instance that can restart.
func (o *observed) restartable(id int) (*corev1.Pod, error) {
	i := o.Instance(id)
	switch {
	case i == nil || i.Pod == nil || !metav1.IsControlledBy(i.Pod, o.TApp):
		state := tappv1.InstanceNotCreated
		if i != nil {
			state = i.Status
		}
		return nil, fmt.Errorf("instance %d has no pod to restart: it is %s", id, state)
	case i.Pod.DeletionTimestamp != nil:
		return nil, fmt.Errorf("instance %d has no pod to restart: its pod is being deleted already", id)
	case i.Pod.Status.Phase == corev1.PodFailed || i.Pod.Status.Phase == corev1.PodSucceeded:
		return nil, fmt.Errorf("instance %d has no pod to restart: it ended (%s)", id, i.Status)
	}
	return i.Pod, nil
}

// request asks the controller to replace the pod.
func (r *restart) request(ctx context.Context, s *session, o *observed, id int, pod *corev1.Pod) (*corev1.Pod, error) {
	annotations := r.annotations(o, id)
	annotations[tappv1.AnnotationRestart] = time.Now().UTC().Format(time.RFC3339)
	return annotate(ctx, r.writing, s, pod, annotations)
}
