package plugin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/ids"
	"tkestack.io/tapp/plan/view"
)

// exitChanges is the exit code of `plan` if something would change.
const exitChanges = exitCode(2)

// preview is one, with notes on what it assumes.
type preview struct {
	*view.Preview
	notes []string
}

// newPreview tells what happens to the observed TApp. before is the stored one; nil if
// there is none.
func newPreview(o *observed, before *tappv1.TApp) (*preview, error) {
	v, err := view.NewPreview(o.Observed, before)
	return &preview{v, []string{o.policyNote(o.Plan.Instances), o.unreadNote(o.Plan.Instances)}}, err
}

type planning struct {
	*environment
	files      []string
	serverSide bool
	revision   string
	output     string
	// patched are pods as a dry run made them.
	patched []*corev1.Pod
}

func newPlan(e *environment) *cobra.Command {
	p := &planning{environment: e}
	c := &cobra.Command{
		Use:   "plan (-f FILE | NAME [--to-revision REVISION])",
		Short: "Tell what applying a manifest would do, in order, and why",
		Long: `Tell what applying a manifest would do, in order, and why. With a name instead of a file it tells what is left to do, or
with --to-revision what kubectl tapp undo would do.

The server is asked what would become of the TApp (a dry run, with its defaults and admission), and the controller's own planner
what it would do about it. Nothing is changed.

The order is that of the controller: what takes no instance away comes at once, then instances whose template is not the rolling
one go by force, then the others roll, each in the order of their ids. How long the steps take is not told.

The exit code is 0 if nothing would change, 2 if something would, and 1 if that cannot be told.`,
		Example: `  kubectl tapp plan -f new.yaml
  kubectl tapp plan web
  kubectl tapp plan web --to-revision 2`,
		Args:              between(0, "NAME"),
		RunE:              func(c *cobra.Command, args []string) error { return p.run(c.Context(), args) },
		ValidArgsFunction: e.completeTApps(1),
	}
	c.Flags().StringArrayVarP(&p.files, "filename", "f", nil, "File or directory with the manifest; - is the standard input")
	c.Flags().BoolVar(&p.serverSide, "server-side", false, "As kubectl apply --server-side would")
	c.Flags().StringVar(&p.revision, "to-revision", "", "Number or name of a revision to go back to")
	e.completeRevisions(c)
	c.Flags().StringVarP(&p.output, "output", "o", "", "Output format: json or yaml")
	e.completeFlag(c, "output", "json", "yaml")
	return c
}

func (p *planning) run(ctx context.Context, args []string) error {
	switch {
	case p.output != "" && p.output != "json" && p.output != "yaml":
		return usageError{fmt.Errorf("--output is %q; give json or yaml", p.output)}
	case len(args) == 0 && len(p.files) == 0:
		return usageError{errors.New("give a manifest by -f, or the NAME of a TApp")}
	case len(args) > 0 && len(p.files) > 0:
		return usageError{errors.New("give a manifest or a NAME, not both")}
	case p.revision != "" && len(args) == 0:
		return usageError{errors.New("--to-revision is about a TApp; give its NAME")}
	}
	s, err := p.connect()
	if err != nil {
		return err
	}
	previews, err := p.previews(ctx, s, args)
	if err != nil {
		return err
	}
	p.tellNotes(previews)
	if p.output != "" {
		err = write(p.streams.Out, p.output, map[string]any{"items": previews})
	} else {
		err = p.print(previews)
	}
	for _, v := range previews {
		if err == nil && v.ChangesSomething() {
			err = exitChanges
		}
	}
	return err
}

