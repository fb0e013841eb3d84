package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/crd/client"
	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/rollout"
)

// confirm lets a rollout pass the gate that it waits at.
type confirm struct {
	*writing
	*observing
	stage, rollout, comment string
}

func newConfirm(all *common) *cobra.Command {
	c := &cobra.Command{
		Use:   "confirm APPSET",
		Short: "Let a rollout pass the gate at which it waits",
		Long: `Let a rollout pass the gate at which it waits.

It creates a Confirmation of this very gate: it opens no gate of another rollout, and none of a later stage. Confirming twice
is the same. The right to create confirmations is one of its own, so that others than those who edit AppSets can have it.

With --stage or --rollout it fails unless it is that one which waits. Right after a change of the AppSet it waits until the
controller has seen that: a gate that waited before may not be one any more.`,
		Example: `  kubectl tapp fleet confirm web --comment "error rate is fine"
  kubectl tapp fleet confirm web --stage canary`,
	}
	x := &confirm{writing: newWriting(all, c), observing: newObserving(c)}
	c.Flags().StringVar(&x.stage, "stage", "", "The stage that is confirmed")
	c.Flags().StringVar(&x.rollout, "rollout", "", "The id of the rollout that is confirmed")
	c.Flags().StringVar(&x.comment, "comment", "", "A comment for those who read it later")
	c.RunE = func(c *cobra.Command, args []string) error { return x.run(c.Context(), args[0]) }
	return c
}

func (x *confirm) run(ctx context.Context, name string) error {
	if err := x.validate(); err != nil {
		return err
	}
	hub, err := x.workspace()
	if err != nil {
		return err
	}
	a, err := x.get(ctx, hub, name)
	if err != nil {
		return err
	}
	gate, err := waitingGate(a)
	if err != nil {
		return err
	}
	switch id := a.Status.Rollout.ID; {
	case x.rollout != "" && x.rollout != id:
		return fmt.Errorf("rollout %s does not wait: the present one is %s", x.rollout, id)
	case x.stage != "" && x.stage != gate.Name:
		return fmt.Errorf("stage %s does not wait: stage %s does", x.stage, gate.Name)
	}
	confirmations, err := client.NewConfirmations(hub.config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	in := confirmations.Confirmations(hub.namespace)
	made, err := in.Create(ctx, confirmationOf(a, gate, x.comment), metav1.CreateOptions{FieldManager: manager, DryRun: x.dryRuns()})
	if apierrors.IsAlreadyExists(err) { // by whom and why, it says
		made, err = in.Get(ctx, a.Name+"-"+gate.Token, metav1.GetOptions{})
	}
	if err != nil {
		return err
	}
	made.SetGroupVersionKind(v1beta1.SchemeGroupVersion.WithKind(v1beta1.KindConfirmation))
	done := fmt.Sprintf("confirms stage %s of rollout %s", gate.Name, a.Status.Rollout.ID)
	if made.Spec.ConfirmedBy != "" {
		done += ", by " + made.Spec.ConfirmedBy
	}
	return x.report(made, done)
}

// confirmationOf a gate. Its name is that of the gate, so that there is one at most.
func confirmationOf(a *v1beta1.AppSet, gate *v1beta1.StageStatus, comment string) *v1beta1.Confirmation {
	return &v1beta1.Confirmation{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: a.Name + "-" + gate.Token},
		Spec:       v1beta1.ConfirmationSpec{AppSet: a.Name, Rollout: a.Status.Rollout.ID, Stage: gate.Name, Token: gate.Token, Comment: comment},
	}
}

// waitingGate is the stage after which a gate waits, or an error that says why none does.
func waitingGate(a *v1beta1.AppSet) (*v1beta1.StageStatus, error) {
	r := a.Status.Rollout
	if r != nil {
		for i := range r.Stages {
			if r.Stages[i].Token != "" {
				return &r.Stages[i], nil
			}
		}
	}
	var confirmed []string
	if r != nil {
		for i := range r.Stages {
			if s := &r.Stages[i]; s.ConfirmedBy != "" {
				confirmed = append(confirmed, fmt.Sprintf("stage %s was confirmed by %s", s.Name, s.ConfirmedBy))
			}
		}
	}
	why := fmt.Sprintf("no gate of %s waits: it is %s", a.Name, a.Status.AggrStatus.Status)
	if len(confirmed) > 0 {
		why += "; " + strings.Join(confirmed, ", ")
	}
	if r != nil && r.State != "" && r.State != string(rollout.Done) {
		why += "; to follow it: kubectl tapp fleet status " + a.Name + " --watch"
	}
	return nil, errors.New(why)
}
