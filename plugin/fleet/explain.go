package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/tools/clientcmd"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// explaining says why something waits.
type explaining struct {
	*common
	member, output string
}

func newExplain(all *common) *cobra.Command {
	x := &explaining{common: all}
	c := &cobra.Command{
		Use:   "explain APPSET [CLUSTER/PODSET [ID]]",
		Short: "Say why an AppSet, a podSet in one cluster, or an instance waits",
		Long: `Say why an AppSet, a podSet in one cluster, or an instance waits.

The hub tells of AppSets and podSets. An instance is explained by the planner of its TApp in its cluster, which --member-context
names; by default that is the context of the cluster's name.`,
		Example: `  kubectl tapp fleet explain web
  kubectl tapp fleet explain web shanghai/web-gz01-blue
  kubectl tapp fleet explain web shanghai/web-gz01-blue 3 --member-context sh`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 3 {
				return all.Usage(fmt.Errorf("%q is one argument too many", args[3]))
			}
			return all.named(c, args[:min(1, len(args))])
		},
		ValidArgsFunction: x.complete,
		RunE:              func(c *cobra.Command, args []string) error { return x.run(c.Context(), args) },
	}
	c.Flags().StringVar(&x.member, "member-context", "", "Context of the cluster in the kubeconfig; default: the one of its name")
	c.Flags().StringVarP(&x.output, "output", "o", "", "Output format: json or yaml")
	return c
}

func (x *explaining) run(ctx context.Context, args []string) error {
	if x.output != "" && x.output != "json" && x.output != "yaml" {
		return x.Usage(fmt.Errorf("--output is %q; give json or yaml", x.output))
	}
	w, err := x.workspace()
	if err != nil {
		return err
	}
	a, err := w.get(ctx, args[0])
	if err != nil {
		return err
	}
	units, _ := unitsOf(a)
	if len(args) == 1 {
		return x.explainAppSet(a, units)
	}
	u, err := findUnit(a, units, args[1])
	if err != nil {
		return err
	}
	if len(args) == 2 {
		return x.explainUnit(a, u)
	}
	return x.explainInstance(ctx, w, u, args[2])
}

func findUnit(a *v1beta1.AppSet, units []unitView, name string) (*unitView, error) {
	cluster, podSet, ok := strings.Cut(name, "/")
	if !ok {
		return nil, fmt.Errorf("%q names no podSet in a cluster; give CLUSTER/PODSET", name)
	}
	names := make([]string, 0, len(units))
	for i := range units {
		if v1beta1.FoldClusterName(units[i].Cluster) == v1beta1.FoldClusterName(cluster) && units[i].PodSet == podSet {
			return &units[i], nil
		}
		names = append(names, units[i].name())
	}
	const most = 20
	if len(names) > most {
		names = append(names[:most:most], fmt.Sprintf("... (%d more)", len(names)-most))
	}
	return nil, fmt.Errorf("%s has no podSet %s; it has %s", a.Name, name, cmp.Or(strings.Join(names, ", "), "none"))
}

// appSetExplained is why an AppSet is not where its spec wants it.
type appSetExplained struct {
	appSetView
	// Because are the conditions that say so, and Waiting the units that wait.
	Because []string   `json:"because,omitempty"`
	Waiting []unitView `json:"waiting,omitempty"`
}

func (x *explaining) explainAppSet(a *v1beta1.AppSet, units []unitView) error {
	e := appSetExplained{appSetView: viewOf(a)}
	if isUnobserved(a) {
		e.Because = append(e.Because, summary(a))
	}
	for _, kind := range []string{v1beta1.ConditionStalled, v1beta1.ConditionAwaitingConfirmation, v1beta1.ConditionClustersReachable, v1beta1.ConditionReady} {
		c := condition(a, kind)
		tells := kind == v1beta1.ConditionStalled || kind == v1beta1.ConditionAwaitingConfirmation
		if c == nil || isTrue(c) != tells || slices.ContainsFunc(e.Because, func(s string) bool { return strings.Contains(s, c.Message) }) {
			continue
		}
		e.Because = append(e.Because, fmt.Sprintf("%s=%s (%s): %s", kind, c.Status, c.Reason, c.Message))
	}
	for i := range units {
		if units[i].Why != "" {
			e.Waiting = append(e.Waiting, units[i])
		}
	}
	if x.output != "" {
		return x.write(e, x.output)
	}
	x.say("%s", summary(a))
	for _, line := range e.Because {
		x.say("  %s", line)
	}
	for i := range e.Waiting {
		x.say("  %s: %s", e.Waiting[i].name(), e.Waiting[i].Why)
	}
	if len(e.Because) == 0 && len(e.Waiting) == 0 {
		x.say("  nothing waits")
	}
	return nil
}

