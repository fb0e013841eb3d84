// Package migrate is `kubectl tapp migrate`: it makes a TApp of a running StatefulSet, whose pods and claims stay.
package migrate

import (
	"context"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"tkestack.io/tapp/crd/client"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// Options are what the plugin lends to the command.
type Options struct {
	Streams genericiooptions.IOStreams
	// Usage makes an error one of the command line.
	Usage func(error) error
	// Args are the arguments that the command takes.
	Args cobra.PositionalArgs
	// Clean escapes what does not print, and WithoutState drops what the cluster made of an
	// object.
	Clean        func(string) string
	WithoutState func(*unstructured.Unstructured) *unstructured.Unstructured
	// Flags adds the flags of commands that write.
	Flags func(*cobra.Command) *Flags
	// Connect to the cluster that the flags name.
	Connect func() (*Cluster, error)
}

// Flags of commands that write, as they are when the command runs.
type Flags struct {
	// Validate them before they are used.
	Validate func() error
	// DryRun is none, client or server. Manager owns the fields that change. Output is the
	// format.
	DryRun, Manager, Output *string
	// Report prints what was done to an object.
	Report func(object runtime.Object, done string) error
}

// Cluster that the flags name.
type Cluster struct {
	Namespace string
	TApps     client.Interface
	Core      corev1client.CoreV1Interface
	Apps      appsv1client.AppsV1Interface
	// Tracking is the label by which Argo CD tracks objects, as the controller has it.
	Tracking func(context.Context, *tappv1.TApp) string
	// Compute says what the controller would do to a TApp with these pods, and Follow calls
	// done whenever that changes, until it is true.
	Compute func(context.Context, *tappv1.TApp, []*corev1.Pod) (*View, error)
	Follow  func(ctx context.Context, t *tappv1.TApp, done func(*View) (bool, error)) error
}

// View of a TApp is what the planner makes of it.
type View struct {
	TApp *tappv1.TApp
	Pods []*corev1.Pod
	// Disruptive are the steps of its rollout that stop or start a container, as sentences.
	Disruptive []string
	// Unobserved: the controller has not planned by the present spec yet.
	Unobserved bool
	// Outcome says whether the rollout is over, and whether it cannot go on.
	Outcome func() (bool, error)
}
