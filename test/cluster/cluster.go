// Package cluster gives a test a namespace of its own on the real cluster that
// TAPP_KUBECONFIG names, and runs the controller for it in the process of the test.
package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Patience is how long anything may take. The machine may be busy; nothing waits
// longer than it has to.
const Patience = 3 * time.Minute

// Cluster is what tests need to know of one.
type Cluster struct {
	Kubeconfig string // file
	Config     *rest.Config
	Kube       *kubernetes.Clientset
}

// Connect to the cluster of the environment, as the given user agent. The API server
// is the only limit of requests, and its warnings are not printed.
func Connect(agent string) (*Cluster, error) {
	c := &Cluster{Kubeconfig: os.Getenv("TAPP_KUBECONFIG")}
	if c.Kubeconfig == "" {
		return nil, errors.New("TAPP_KUBECONFIG names no cluster: run these tests by `make`, which lists its targets, or on the cluster of `make up`")
	}
	var err error
	if c.Config, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig); err != nil {
		return nil, fmt.Errorf("reading TAPP_KUBECONFIG: %w", err)
	}
	c.Config.QPS, c.Config.Burst, c.Config.UserAgent = -1, -1, agent
	c.Config.WarningHandler = rest.NoWarnings{}
	if c.Kube, err = kubernetes.NewForConfig(c.Config); err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return c, nil
}

// Program is the path of one that the cluster comes with: kubectl, helm.
func (c *Cluster) Program(name string) string {
	return filepath.Join(filepath.Dir(c.Kubeconfig), "bin", name)
}

// LogFile is the path of one of the cluster's.
func (c *Cluster) LogFile(name string) string {
	return filepath.Join(filepath.Dir(c.Kubeconfig), "logs", name)
}