func (x *explaining) explainUnit(a *v1beta1.AppSet, u *unitView) error {
	if x.output != "" {
		return x.write(u, x.output)
	}
	line := func(name, value string) {
		if value != "" {
			x.say("%-12s%s", name+":", value)
		}
	}
	s := &u.Status
	line("PodSet", u.PodSet)
	state := cmp.Or(string(u.State), "unknown")
	if u.AsOf != nil {
		state += ", as of " + u.AsOf.UTC().Format(time.RFC3339) + " (" + duration.HumanDuration(time.Since(u.AsOf.Time)) + " ago)"
	}
	line("Cluster", u.Cluster+", "+state)
	line("Group", u.Group)
	if u.Wanted == nil {
		line("Wanted", "nothing: the spec has it no more")
	} else {
		line("Wanted", fmt.Sprintf("%d instances of %s, by %s (%s)", u.Wanted.Replicas, cmp.Or(u.Wanted.Version, "-"), u.Wanted.Kind, u.Wanted.Content))
	}
	if s.Name != "" {
		has := fmt.Sprintf("%d of %d available, %s", s.Available, s.Desired, cmp.Or(s.Version, "-"))
		if s.Update != nil {
			has += fmt.Sprintf(", %d have the content", *s.Update)
		}
		if s.Revision != "" {
			has += " (" + s.Revision + ")"
		}
		line("Has", has)
	}
	line("Ids", s.Ordinals)
	if s.Budget != nil {
		line("Budget", fmt.Sprintf("%d instances may be out of service", *s.Budget))
	}
	if s.ProgressedAt != nil {
		line("Progress", duration.HumanDuration(time.Since(s.ProgressedAt.Time))+" ago")
	}
	if r := a.Status.Rollout; r != nil && r.Stage != "" {
		line("Stage", "the rollout is in "+r.Stage)
	}
	line("Waits", cmp.Or(u.Why, "no: it is as the spec says"))
	return nil
}

func (x *explaining) explainInstance(ctx context.Context, w *workspace, u *unitView, id string) error {
	if kind := u.kind(); kind != "" && kind != v1beta1.DeployInPlaceSet {
		return fmt.Errorf("%s is of deployType %s, whose pods another controller makes: ask it in its cluster, as kubectl describe does", u.name(), kind)
	}
	raw, err := x.Kubeconfig.RawConfig()
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	name := cmp.Or(x.member, u.Cluster)
	if _, ok := raw.Contexts[name]; !ok {
		return errors.New("the kubeconfig has no context " + name + ", which is to lead to cluster " + u.Cluster + "; name one by --member-context")
	}
	overrides := &clientcmd.ConfigOverrides{CurrentContext: name}
	overrides.Context.Namespace = w.namespace
	member := clientcmd.NewNonInteractiveClientConfig(raw, name, overrides, nil)
	if u.Why != "" && x.output == "" {
		x.say("%s waits: %s\n", u.name(), u.Why)
	}
	return x.Instance(ctx, member, u.PodSet, id, x.output)
}

func (u *unitView) kind() string {
	if u.Wanted == nil {
		return ""
	}
	return u.Wanted.Kind
}

// complete an AppSet, and a unit of it.
func (x *explaining) complete(c *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) != 1 {
		return x.completeAppSets(c, args, word)
	}
	var out []string
	if w, err := x.workspace(); err == nil {
		if a, err := w.get(c.Context(), args[0]); err == nil {
			units, _ := unitsOf(a)
			for i := range units {
				out = append(out, units[i].name())
			}
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
