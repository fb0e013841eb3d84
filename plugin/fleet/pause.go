package fleet

import "github.com/spf13/cobra"

func newPause(all *common) *cobra.Command {
	return newSwitch(all, &cobra.Command{
		Use:   "pause APPSET",
		Short: "Let no change of pods start in any cluster",
		Long: `Let no change of pods start in any cluster. Scaling, creating and repair go on, and so does the update of an instance that has
begun. It sets spec.updateStrategy.paused.`,
	}, true, "paused")
}

func newResume(all *common) *cobra.Command {
	return newSwitch(all, &cobra.Command{Use: "resume APPSET", Short: "Let a paused rollout go on"}, nil, "resumed")
}

func newSwitch(all *common, c *cobra.Command, value any, done string) *cobra.Command {
	w := newWriting(all, c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := w.validate(); err != nil {
			return err
		}
		hub, err := w.workspace()
		if err != nil {
			return err
		}
		a, err := hub.get(c.Context(), args[0])
		if err != nil {
			return err
		}
		after, err := w.patch(c.Context(), hub, a, map[string]any{"spec": map[string]any{"updateStrategy": map[string]any{"paused": value}}})
		if err != nil {
			return err
		}
		return w.report(after, done)
	}
	return c
}