func (p *planning) previews(ctx context.Context, s *session, args []string) ([]*preview, error) {
	if p.revision != "" {
		v, err := p.previewUndo(ctx, s, args[0])
		return []*preview{v}, err
	}
	if len(args) > 0 {
		o, err := s.observe(ctx, args[0])
		if err != nil {
			return nil, err
		}
		v, err := newPreview(o, o.TApp)
		return []*preview{v}, err
	}
	manifests, err := p.manifests(s, p.files)
	if err != nil {
		return nil, err
	}
	var out []*preview
	for _, u := range manifests {
		a, err := s.apply(ctx, u, p.serverSide)
		if err != nil {
			return nil, refused(u.GetName(), err)
		}
		v, err := p.previewApplied(ctx, s, a)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// tellNotes prints each note once, whatever previews have it.
func (p *planning) tellNotes(previews []*preview) {
	told := map[string]bool{}
	for _, v := range previews {
		for _, note := range v.notes {
			if !told[note] {
				told[note] = true
				p.note(note)
			}
		}
	}
}

func (p *planning) previewApplied(ctx context.Context, s *session, a *applied) (*preview, error) {
	pods, err := s.pods(ctx, a.after.Namespace)
	if err != nil {
		return nil, err
	}
	replace(pods, p.patched)
	after := a.after
	if a.before == nil {
		after = withoutUID(after)
	}
	o, err := s.compute(ctx, after, pods)
	if err != nil {
		return nil, err
	}
	return newPreview(o, a.before)
}

// previewUndo asks the server what a rollback would make of a TApp.
func (p *planning) previewUndo(ctx context.Context, s *session, name string) (*preview, error) {
	t, err := s.get(ctx, name)
	if err != nil {
		return nil, err
	}
	revisions, err := s.revisions(ctx, t)
	if err != nil {
		return nil, err
	}
	to, err := target(t, revisions, p.revision)
	if err != nil {
		return nil, err
	}
	patch, err := rollback(t, to)
	if err != nil {
		return nil, err
	}
	w := &writing{environment: p.environment, dryRun: dryRunServer, manager: program, adopt: fieldsOfRevisions()}
	after, err := w.patch(ctx, s, t, types.JSONPatchType, patch)
	if err != nil {
		return nil, refused(name, err)
	}
	return p.previewApplied(ctx, s, &applied{before: t, after: after})
}

// withoutUID drops the UID that a dry run made up: no pod can be owned by it.
func withoutUID(t *tappv1.TApp) *tappv1.TApp {
	out := t.DeepCopy()
	out.UID = ""
	return out
}

func refused(name string, err error) error {
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) {
		return fmt.Errorf("the server would not accept %s: %w", name, err)
	}
	return err
}

func (p *planning) print(previews []*preview) error {
	paint := newPainter(p.streams.Out)
	var b strings.Builder
	for i, v := range previews {
		if i > 0 {
			b.WriteByte('\n')
		}
		v.print(&b, paint)
	}
	_, err := fmt.Fprint(p.streams.Out, b.String())
	return err
}

func (v *preview) print(b *strings.Builder, p painter) {
	fmt.Fprintf(b, "%s", p.paint(bold, "tapp.apps.tkestack.io/"+v.Name))
	switch {
	case !v.ChangesSomething() && len(v.Steps) == 0:
		b.WriteString(": nothing would change\n")
	case v.Created:
		b.WriteString(" would be created\n")
	case len(v.Changes) == 0:
		b.WriteString(": the spec stays as it is, and this is left to do\n")
	default:
		b.WriteString(" would change\n")
		for _, c := range v.Changes {
			fmt.Fprintf(b, "  %s\n", p.paint(yellow, c.Short()))
		}
	}
	if len(v.Steps) > 0 {
		b.WriteString("\nIn this order:\n")
	}
	for i := range v.Steps {
		fmt.Fprintf(b, "  %d. %s\n", i+1, clean(v.Steps[i].Sentence()))
	}
	for _, note := range v.Notes {
		fmt.Fprintf(b, "  %s\n", p.paint(yellow, clean("Note: "+note)))
	}
	if v.Paused && len(v.Steps) > 0 {
		b.WriteString("  Updates wait until spec.paused is false.\n")
	}
	if len(v.First) > 0 {
		b.WriteString("\nFirst, as things are now:\n")
	}
	for _, a := range v.First {
		fmt.Fprintf(b, "  %s %s (%s): %s\n", a.Op, ids.Ranges(a.IDs), clean(a.Reason), clean(a.Why))
	}
	if v.Refused != "" {
		fmt.Fprintf(b, "\nWhat the API server refuses:\n  %s\n", p.paint(red, clean(v.Refused)))
	}
	if len(v.Problems) > 0 {
		b.WriteString("\nWhat the controller cannot do:\n")
	}
	for _, problem := range v.Problems {
		fmt.Fprintf(b, "  %s\n", p.paint(red, problem))
	}
}
