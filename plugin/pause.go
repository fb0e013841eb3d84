package plugin

import (
	"context"

	"github.com/spf13/cobra"
)

func newPause(e *environment) *cobra.Command {
	c := &cobra.Command{
		Use:   "pause NAME",
		Short: "Let no update start",
		Long:  `Let no update start. Updates under way finish, and creating, killing and scaling go on.`,
	}
	return newSwitch(e, c, true, "paused")
}

func newResume(e *environment) *cobra.Command {
	c := &cobra.Command{Use: "resume NAME", Short: "Let updates start again"}
	return newSwitch(e, c, nil, "resumed")
}

// newSwitch makes a command that sets spec.paused.
func newSwitch(e *environment, c *cobra.Command, value any, done string) *cobra.Command {
	w := newPlanned(e, c)
	c.Args = exactly("NAME")
	c.ValidArgsFunction = e.completeTApps(1)
	c.RunE = func(c *cobra.Command, args []string) error { return w.pause(c.Context(), args[0], value, done) }
	return c
}

func (w *writing) pause(ctx context.Context, name string, value any, done string) error {
	if err := w.validate(); err != nil {
		return err
	}
	s, err := w.connect()
	if err != nil {
		return err
	}
	t, err := s.get(ctx, name)
	if err != nil {
		return err
	}
	after, err := w.mergeSpec(ctx, s, t, map[string]any{"paused": value})
	if err != nil {
		return err
	}
	if w.plan {
		return w.tell(ctx, s, t, after)
	}
	return w.report(after, done)
}
