package plugin

import (
	"context"
	"fmt"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"tkestack.io/tapp/plan/ids"
	"tkestack.io/tapp/plan/revision"
)

func newDiff(e *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "diff NAME [REVISION [REVISION]]",
		Short: "Compare pods with their templates, or two versions of the templates",
		Long: `Compare the pods with their templates: images, labels and annotations that somebody changed in pods.
With a revision, compare that version of the templates with the present ones, or with another revision. Revisions are given by
number or name; see kubectl tapp history.`,
		Example: `  kubectl tapp diff web
  kubectl tapp diff web 1 3`,
		Args: between(1, "NAME", "REVISION", "REVISION"),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				return e.diffPods(c.Context(), args[0])
			}
			return e.diff(c.Context(), args[0], args[1:])
		},
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

// diffPods prints what somebody changed in pods that follow their templates, and in which.
func (e *environment) diffPods(ctx context.Context, name string) error {
	s, err := e.connect()
	if err != nil {
		return err
	}
	o, err := s.observe(ctx, name)
	if err != nil {
		return err
	}
	var changed ids.Whys
	for n := range o.Plan.Instances {
		i := &o.Plan.Instances[n]
		for _, d := range o.Changed(i) {
			changed.Add(d, i.Num)
		}
	}
	texts := changed.Texts()
	if len(texts) == 0 {
		e.note("The pods of " + name + " that follow their templates have the images, labels and annotations of these.")
	}
	for _, text := range texts {
		if _, err := fmt.Fprintln(e.streams.Out, clean(text)); err != nil {
			return err
		}
	}
	return nil
}
