package plugin

import (
	"context"
	"fmt"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"tkestack.io/tapp/plan/revision"
)

func newDiff(e *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "diff NAME REVISION [REVISION]",
		Short: "Compare two versions of the templates",
		Long: `Compare two versions of the templates, or one with the present ones. Revisions are given by number or name; see
kubectl tapp history.`,
		Example:           "  kubectl tapp diff web 1 3",
		Args:              between(2, "NAME", "REVISION", "REVISION"),
		RunE:              func(c *cobra.Command, args []string) error { return e.diff(c.Context(), args[0], args[1:]) },
		ValidArgsFunction: e.completeDiff,
	}
}

func (e *environment) diff(ctx context.Context, name string, given []string) error {
	_, t, revisions, err := e.withRevisions(ctx, name)
	if err != nil {
		return err
	}
	labels := []string{"", "spec of " + name}
	versions := []revision.Version{{}, revision.Of(t)}
	for i, revision := range given {
		r, err := find(t, revisions, revision)
		if err != nil {
			return err
		}
		labels[i], versions[i] = fmt.Sprintf("revision %d of %s", r.Revision, name), r.Version
	}
	var texts [2][]byte
	for i := range versions {
		if texts[i], err = yaml.Marshal(versions[i]); err != nil {
			return fmt.Errorf("writing YAML: %w", err)
		}
	}
	_, err = e.streams.Out.Write(colouredDiff(diff.Diff(labels[0], texts[0], labels[1], texts[1]), newPainter(e.streams.Out)))
	return err
}
