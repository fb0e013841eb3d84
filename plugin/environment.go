package plugin

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/dynamic"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"tkestack.io/tapp/crd/client"
	"tkestack.io/tapp/plugin/fleet"
)

// environment is what all commands share.
type environment struct {
	kubeconfig clientcmd.ClientConfig
	streams    Streams
	overrides  *clientcmd.ConfigOverrides
	// controllerNamespace is where the controller publishes its policy.
	controllerNamespace string
}

// newEnvironment adds the flags by which kubectl finds its cluster. cli-runtime's
// ConfigFlags would add the same ones, and kustomize with them: the program would be
// half as large again. fixed, if there is one, is where a command goes whose flags name no
// other namespace.
func newEnvironment(root *cobra.Command, streams Streams, fixed *connection) *environment {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	overrides := &clientcmd.ConfigOverrides{ClusterDefaults: clientcmd.ClusterDefaults}
	flags := root.PersistentFlags()
	flags.StringVar(&rules.ExplicitPath, clientcmd.RecommendedConfigPathFlag, "", "Path of the kubeconfig")
	clientcmd.BindOverrideFlags(overrides, flags, clientcmd.RecommendedConfigOverrideFlags(""))
	e := &environment{kubeconfig: clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides), streams: streams, overrides: overrides}
	if fixed != nil {
		*overrides = fixed.overrides
		e.kubeconfig = clientcmd.NewNonInteractiveClientConfig(fixed.kubeconfig, fixed.overrides.CurrentContext, overrides, nil)
	}
	flags.StringVar(&e.controllerNamespace, flagControllerNamespace, defaultControllerNamespace, "Namespace of the controller, which publishes its policy there")
	return e
}

// connection is where the commands of a dashboard go, whatever becomes of the kubeconfig
// and its current context meanwhile.
type connection struct {
	kubeconfig api.Config
	overrides  clientcmd.ConfigOverrides
}

// fix the connection as it is now, without its namespace.
func (e *environment) fix() (*connection, error) {
	raw, err := e.kubeconfig.RawConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	c := &connection{kubeconfig: raw, overrides: *e.overrides}
	c.overrides.CurrentContext = cmp.Or(c.overrides.CurrentContext, raw.CurrentContext)
	c.overrides.Context.Namespace = ""
	return c, nil
}

// session is a connection to the cluster that the flags name.
type session struct {
	namespace string
	// enforced: a flag names the namespace.
	enforced bool
	tapps    client.Interface
	core     corev1client.CoreV1Interface
	apps     appsv1client.AppsV1Interface
	dynamic  dynamic.Interface
	// controllerNamespace is where the controller publishes its policy.
	controllerNamespace string
	// published is the policy of the controller, and resize says whether pods can be
	// resized; nil: not asked yet.
	published *policy
	resize    *bool
}

// noLimit leaves it to the API server (priority and fairness) to limit requests.
const noLimit = -1

func (e *environment) connect() (*session, error) {
	namespace, enforced, err := e.kubeconfig.Namespace()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config, err := e.kubeconfig.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.QPS, config.Burst = noLimit, noLimit
	config.UserAgent = rest.DefaultKubernetesUserAgent()
	config.WarningHandlerWithContext = nil
	config.WarningHandler = rest.NewWarningWriter(e.streams.ErrOut,
		rest.WarningWriterOptions{Deduplicate: true, Color: bool(newPainter(e.streams.ErrOut))})
	s := &session{namespace: namespace, enforced: enforced, controllerNamespace: e.controllerNamespace}
	if s.tapps, err = client.New(config); err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	if s.core, err = corev1client.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	if s.apps, err = appsv1client.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	if s.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return s, nil
}

// newFleet is the command `fleet`.
func newFleet(e *environment) *cobra.Command {
	return fleet.New(fleet.Options{
		Kubeconfig: e.kubeconfig, Streams: e.streams,
		Usage:   func(err error) error { return usageError{err} },
		Screen:  func(moving bool) fleet.Screen { return newScreen(e.streams.Out, moving) },
		Changes: exitChanges,
		Apply: func(ctx context.Context, files []string, serverSide bool) ([]fleet.Applied, error) {
			return e.applyAppSets(ctx, files, serverSide)
		},
		Instance: func(ctx context.Context, member clientcmd.ClientConfig, tapp, id, output string) error {
			there := *e
			there.kubeconfig = member
			return there.explain(ctx, tapp, id, output)
		},
	})
}
