// Package cluster is the rig of all tests on a real cluster, which TAPP_KUBECONFIG names:
//
//	Main, ApplyCRDs          what a suite does before and after its tests
//	Connect, Cluster         the cluster: clients, programs as kubectl, logs, the audit log
//	New, Rig                 a namespace for one test; if the test fails, what is in it is printed
//	Eventually, Never        conditions to wait for, and what may not happen
//	Change, WaitReady, ...   TApps, pods, events and kubectl in the namespace
//	Rig.Start, Controller    the controller in the process of the test, for the namespace alone
//	Launch, Process          the program as a process of its own
//
// A suite embeds the Rig in a type of its own, and adds what only this suite needs.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"tkestack.io/tapp/crd/client"
	"tkestack.io/tapp/test/audit"
)

// Patience is how long anything may take. It ends what hangs: the machine may be busy,
// and nothing waits longer than it has to.
const Patience = 5 * time.Minute

// Cluster is what tests need to know of one.
type Cluster struct {
	Kubeconfig string // file
	Config     *rest.Config
	Kube       *kubernetes.Clientset // in protobuf: a raw request has to ask for JSON

	tapps *client.Client
	apps  *client.AppClient
}

// Connect to the cluster of the environment, as the given user agent. The API server
// is the only limit of requests, and its warnings are not printed.
func Connect(agent string) (*Cluster, error) {
	kubeconfig := os.Getenv("TAPP_KUBECONFIG")
	if kubeconfig == "" {
		return nil, errors.New("TAPP_KUBECONFIG names no cluster: run these tests by `make`, which lists its targets, or on the cluster of `make up`")
	}
	c, err := ConnectTo(kubeconfig, agent)
	if err != nil {
		return nil, fmt.Errorf("TAPP_KUBECONFIG: %w", err)
	}
	return c, nil
}

// ConnectTo is Connect to the cluster of a kubeconfig, which stands in the cluster's
// directory.
func ConnectTo(kubeconfig, agent string) (*Cluster, error) {
	c := &Cluster{Kubeconfig: kubeconfig}
	var err error
	if c.Config, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig); err != nil {
		return nil, fmt.Errorf("reading %s: %w", kubeconfig, err)
	}
	c.Config.QPS, c.Config.Burst, c.Config.UserAgent = -1, -1, agent
	c.Config.WarningHandler = rest.NoWarnings{}
	protobuf := rest.CopyConfig(c.Config)
	protobuf.ContentType = runtime.ContentTypeProtobuf
	if c.Kube, err = kubernetes.NewForConfig(protobuf); err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	if c.tapps, err = client.New(c.Config); err != nil {
		return nil, fmt.Errorf("making a client for TApps: %w", err)
	}
	if c.apps, err = client.NewApps(c.Config); err != nil {
		return nil, fmt.Errorf("making a client for Apps: %w", err)
	}
	return c, nil
}

// TApps of a namespace.
func (c *Cluster) TApps(namespace string) client.TAppInterface { return c.tapps.TApps(namespace) }

// Apps of a namespace.
func (c *Cluster) Apps(namespace string) client.AppInterface { return c.apps.Apps(namespace) }

// Program is the path of one: of kubectl and helm those that the cluster comes with, of
// tapp and devcluster those that TAPP_BIN and TAPP_DEVCLUSTER name.
func (c *Cluster) Program(name string) string {
	variable := map[string]string{"tapp": "TAPP_BIN", "devcluster": "TAPP_DEVCLUSTER"}[name]
	if path := os.Getenv(variable); variable != "" && path != "" {
		return path
	}
	return filepath.Join(filepath.Dir(c.Kubeconfig), "bin", name)
}

// Command runs a program with an input on the cluster, and returns all that it prints.
func (c *Cluster) Command(ctx context.Context, input, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, c.Program(program), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s %s: %w", program, strings.Join(args, " "), err)
	}
	return string(out), err
}

// Devcluster runs a command of the program that started the cluster, such as one that
// stops a component.
func (c *Cluster) Devcluster(ctx context.Context, args ...string) (string, error) {
	return c.Command(ctx, "", "devcluster", append(args, "--dir", filepath.Dir(c.Kubeconfig))...)
}

// LogFile is the path of one of the cluster's.
func (c *Cluster) LogFile(name string) string {
	return filepath.Join(filepath.Dir(c.Kubeconfig), "logs", name)
}

// FollowAudit follows the audit log from now on.
func (c *Cluster) FollowAudit() (*audit.Log, error) { return audit.Follow(c.LogFile("audit.log")) }
