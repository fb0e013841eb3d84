// Package backup is `kubectl tapp backup` and `kubectl tapp restore`: TApps with their
// history, their claims, and of their status what cannot be observed anew, as a file of
// YAML documents, and back from it into a cluster that lost them.
package backup

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
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

// The resources that are read and written.
var (
	tapps     = schema.GroupVersionResource{Group: tappv1.GroupName, Version: "v1", Resource: "tapps"}
	revisions = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "controllerrevisions"}
	claims    = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	volumes   = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"}
	spaces    = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
)

const (
	// manager owns the fields that a restore writes.
	manager = "kubectl-tapp"
	// workers is how many requests are under way at once.
	workers = 16
)

// NewBackup is the command `backup`.
func NewBackup(o Options) *cobra.Command {
	all := false
	c := &cobra.Command{
		Use:   "backup [TAPP ...]",
		Short: "Write TApps with their history and claims as YAML",
		Long: `Write TApps with their history and claims to the standard output, as YAML documents: those that are named, or all of the namespace.

"kubectl tapp restore" reads them. They have TApps, ControllerRevisions and PersistentVolumeClaims, and no data of volumes: take snapshots of
those, or keep the volumes by their reclaim policy Retain. What belongs to the namespace, such as Services and Secrets, is not in it either.`,
		Example: "  kubectl tapp backup -n shop > shop.yaml\n  kubectl tapp backup -A > all.yaml",
		RunE: func(c *cobra.Command, names []string) error {
			if all && len(names) > 0 {
				return o.Usage(errors.New("give names, or --all-namespaces, not both"))
			}
			cluster, err := o.Connect()
			if err != nil {
				return err
			}
			namespace := cluster.Namespace
			if all {
				namespace = metav1.NamespaceAll
			}
			return o.backup(c.Context(), cluster, namespace, names)
		},
	}
	c.Flags().BoolVarP(&all, "all-namespaces", "A", false, "The TApps of all namespaces")
	return c
}

func (o Options) backup(ctx context.Context, cluster *Cluster, namespace string, names []string) error {
	found, warnings, err := collect(ctx, cluster, namespace, names)
	if err != nil {
		return err
	}
	for _, w := range warnings {
		_, _ = fmt.Fprintln(o.Streams.ErrOut, "Warning:", o.Clean(w))
	}
	if len(found) == 0 {
		_, _ = fmt.Fprintln(o.Streams.ErrOut, "No TApps found.")
		return nil
	}
	return encode(o.Streams.Out, found)
}
