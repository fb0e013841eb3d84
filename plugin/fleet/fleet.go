// Package fleet has the commands `kubectl tapp fleet`: they register clusters with a hub, and
// show and steer the rollouts of its AppSets.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	rbacv1client "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"tkestack.io/tapp/crd/client"
	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/fleet/kubeconfig"
)

// manager owns the fields that the commands write.
const manager = "kubectl-tapp"

// Options are what the commands share with others.
type Options struct {
	// Kubeconfig is what the common flags lead to.
	Kubeconfig clientcmd.ClientConfig
	Streams    genericiooptions.IOStreams
	// Usage makes an error one of the command line.
	Usage func(error) error
	// Screen shows frames; moving: on a terminal, one in the place of the other.
	Screen func(moving bool) Screen
	// Apply is a dry run of kubectl apply for the AppSets of files, and Changes the end of a
	// command that tells of a change.
	Apply   func(ctx context.Context, files []string, serverSide bool) ([]Applied, error)
	Changes error
	// Instance explains one instance of a TApp in the cluster and namespace of a kubeconfig.
	Instance func(ctx context.Context, member clientcmd.ClientConfig, tapp, id, output string) error
}

// common are the flags of all commands.
type common struct {
	Options
	clusterNamespace string
	allowLocal       bool
}

// New is the command `fleet`.
func New(o Options) *cobra.Command {
	c := &cobra.Command{
		Use:   "fleet",
		Short: "Register the clusters of a fleet; see and steer the rollouts of AppSets",
		Args:  cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return o.Usage(fmt.Errorf("there is no command %q", args[0]))
			}
			return c.Help()
		},
	}
	all := &common{Options: o}
	c.PersistentFlags().StringVar(&all.clusterNamespace, "cluster-namespace", "tapp-system", "Namespace of the hub that has the registrations")
	c.PersistentFlags().BoolVar(&all.allowLocal, "allow-local", false, "Take members at loopback and link-local addresses; the hub's controller needs --allow-local-clusters for it")
	c.AddCommand(newGet(all), newStatus(all), newPlan(all), newExplain(all), newConfirm(all), newPause(all), newResume(all),
		newHistory(all), newUndo(all), newRetry(all), newOrphans(all))
	c.AddCommand(newJoin(all), newClusters(all), newSecure(all), newAccept(all))
	return c
}

// session is a connection to a cluster.
type session struct {
	config *rest.Config
	// Clients of what is used, one by one: one of all kinds makes the program a quarter larger.
	core         corev1client.CoreV1Interface
	apps         appsv1client.AppsV1Interface
	rbac         rbacv1client.RbacV1Interface
	coordination coordinationv1client.CoordinationV1Interface
	discovery    discovery.DiscoveryInterface
	// appSets of the hub.
	appSets client.AppSetsGetter
	objects dynamic.Interface
}

func connect(config *rest.Config) (*session, error) {
	s := &session{config: config}
	var errs [7]error
	s.core, errs[0] = corev1client.NewForConfig(config)
	s.apps, errs[1] = appsv1client.NewForConfig(config)
	s.rbac, errs[2] = rbacv1client.NewForConfig(config)
	s.coordination, errs[3] = coordinationv1client.NewForConfig(config)
	s.discovery, errs[4] = discovery.NewDiscoveryClientForConfig(config)
	s.appSets, errs[5] = client.NewAppSets(config)
	s.objects, errs[6] = dynamic.NewForConfig(config)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return s, nil
}

// hub is what the common flags lead to.
func (c *common) hub() (*session, error) { return connectBy(c.Kubeconfig) }

func connectBy(by clientcmd.ClientConfig) (*session, error) {
	config, err := by.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	return connect(config)
}

// uid of a cluster: that of its namespace kube-system.
func (s *session) uid(ctx context.Context) (types.UID, error) {
	system, err := s.core.Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("asking for the UID of namespace %s: %w", metav1.NamespaceSystem, err)
	}
	return system.UID, nil
}

// find the registration of a cluster; nil: there is none.
func find(all []registration, cluster string) *registration {
	for i := range all {
		if all[i].name == v1beta1.FoldClusterName(cluster) {
			return &all[i]
		}
	}
	return nil
}

// member connects to a registered cluster as the hub's controller does.
func (c *common) member(r *registration) (*session, error) {
	if r.profile != nil {
		return nil, fmt.Errorf("cluster %s is registered by a ClusterProfile: the programs that make its credentials are the hub's controller's", r.name)
	}
	config, err := kubeconfig.Judge(r.kubeconfig(), c.allowLocal)
	if err != nil {
		return nil, fmt.Errorf("the kubeconfig of cluster %s is not used: %w", r.name, err)
	}
	return connect(config)
}

func (c *common) say(format string, args ...any) {
	_, _ = fmt.Fprintf(c.Streams.Out, format+"\n", args...)
}

// one requires the name of a cluster.
func (c *common) one(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return c.Usage(errors.New("the name of a cluster is missing"))
	case len(args) > 1:
		return c.Usage(fmt.Errorf("%q is one argument too many", args[1]))
	case strings.TrimSpace(args[0]) == "":
		return c.Usage(errors.New("the name of the cluster is empty"))
	}
	return nil
}
