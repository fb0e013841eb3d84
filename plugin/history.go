package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/view"
)

func newHistory(e *environment) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "history NAME [-o json|yaml]",
		Short: "List the versions of the templates",
		Long: `List the versions of the templates that the controller keeps, the oldest first, with what each one changed. The current one
was rolled out last, the update one is being rolled out.`,
		Example:           "  kubectl tapp history web",
		Args:              exactly("NAME"),
		RunE:              func(c *cobra.Command, args []string) error { return e.history(c.Context(), args[0], output) },
		ValidArgsFunction: e.completeTApps(1),
	}
	c.Flags().StringVarP(&output, "output", "o", "", "Output format: json or yaml")
	e.completeFlag(c, "output", "json", "yaml")
	return c
}

func (e *environment) history(ctx context.Context, name, output string) error {
	if output != "" && output != "json" && output != "yaml" {
		return usageError{fmt.Errorf("--output is %q; give json or yaml", output)}
	}
	_, t, revisions, err := e.withRevisions(ctx, name)
	if err != nil {
		return err
	}
	views, err := view.History(t, revisions)
	if err != nil {
		return err
	}
	if output != "" {
		return write(e.streams.Out, output, map[string]any{"items": views})
	}
	if len(views) == 0 {
		_, err := fmt.Fprintf(e.streams.ErrOut, "%s has no revision yet.\n", name)
		return err
	}
	var grid table
	grid.add("REVISION", "NAME", "AGE", "STATE", "CHANGE")
	for _, v := range views {
		mark := cell{}
		switch {
		case v.Current:
			mark = cell{"current", green}
		case v.Update:
			mark = cell{"update", yellow}
		}
		grid = append(grid, []cell{{text: strconv.FormatInt(v.Revision, 10)}, {text: v.Name}, {text: age(&v.Created, time.Now())}, mark, {text: v.Change}})
	}
	return grid.print(e.streams.Out, newPainter(e.streams.Out))
}

// withRevisions connects, and reads a TApp with its revisions.
func (e *environment) withRevisions(ctx context.Context, name string) (*session, *tappv1.TApp, []view.Stored, error) {
	s, err := e.connect()
	if err != nil {
		return nil, nil, nil, err
	}
	t, err := s.get(ctx, name)
	if err != nil {
		return nil, nil, nil, err
	}
	revisions, err := s.revisions(ctx, t)
	return s, t, revisions, err
}

type undo struct {
	*environment
	*writing
	to string
}

func newUndo(e *environment) *cobra.Command {
	c := &cobra.Command{
		Use:   "undo NAME [--to-revision REVISION]",
		Short: "Go back to an earlier version of the templates",
		Long: `Go back to an earlier version of the templates: spec.template, templatePool, templates and defaultTemplateName become what
they were. Instances go back as they came, in place or recreated, within the budget. Replicas, killed instances and the update
strategy stay as they are, but for an updateStrategy.template that the earlier version does not have: it is removed.`,
		Example: `  # To the version before the present one
  kubectl tapp undo web

  # What would going back to revision 2 do?
  kubectl tapp plan web --to-revision 2
  kubectl tapp undo web --to-revision 2`,
		Args:              exactly("NAME"),
		ValidArgsFunction: e.completeTApps(1),
	}
	u := &undo{environment: e, writing: newPlanned(e, c)}
	u.adopt = fieldsOfRevisions()
	c.Flags().StringVar(&u.to, "to-revision", "", "Number or name of the revision; the one before the present one if it is not given")
	e.completeRevisions(c)
	c.RunE = func(c *cobra.Command, args []string) error { return u.run(c.Context(), args[0]) }
	return c
}

