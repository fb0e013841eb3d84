package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"tkestack.io/tapp/plugin/dashboard"
)

func newDashboard(e *environment, version string) *cobra.Command {
	return dashboard.New(dashboard.Options{
		Streams: e.streams,
		Usage:   func(err error) error { return usageError{err} },
		Connect: func() (*dashboard.Target, error) { return e.target(version) },
	})
}

// target of a dashboard. Where no flag names a namespace it shows all.
func (e *environment) target(version string) (*dashboard.Target, error) {
	namespace, named, err := e.kubeconfig.Namespace()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	if !named {
		namespace = ""
	}
	config, err := e.kubeconfig.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.UserAgent = rest.DefaultKubernetesUserAgent()
	fixed, err := e.fix()
	if err != nil {
		return nil, err
	}
	return &dashboard.Target{
		Config: config, ControllerNamespace: e.controllerNamespace, Namespace: namespace,
		Verbs: func(ctx context.Context, args []string, out io.Writer) error {
			return runVerb(ctx, version, fixed, args, out)
		},
	}, nil
}

// runVerb runs a command line of the plugin as its program would, on a fixed connection.
func runVerb(ctx context.Context, version string, fixed *connection, args []string, out io.Writer) error {
	root := newRoot(version, Streams{In: strings.NewReader(""), Out: out, ErrOut: out}, fixed)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if code := exitCode(0); errors.As(err, &code) {
		return nil // it has said why
	}
	return err
}
