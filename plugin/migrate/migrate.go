package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// migrating is `kubectl tapp migrate`.
type migrating struct {
	Options
	flags   *Flags
	from    string
	back    bool
	force   bool
	timeout time.Duration
}

// New is the command.
func New(o Options) *cobra.Command {
	c := &cobra.Command{
		Use:   "migrate statefulset/NAME",
		Short: "Make a TApp of a running StatefulSet; its pods and claims stay",
		Long: `Make a TApp of a running StatefulSet; its pods and claims stay.

The pods get the label by which TApps know them, a paused TApp of the same name is made, the StatefulSet is deleted without its
pods, and the TApp adopts them. Every step can be repeated: after an interruption give the command once more.

It begins only if everything is rolled out, and if the TApp would restart no pod. Nothing is changed with --dry-run, which tells
what would be; with -o yaml it prints the TApp as well, for example for Git.`,
		Example: `  kubectl tapp migrate statefulset/web --dry-run
  kubectl tapp migrate statefulset/web
  kubectl tapp migrate --from statefulset/web --timeout 5m

  # The StatefulSet that TApp web was made from
  kubectl tapp migrate tapp/web --back`,
		Args: o.Args,
	}
	m := &migrating{Options: o}
	m.flags = o.Flags(c)
	c.Flags().StringVar(&m.from, "from", "", "statefulset/NAME, as the argument")
	c.Flags().BoolVar(&m.back, "back", false, "Print the StatefulSet that the TApp was made from, which the TApp recorded; for tapp/NAME")
	c.Flags().BoolVar(&m.force, "force", false, "Also if pods are not ready, or would restart")
	c.Flags().DurationVar(&m.timeout, "timeout", 0, "How long to wait for each of the others' parts; 0 is for ever")
	c.RunE = func(c *cobra.Command, args []string) error { return m.run(c.Context(), args) }
	return c
}

// source returns the name of the StatefulSet that the arguments give.
func (m *migrating) source(args []string) (string, error) {
	given := m.from
	switch {
	case given != "" && len(args) > 0:
		return "", m.Usage(errors.New("give statefulset/NAME or --from, not both"))
	case len(args) > 0:
		given = args[0]
	case given == "":
		return "", m.Usage(errors.New("statefulset/NAME is missing"))
	}
	kind, name, _ := strings.Cut(given, "/")
	if m.back {
		if k := strings.ToLower(kind); k != "tapp" && k != "tapps" && k != "tapps.Apps.tkestack.io" || name == "" || strings.Contains(name, "/") {
			return "", m.Usage(fmt.Errorf("%q names no TApp; give tapp/NAME with --back", given))
		}
		return name, nil
	}
	switch strings.ToLower(kind) {
	case "statefulset", "statefulsets", "sts", "statefulset.apps", "statefulsets.apps":
	default:
		return "", m.Usage(fmt.Errorf("%q cannot be migrated; give statefulset/NAME", given))
	}
	if name == "" || strings.Contains(name, "/") {
		return "", m.Usage(fmt.Errorf("%q names no StatefulSet; give statefulset/NAME", given))
	}
	return name, nil
}

// migrationSteps is the number of steps of a migration: check, label, create, orphan,
// adopt.
const migrationSteps = 5

func (m *migrating) run(ctx context.Context, args []string) error {
	if err := m.flags.Validate(); err != nil {
		return err
	}
	name, err := m.source(args)
	if err != nil {
		return err
	}
	s, err := m.Connect()
	if err != nil {
		return err
	}
	if m.back {
		return m.printSource(ctx, s, name)
	}
	v, err := m.begin(ctx, s, name)
	if err != nil {
		return err
	}
	if err := v.check(ctx); err != nil {
		return err
	}
	if m.dryRun() != dryRunNone {
		return v.preview(ctx)
	}
	for _, step := range []func(context.Context) error{v.label, v.create, v.orphan, v.adopt} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if *m.flags.Output == "" {
		return nil
	}
	t, err := s.get(ctx, name)
	if err != nil {
		return err
	}
	return m.flags.Report(t, "migrated")
}

// say tells of a step of the migration. With --output the object goes to the output, so
// this goes to the error output.
func (v *migration) say(step int, format string, args ...any) {
	_, _ = fmt.Fprintf(v.out(), "%d/%d  %s\n", step, migrationSteps, v.Clean(fmt.Sprintf(format, args...)))
}

