package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/ids"
	plan "tkestack.io/tapp/plan/tapp"
)

// selection says which instances a command changes.
type selection struct{ all bool }

func newSelection(c *cobra.Command) *selection {
	s := &selection{}
	c.Flags().BoolVar(&s.all, "all", false, "All instances")
	return s
}

func (s *selection) ids(t *tappv1.TApp, args []string) ([]int, error) {
	switch {
	case s.all && len(args) > 0:
		return nil, usageError{errors.New("give IDS or --all, not both")}
	case s.all:
		return ids.Of(&t.Spec).All(), nil
	case len(args) == 0:
		return nil, usageError{errors.New("IDS are missing: give ids and ranges such as 0-3,7, or --all")}
	}
	return parseIDs(t, args)
}

// edit is a command that sets, in a map of the spec, one entry for each instance.
type edit struct {
	*environment
	*writing
	*waiting
	*selection
	letGo
	// entry returns the field of the spec, the value of each entry (nil removes it), and
	// in words what was done.
	entry func(*tappv1.TApp) (field string, value any, done string, err error)
	// missing is an argument of waiting.until.
	missing func(*observed, int) (string, error)
}

func newEdit(e *environment, c *cobra.Command) *edit {
	x := &edit{environment: e, writing: newPlanned(e, c), waiting: newWaiting(c), selection: newSelection(c)}
	c.Args = atLeastName
	c.RunE = func(c *cobra.Command, args []string) error { return x.run(c.Context(), args[0], args[1:]) }
	c.ValidArgsFunction = e.completeInstances
	return x
}

func atLeastName(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usageError{errors.New("NAME is missing")}
	}
	return nil
}

func (x *edit) run(ctx context.Context, name string, args []string) error {
	if err := x.writing.validate(); err != nil {
		return err
	}
	s, err := x.connect()
	if err != nil {
		return err
	}
	t, err := s.get(ctx, name)
	if err != nil {
		return err
	}
	chosen, err := x.ids(t, args)
	if err != nil {
		return err
	}
	field, value, done, err := x.entry(t)
	if err != nil {
		return err
	}
	entries := map[string]any{}
	for _, id := range chosen {
		entries[strconv.Itoa(id)] = value
	}
	after, err := x.mergeSpec(ctx, s, t, map[string]any{field: entries})
	if err != nil {
		return err
	}
	patched, err := x.letClaimsGo(ctx, s, name, chosen)
	if err != nil {
		return err
	}
	if x.plan {
		return x.tell(ctx, s, t, after, patched...)
	}
	if err := x.report(after, ids.Instances(chosen)+" "+done); err != nil || !x.wait || x.dryRun != dryRunNone {
		return err
	}
	return x.until(ctx, s, after, chosen, x.missing)
}

// letClaimsGo lets claims of the instances go that are being deleted, if that is asked for.
func (x *edit) letClaimsGo(ctx context.Context, s *session, name string, chosen []int) ([]*corev1.Pod, error) {
	if !x.now {
		return nil, nil
	}
	o, err := s.observe(ctx, name)
	if err != nil {
		return nil, err
	}
	return x.release(ctx, x.writing, s, o, chosen)
}

func newKill(e *environment) *cobra.Command {
	c := &cobra.Command{
		Use:   "kill NAME IDS",
		Short: "Stop instances; they keep their identity and their claims",
		Long: `Stop instances: their pods go, and their identity and their claims stay. The instances are killed in spec.statuses until
they are started again.

The pod of an instance whose claim is being deleted stays, since the claim and its data go with it (ClaimTerminating). With --now
it does not.`,
		Example: "  kubectl tapp kill web 0-3,7 --wait",
	}
	x := newEdit(e, c)
	x.flag(c)
	x.entry = func(*tappv1.TApp) (string, any, string, error) {
		return "statuses", tappv1.InstanceKilled, "killed", nil
	}
	x.missing = func(o *observed, id int) (string, error) {
		if i := o.Instance(id); i != nil && i.Pod != nil {
			return "its pod is still there", nil
		}
		return "", nil
	}
	return c
}

func newStart(e *environment) *cobra.Command {
	c := &cobra.Command{
		Use:     "start NAME IDS",
		Short:   "Start instances that were killed",
		Example: "  kubectl tapp start web 0-3,7 --wait",
	}
	x := newEdit(e, c)
	x.entry = func(*tappv1.TApp) (string, any, string, error) { return "statuses", nil, "started", nil }
	x.missing = func(o *observed, id int) (string, error) { return missingAvailable(o, id) }
	return c
}

// missingAvailable says what an instance lacks to be available.
func missingAvailable(o *observed, id int) (string, error) {
	i := o.Instance(id)
	switch {
	case i == nil:
		return "", fmt.Errorf("instance %d is no more", id)
	case isCompleted(i):
		return "", fmt.Errorf("instance %d ended (%s) and stays as it ended; kill it and start it to run it again", id, i.Status)
	case i.Available:
		return "", nil
	}
	return o.whyNot(i), nil
}

// whyNot says why an instance is not where the spec wants it.
func (o *observed) whyNot(i *plan.Instance) string {
	if next := o.Actions(i.ID); i.Why == "" && len(next) > 0 {
		return next[0].Why
	}
	if i.Why == "" {
		return "it is " + string(i.Status)
	}
	return i.Why
}

func newUpgrade(e *environment) *cobra.Command {
	var template string
	c := &cobra.Command{
		Use:   "upgrade NAME IDS --template TEMPLATE",
		Short: "Give instances another template",
		Long: `Give instances another template: "default", or one of spec.templatePool. The instances are changed in place or recreated,
within the budget of that template. The template that spec.defaultTemplateName names needs no entry in spec.templates, so that
an instance that gets it follows spec.defaultTemplateName from then on.`,
		Example: "  kubectl tapp upgrade web 7 --template canary --wait",
	}
	x := newEdit(e, c)
	c.Flags().StringVar(&template, "template", "", "Name of the template")
	x.completeTemplates(c)
	x.entry = func(t *tappv1.TApp) (string, any, string, error) {
		if template == "" {
			return "", nil, "", usageError{errors.New("--template is missing")}
		}
		if names := t.Spec.TemplateNames(); !slices.Contains(names, template) {
			return "", nil, "", fmt.Errorf("%s has no template %q: it has %s", t.Name, template, strings.Join(names, ", "))
		}
		done := "upgraded to template " + template
		if template == defaultTemplate(t) {
			return "templates", nil, done, nil
		}
		return "templates", template, done, nil
	}
	x.missing = func(o *observed, id int) (string, error) {
		if why, err := missingAvailable(o, id); why != "" || err != nil {
			return why, err
		}
		if i := o.Instance(id); !i.Current {
			return o.whyNot(i), nil
		}
		return "", nil
	}
	return c
}

func defaultTemplate(t *tappv1.TApp) string {
	defaulted := t.DeepCopy()
	tappv1.Default(defaulted)
	return defaulted.Spec.DefaultTemplateName
}
