package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	"tkestack.io/tapp/crd/client"
	"tkestack.io/tapp/crd/workload/v1beta1"
)

// orphan is a part whose AppSet is not on this hub.
type orphan struct {
	Cluster   string `json:"cluster"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// AppSetUID and FleetID are what the part says of who it belongs to.
	AppSetUID types.UID   `json:"appSetUID"`
	FleetID   string      `json:"fleetID"`
	Desired   int32       `json:"desired"`
	Available int32       `json:"available"`
	Created   metav1.Time `json:"created"`
}

// patience with one cluster.
const memberTimeout = 20 * time.Second

func newOrphans(all *common) *cobra.Command {
	output, fleet := "", ""
	c := &cobra.Command{
		Use:   "orphans",
		Short: "List parts in clusters whose AppSet is not on this hub",
		Long: `List parts in clusters whose AppSet is not on this hub.

The controller never deletes them: a hub that was restored from an older backup would empty its clusters. To get rid of one,
delete the AdvDeployment in its cluster.

Each registered cluster is asked, with the kubeconfig of its registration. Where one does not answer it is told of, and the
exit code is 1.`,
		Example: `  kubectl tapp fleet orphans
  kubectl --context member1 --namespace shop delete advdeployment web`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if output != "" && output != "json" && output != "yaml" {
				return all.Usage(fmt.Errorf("--output is %q; give json or yaml", output))
			}
			return all.orphans(c.Context(), fleet, output)
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "", "Output format: json or yaml")
	c.Flags().StringVar(&fleet, "fleet-id", "", "Only parts of the fleet with this id; default: all")
	return c
}

func (c *common) orphans(ctx context.Context, fleet, output string) error {
	hub, err := c.hub()
	if err != nil {
		return err
	}
	all, err := c.registrations(ctx, hub)
	if err != nil {
		return err
	}
	found := []orphan{}
	var silent []string
	asked := map[string]bool{}
	for i := range all {
		r := &all[i]
		if asked[r.name] {
			continue
		}
		asked[r.name] = true
		parts, err := c.partsIn(ctx, r, fleet)
		if err != nil {
			silent = append(silent, r.name)
			_, _ = fmt.Fprintf(c.Streams.ErrOut, "cluster %s: %v\n", r.name, err)
		}
		found = append(found, parts...)
	}
	// The hub is asked last: a part that was made meanwhile has its AppSet by then.
	known := map[types.UID]bool{}
	if err := each(ctx, hub.appSets.AppSets(metav1.NamespaceAll), func(a *v1beta1.AppSet) { known[a.UID] = true }); err != nil {
		return err
	}
	found = slices.DeleteFunc(found, func(o orphan) bool { return known[o.AppSetUID] })
	if err := c.printOrphans(found, output, len(silent) == 0); err != nil {
		return err
	}
	if len(silent) > 0 {
		return errors.New("nothing is known of " + strings.Join(silent, ", "))
	}
	return nil
}

// partsIn a registered cluster.
func (c *common) partsIn(ctx context.Context, r *registration, fleet string) ([]orphan, error) {
	ctx, cancel := context.WithTimeout(ctx, memberTimeout)
	defer cancel()
	member, err := c.member(r)
	if err != nil {
		return nil, err
	}
	parts, err := client.NewAdvDeployments(member.config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	selector := v1beta1.LabelAppSetUID + "," + v1beta1.LabelFleetID
	if fleet != "" {
		selector = v1beta1.LabelAppSetUID + "," + v1beta1.LabelFleetID + "=" + fleet
	}
	options := metav1.ListOptions{LabelSelector: selector, Limit: page}
	var out []orphan
	for {
		list, err := parts.AdvDeployments(metav1.NamespaceAll).List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("listing the parts: %w", err)
		}
		for i := range list.Items {
			d := &list.Items[i]
			out = append(out, orphan{
				Cluster: r.name, Namespace: d.Namespace, Name: d.Name, Created: d.CreationTimestamp,
				AppSetUID: types.UID(d.Labels[v1beta1.LabelAppSetUID]), FleetID: d.Labels[v1beta1.LabelFleetID],
				Desired: d.Status.AggrStatus.Desired, Available: d.Status.AggrStatus.Available,
			})
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return out, nil
		}
	}
}

func (c *common) printOrphans(found []orphan, output string, complete bool) error {
	if output != "" {
		return c.write(found, output)
	}
	if len(found) == 0 {
		if complete {
			_, _ = fmt.Fprintln(c.Streams.ErrOut, "Every part in the registered clusters has its AppSet.")
		}
		return nil
	}
	var rows [][]any
	for i := range found {
		o := &found[i]
		rows = append(rows, []any{o.Cluster, o.Namespace, o.Name, o.Desired, o.Available, o.FleetID, string(o.AppSetUID), duration.HumanDuration(time.Since(o.Created.Time))})
	}
	return c.columns([]string{"Cluster", "Namespace", "Name", "Desired", "Available", "Fleet", "AppSet UID", "Age"}, rows)
}