func (v *migration) out() io.Writer {
	if *v.flags.Output != "" {
		return v.Streams.ErrOut
	}
	return v.Streams.Out
}

func (v *migration) warn(text string) {
	_, _ = fmt.Fprintln(v.Streams.ErrOut, "Warning:", v.Clean(text))
}

// preview says what the steps after the check would do.
func (v *migration) preview(ctx context.Context) error {
	pods, claims, err := v.unlabelled(ctx)
	if err != nil {
		return err
	}
	v.say(2, "would label %s and %s%s", count(len(pods), "pod"), count(len(claims), "claim"), v.tellSpared(ctx, "annotate", claims))
	if v.made {
		v.say(3, "TApp %s is there already", v.tapp.Name)
	} else {
		v.say(3, "would make TApp %s", v.tapp.Name)
	}
	if v.gone {
		v.say(4, "StatefulSet %s is gone already", v.set.Name)
	} else {
		v.say(4, "would delete StatefulSet %s without its pods", v.set.Name)
	}
	v.say(5, "TApp %s would adopt %s", v.tapp.Name, count(len(v.before), "pod"))
	if *v.flags.Output == "" {
		return nil
	}
	object, err := v.manifest(v.tapp)
	if err != nil {
		return err
	}
	return v.flags.Report(object, "migrated")
}

// manifest of a migrated TApp, as it belongs into Git.
func (m *migrating) manifest(t *tappv1.TApp) (*unstructured.Unstructured, error) {
	t = t.DeepCopy()
	t.Spec.Paused = false
	delete(t.Annotations, AnnotationManifest)
	delete(t.Annotations, AnnotationUID)
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(t)
	if err != nil {
		return nil, fmt.Errorf("writing the TApp: %w", err)
	}
	u := m.WithoutState(&unstructured.Unstructured{Object: object})
	u.SetGroupVersionKind(tappv1.GroupVersionKind())
	return u, nil
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// changedPods says which pods were replaced or restarted since the migration began.
func (v *migration) changedPods(pods []*corev1.Pod) []string {
	now := map[string]podState{}
	for _, pod := range pods {
		now[pod.Name] = podStateOf(pod)
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(v.before)) {
		switch was, is := v.before[name], now[name]; {
		case was.uid != is.uid:
			out = append(out, "pod "+name+" is another one")
		case was.restarts != is.restarts:
			out = append(out, fmt.Sprintf("containers of pod %s restarted (%d times before, %d now)", name, was.restarts, is.restarts))
		}
	}
	return out
}

func (v *migration) goBack() {
	_, _ = fmt.Fprintf(v.out(), `
To go back, without a restart as well:
  kubectl tapp migrate tapp/%[1]s -n %[2]s --back > statefulset.json
  kubectl delete tapp %[1]s -n %[2]s --cascade=orphan
  kubectl create -f statefulset.json
`, v.tapp.Name, v.s.Namespace)
}

// printSource prints the StatefulSet that a TApp was made from. It is read from an
// annotation, which whoever may write TApps may change: nothing else is printed, however
// privileged the user is who creates what this prints.
func (m *migrating) printSource(ctx context.Context, s *Cluster, name string) error {
	t, err := s.get(ctx, name)
	if err != nil {
		return err
	}
	set, err := sourceOf(t)
	if err != nil {
		return err
	}
	if set == nil {
		return fmt.Errorf("TApp %s was not made from a StatefulSet", name)
	}
	if *m.flags.Output == "" {
		*m.flags.Output = "json"
	}
	return m.flags.Report(ManifestOf(set), "migrated")
}

// How a command writes.
const (
	dryRunNone   = "none"
	dryRunClient = "client"
)

func (m *migrating) dryRun() string { return *m.flags.DryRun }

func (m *migrating) patching() metav1.PatchOptions {
	return metav1.PatchOptions{FieldManager: *m.flags.Manager}
}

// get reads a TApp.
func (s *Cluster) get(ctx context.Context, name string) (*tappv1.TApp, error) {
	t, err := s.TApps.TApps(s.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err // it says all: tapps.apps.tkestack.io "x" not found
	}
	t.SetGroupVersionKind(tappv1.GroupVersionKind())
	return t, nil
}
