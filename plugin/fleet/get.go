package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

func newGet(all *common) *cobra.Command {
	output, everywhere := "", false
	c := &cobra.Command{
		Use:   "get [APPSET]",
		Short: "List AppSets, or the podSets of one in all clusters",
		Long: `List AppSets, or the podSets of one in all clusters.

What a silent cluster had is shown as it was seen last, with the time.`,
		Example: `  kubectl tapp fleet get
  kubectl tapp fleet get web -o wide`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return all.named(c, args)
		},
		ValidArgsFunction: all.completeAppSets,
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case !slices.Contains([]string{"", "wide", "json", "yaml"}, output):
				return all.Usage(fmt.Errorf("--output is %q; give wide, json or yaml", output))
			case everywhere && len(args) > 0:
				return all.Usage(fmt.Errorf("an AppSet is in one namespace: leave --all-namespaces out"))
			}
			w, err := all.workspace()
			if err != nil {
				return err
			}
			if len(args) > 0 {
				return w.printUnits(c.Context(), args[0], output)
			}
			if everywhere {
				w.namespace = metav1.NamespaceAll
			}
			return w.printAppSets(c.Context(), output)
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "", "Output format: wide, json or yaml")
	c.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "Those of all namespaces")
	return c
}

// appSetView is one line about an AppSet.
type appSetView struct {
	Namespace   string        `json:"namespace"`
	Name        string        `json:"name"`
	Clusters    int           `json:"clusters"`
	Silent      int           `json:"silent,omitempty"`
	Desired     int32         `json:"desired"`
	Available   int32         `json:"available"`
	UnAvailable int32         `json:"unAvailable"`
	Unknown     int32         `json:"unknown,omitempty"`
	Version     string        `json:"version,omitempty"`
	Status      v1beta1.Phase `json:"status"`
	Rollout     string        `json:"rollout,omitempty"`
	Stage       string        `json:"stage,omitempty"`
	Created     metav1.Time   `json:"created"`
}

func viewOf(a *v1beta1.AppSet) appSetView {
	sums := &a.Status.AggrStatus
	v := appSetView{
		Namespace: a.Namespace, Name: a.Name, Clusters: len(a.Spec.ClusterTopology.Clusters), Created: a.CreationTimestamp,
		Desired: sums.Desired, Available: sums.Available, UnAvailable: sums.UnAvailable, Unknown: sums.Unknown, Version: sums.Version, Status: sums.Status,
	}
	for i := range sums.Clusters {
		if c := &sums.Clusters[i]; c.AsOf != nil || c.State != v1beta1.ClusterReady {
			v.Silent++
		}
	}
	if r := a.Status.Rollout; r != nil {
		v.Rollout, v.Stage = r.ID, r.Stage
	}
	return v
}

func (w *workspace) printAppSets(ctx context.Context, output string) error {
	views := []appSetView{}
	if err := each(ctx, w.appSets.AppSets(w.namespace), func(a *v1beta1.AppSet) { views = append(views, viewOf(a)) }); err != nil {
		return err
	}
	if output == "json" || output == "yaml" {
		return w.write(views, output)
	}
	if len(views) == 0 {
		where := " in namespace " + w.namespace
		if w.namespace == metav1.NamespaceAll {
			where = ""
		}
		_, err := fmt.Fprintf(w.Streams.ErrOut, "There are no AppSets%s.\n", where)
		return err
	}
	names := []string{"Name", "Clusters", "Desired", "Available", "Unavailable", "Version", "Status", "Stage", "Age"}
	if w.namespace == metav1.NamespaceAll {
		names = append([]string{"Namespace"}, names...)
	}
	if output == "wide" {
		names = append(names, "Silent", "Unknown", "Rollout")
	}
	var rows [][]any
	for i := range views {
		v := &views[i]
		row := []any{v.Name, v.Clusters, v.Desired, v.Available, v.UnAvailable, cmp.Or(v.Version, "-"), cmp.Or(string(v.Status), "-"), cmp.Or(v.Stage, "-"), duration.HumanDuration(time.Since(v.Created.Time))}
		if w.namespace == metav1.NamespaceAll {
			row = append([]any{v.Namespace}, row...)
		}
		if output == "wide" {
			row = append(row, v.Silent, v.Unknown, cmp.Or(v.Rollout, "-"))
		}
		rows = append(rows, row)
	}
	return w.columns(names, rows)
}

func (w *workspace) printUnits(ctx context.Context, name, output string) error {
	a, err := w.get(ctx, name)
	if err != nil {
		return err
	}
	units, problems := unitsOf(a)
	for _, p := range problems {
		_, _ = fmt.Fprintf(w.Streams.ErrOut, "%s: %s\n", p.Field, p.Why)
	}
	if output == "json" || output == "yaml" {
		return w.write(units, output)
	}
	if len(units) == 0 {
		_, err := fmt.Fprintf(w.Streams.ErrOut, "%s has no podSets.\n", name)
		return err
	}
	names := []string{"Cluster", "State", "PodSet", "Desired", "Available", "Updated", "Version", "Why"}
	if output == "wide" {
		names = []string{"Cluster", "State", "As of", "PodSet", "Group", "Desired", "Available", "Updated", "Version", "Ids", "Budget", "Content", "Why"}
	}
	var rows [][]any
	for i := range units {
		rows = append(rows, units[i].row(output == "wide"))
	}
	return w.columns(names, rows)
}

func (u *unitView) row(wide bool) []any {
	s := &u.Status
	updated := int32(0)
	if s.Update != nil {
		updated = *s.Update
	}
	state, version, why := cmp.Or(string(u.State), "-"), cmp.Or(s.Version, "-"), cmp.Or(u.Why, "-")
	if !wide {
		return []any{u.Cluster, state, u.PodSet, s.Desired, s.Available, updated, version, why}
	}
	asOf, budget := "now", "-"
	if u.AsOf != nil {
		asOf = duration.HumanDuration(time.Since(u.AsOf.Time)) + " ago"
	}
	if s.Budget != nil {
		budget = fmt.Sprint(*s.Budget)
	}
	return []any{u.Cluster, state, asOf, u.PodSet, cmp.Or(u.Group, "-"), s.Desired, s.Available, updated, version, cmp.Or(s.Ordinals, "-"), budget, cmp.Or(s.Revision, "-"), why}
}