func (u *undo) run(ctx context.Context, name string) error {
	if err := u.validate(); err != nil {
		return err
	}
	s, t, revisions, err := u.withRevisions(ctx, name)
	if err != nil {
		return err
	}
	target, err := target(t, revisions, u.to)
	if err != nil {
		return err
	}
	if target.Name == t.Status.UpdateRevision && t.Status.ObservedGeneration == t.Generation {
		return u.report(t, fmt.Sprintf("not changed: it is at revision %d", target.Revision))
	}
	if err := verify(target); err != nil {
		return err
	}
	patch, err := rollback(t, target)
	if err != nil {
		return err
	}
	after, err := u.patch(ctx, s, t, types.JSONPatchType, patch)
	if apierrors.IsInvalid(err) {
		// The server does not say which operation failed.
		if now, e := s.get(ctx, name); e == nil && (now.Generation != t.Generation || now.UID != t.UID) {
			return fmt.Errorf("%s was changed by somebody else at the same time; look at it, and repeat the command", name)
		}
	}
	if err != nil {
		return err
	}
	if u.plan {
		return u.tell(ctx, s, t, after)
	}
	done := fmt.Sprintf("rolled back to revision %d", target.Revision)
	if lacksRolling(t, target) {
		done += fmt.Sprintf(", which has no template %q: spec.updateStrategy.template is the default one again", t.Spec.UpdateStrategy.Template)
	}
	return u.report(after, done)
}

// target of a rollback: the revision that is asked for, or the one before the
// present one.
func target(t *tappv1.TApp, revisions []view.Stored, to string) (*view.Stored, error) {
	if to != "" && to != "0" { // 0 is the last one, as in kubectl rollout undo
		return find(t, revisions, to)
	}
	if t.Status.ObservedGeneration != t.Generation {
		return nil, fmt.Errorf("the controller has not seen generation %d of %s yet, so that the version before it cannot be told; give --to-revision", t.Generation, t.Name)
	}
	for i := len(revisions) - 1; i > 0; i-- {
		if revisions[i].Name == t.Status.UpdateRevision {
			return &revisions[i-1], nil
		}
	}
	return nil, fmt.Errorf("%s has no earlier revision", t.Name)
}

// fieldsOfRevisions are what a revision has of the spec.
func fieldsOfRevisions() []string {
	return []string{"template", "templatePool", "templates", "defaultTemplateName"}
}

// rollback returns a JSON patch that replaces the templates by those of the revision. It
// takes them as stored, with fields that this program does not know. A rolling template
// that the revision does not have would be refused, and is taken back to the default one.
// It fails if the generation changed since.
func rollback(t *tappv1.TApp, to *view.Stored) ([]byte, error) {
	var data struct {
		Spec map[string]json.RawMessage `json:"spec"`
	}
	if err := json.Unmarshal(to.Data.Raw, &data); err != nil {
		return nil, fmt.Errorf("revision %s cannot be read: %w", to.Name, err)
	}
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value,omitempty"`
	}
	patch := []operation{{"test", "/metadata/uid", t.UID}, {"test", "/metadata/generation", t.Generation}}
	for _, field := range fieldsOfRevisions() {
		path := "/spec/" + field
		if field == "defaultTemplateName" && to.Version.DefaultTemplateName == defaultTemplate(t) {
			continue // a revision has the name with its default, which the spec need not have
		}
		if value, ok := data.Spec[field]; ok {
			patch = append(patch, operation{"add", path, value})
			continue
		}
		// A removal fails if the field is absent, so it is added first.
		patch = append(patch, operation{"add", path, json.RawMessage(emptyOf(field))}, operation{Op: "remove", Path: path})
	}
	if lacksRolling(t, to) {
		patch = append(patch, operation{Op: "remove", Path: "/spec/updateStrategy/template"})
	}
	out, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("writing a patch: %w", err)
	}
	return out, nil
}

// lacksRolling says whether spec.updateStrategy.template names a template that the revision
// does not have.
func lacksRolling(t *tappv1.TApp, to *view.Stored) bool {
	name, templates := t.Spec.UpdateStrategy.Template, tappv1.TAppSpec{TemplatePool: to.Version.TemplatePool}
	return name != "" && templates.FindTemplate(name) == nil
}

func emptyOf(field string) string {
	if strings.HasPrefix(field, "template") {
		return "{}"
	}
	return `""`
}
