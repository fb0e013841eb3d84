// Package backup is `kubectl tapp backup` and `kubectl tapp restore`: TApps with their
// history, their claims, and of their status what cannot be observed anew, and AppSets with
// what their hub keeps for them, as a file of YAML documents, and back from it into a cluster
// that lost them.
package backup

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// Options are what the plugin lends to the commands.
type Options struct {
	Streams genericiooptions.IOStreams
	// Usage makes an error one of the command line.
	Usage func(error) error
	// Clean escapes what does not print.
	Clean func(string) string
	// Connect to the cluster that the flags name.
	Connect func() (*Cluster, error)
}

// Cluster that the flags name.
type Cluster struct {
	// Namespace of commands that are told no other.
	Namespace string
	Objects   dynamic.Interface
}

const (
	// manager owns the fields that a restore writes.
	manager = "kubectl-tapp"
	// workers is how many requests are under way at once.
	workers = 16
)

// command are the flags of the command `backup`.
type command struct {
	Options
	all, registrations bool
	file               string
	hub                hubOptions
}

// NewBackup is the command `backup`.
func NewBackup(o Options) *cobra.Command {
	b := &command{Options: o}
	c := &cobra.Command{
		Use:   "backup [NAME ...]",
		Short: "Write TApps, AppSets and AdvDeployments with their history and claims as YAML",
		Long: `Write TApps, AppSets and AdvDeployments with their history, and the claims of TApps, to the standard output or a file, as YAML documents: those
that are named, or all of the namespace.

"kubectl tapp restore" reads them. There is no data of volumes in them: take snapshots of those, or keep the volumes by their reclaim policy
Retain. What belongs to the namespace, such as Services and Secrets, is not in it either, nor are the parts that AppSets have in clusters.

Of a hub, --all-namespaces writes also the archives of charts, what is remembered of clusters that were given up, and the registrations of
clusters. Those have credentials: they are in a file that -f names, which only you can read, and on the standard output with --registrations.`,
		Example: "  kubectl tapp backup -n shop > shop.yaml\n  kubectl tapp backup -A -f all.yaml\n  kubectl tapp backup -A --registrations | age -r KEY > all.yaml.age",
		RunE: func(c *cobra.Command, names []string) error {
			if b.all && len(names) > 0 {
				return o.Usage(errors.New("give names, or --all-namespaces, not both"))
			}
			b.hub.whole, b.hub.credentials = b.all, b.registrations
			if !c.Flags().Changed(flagRegistrations) {
				b.hub.credentials = b.file != ""
			}
			cluster, err := o.Connect()
			if err != nil {
				return err
			}
			namespace := cluster.Namespace
			if b.all {
				namespace = metav1.NamespaceAll
			}
			return b.run(c.Context(), &collection{Cluster: cluster, namespace: namespace, names: names})
		},
	}
	c.Flags().BoolVarP(&b.all, "all-namespaces", "A", false, "What is in all namespaces; of a hub, its registrations too")
	c.Flags().StringVarP(&b.file, "filename", "f", "", "File to write, which only you can read, in place of the standard output")
	c.Flags().BoolVar(&b.registrations, flagRegistrations, false, "With --all-namespaces: the registrations of clusters and their credentials are in it; true by default with --filename")
	c.Flags().StringVar(&b.hub.clusters, "cluster-namespace", "tapp-system", "Namespace of the hub that has the registrations")
	c.Flags().StringVar(&b.hub.charts, "charts-namespace", v1beta1.DefaultChartNamespace, "Namespace of the hub that has the archives of charts")
	return c
}

// flagRegistrations is of both commands.
const flagRegistrations = "registrations"

func (b *command) run(ctx context.Context, found *collection) error {
	if err := found.collect(ctx); err != nil {
		return err
	}
	if err := found.hub(ctx, b.hub); err != nil {
		return err
	}
	for _, w := range found.warnings {
		_, _ = fmt.Fprintln(b.Streams.ErrOut, "Warning:", b.Clean(w))
	}
	if len(found.out) == 0 {
		_, _ = fmt.Fprintln(b.Streams.ErrOut, "Nothing to back up was found.")
		return nil
	}
	write := func(w io.Writer) error { return encode(w, found.out) }
	if b.file == "" {
		return write(b.Streams.Out)
	}
	return writeFile(b.file, write)
}
