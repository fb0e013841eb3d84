package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/foresight"
	"tkestack.io/tapp/plan/podset"
)

// Applied is an AppSet before and after a dry run of an apply.
type Applied struct {
	Before *v1beta1.AppSet // nil: it would be created
	After  *v1beta1.AppSet
}

// planning tells what a manifest would do.
type planning struct {
	*common
	files      []string
	serverSide bool
	output     string
}

func newPlan(all *common) *cobra.Command {
	p := &planning{common: all}
	c := &cobra.Command{
		Use:   "plan -f FILE",
		Short: "Tell what applying an AppSet would do in all clusters, in which stages, and why",
		Long: `Tell what applying an AppSet would do in all clusters, in which stages, and why.

The server is asked what would become of the AppSet (a dry run, with its defaults and admission), and the planners of the
controllers what they would do about it: the stages and their gates, and for each podSet how many instances are updated in place,
recreated, created and removed. Nothing is changed, and no other cluster is asked: every instance is taken to run what the
spec asked for before, or the stable content where a rollout under way has not reached its podSet.

The exit code is 0 if nothing would change, 2 if something would, and 1 if that cannot be told.`,
		Example: `  kubectl tapp fleet plan -f appset.yaml`,
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return p.run(c.Context()) },
	}
	c.Flags().StringArrayVarP(&p.files, "filename", "f", nil, "File or directory with the manifest; - is the standard input")
	c.Flags().BoolVar(&p.serverSide, "server-side", false, "As kubectl apply --server-side would")
	c.Flags().StringVarP(&p.output, "output", "o", "", "Output format: json or yaml")
	return c
}

// planned is what is told of one AppSet.
type planned struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	foresight.Preview
}

func (p *planning) run(ctx context.Context) error {
	switch {
	case p.output != "" && p.output != "json" && p.output != "yaml":
		return p.Usage(fmt.Errorf("--output is %q; give json or yaml", p.output))
	case len(p.files) == 0:
		return p.Usage(errors.New("give a manifest by -f"))
	}
	applied, err := p.Apply(ctx, p.files, p.serverSide)
	if err != nil {
		return err
	}
	changes := false
	all := make([]planned, 0, len(applied))
	for i := range applied {
		a := &applied[i]
		stable, err := p.stableOf(ctx, a.Before)
		if err != nil {
			return err
		}
		one := planned{a.After.Namespace, a.After.Name, foresight.From(a.Before, a.After, stable, time.Now())}
		if !one.IsEmpty() {
			changes = true
			notes, err := p.unregistered(ctx, a.After)
			if err != nil {
				return err
			}
			one.Notes = append(one.Notes, notes...)
		}
		all = append(all, one)
	}
	if p.output != "" {
		err = p.write(map[string]any{"items": all}, p.output)
	} else {
		for i := range all {
			all[i].print(p.common, i)
		}
	}
	if err == nil && changes {
		err = p.Changes
	}
	return err
}

// stableOf an AppSet in the midst of a rollout is its stable content, as the hub has it; nil:
// there is none, or it is not known. Who may
// not read revisions is told by the specs alone.
func (p *planning) stableOf(ctx context.Context, a *v1beta1.AppSet) (*podset.History, error) {
	if !podset.IsRolling(a) {
		return nil, nil
	}
	w, err := p.workspace()
	if err != nil {
		return nil, err
	}
	w.namespace = a.Namespace
	revisions, err := w.revisions(ctx, a)
	if apierrors.IsForbidden(err) {
		_, err = fmt.Fprintf(p.Streams.ErrOut, "Warning: revisions cannot be read, and all is told by the specs alone: %v\n", err)
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	return podset.StableOf(a, revisions)
}

// unregistered tells of the clusters that have no registration, and of which no status tells
// yet. Who may not read registrations is told nothing.
func (p *planning) unregistered(ctx context.Context, a *v1beta1.AppSet) ([]string, error) {
	told := map[string]bool{}
	for i := range a.Status.AggrStatus.Clusters {
		told[v1beta1.FoldClusterName(a.Status.AggrStatus.Clusters[i].Name)] = true
	}
	named := a.Spec.ClusterTopology.Clusters
	if !slices.ContainsFunc(named, func(c v1beta1.TargetCluster) bool { return !told[v1beta1.FoldClusterName(c.Name)] }) {
		return nil, nil
	}
	hub, err := p.hub()
	if err != nil {
		return nil, err
	}
	all, err := p.registrations(ctx, hub)
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for i := range all {
		told[all[i].name] = true
	}
	var out []string
	for i := range named {
		if name := v1beta1.FoldClusterName(named[i].Name); !told[name] {
			out = append(out, fmt.Sprintf("namespace %s has no registration of cluster %s: unless it is the hub itself, what is to be done there waits until it is registered (kubectl tapp fleet join)", p.clusterNamespace, name))
		}
	}
	return out, nil
}

// print what would happen, in order, and what becomes of each podSet.
func (p *planned) print(c *common, at int) {
	if at > 0 {
		c.say("")
	}
	name := "appset.workload.dmall.com/" + p.Name
	switch {
	case len(p.Problems) > 0:
		c.say("%s cannot be carried out, and all stays as it is:", name)
		for _, problem := range p.Problems {
			c.say("  %s: %s", problem.Field, problem.Why)
		}
		return
	case p.IsEmpty():
		c.say("%s: nothing would change", name)
		return
	case p.Created:
		c.say("%s would be created, in this order:", name)
	default:
		c.say("%s would change, in this order:", name)
	}
	step := 0
	tell := func(head string, changes []foresight.Change, tail string) {
		step++
		c.say("  %d. %s: %s%s", step, head, strings.Join(foresight.Told(changes), "; "), tail)
		for i := range changes {
			ch := &changes[i]
			ids := ""
			if ch.IDs != "" {
				ids = " (" + ch.IDs + ")"
			}
			c.say("       %s/%s: %s%s", ch.Cluster, ch.PodSet, foresight.Words(ch.Effect, ch.Instances), ids)
		}
	}
	if len(p.AtOnce) > 0 {
		tell("at once", p.AtOnce, "")
	}
	for i := range p.Stages {
		tell(p.Stages[i].Head(), p.Stages[i].Changes, p.Stages[i].Tail())
	}
	if len(p.Last) > 0 {
		tell("as soon as the others are available", p.Last, "")
	}
	for _, note := range p.Notes {
		c.say("Note: %s", note)
	}
}
