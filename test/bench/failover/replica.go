package failover

import (
	"bytes"
	"fmt"
	"os/exec"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"tkestack.io/tapp/test/bench/record"
	"tkestack.io/tapp/test/local"
)

// Replica is a process of a controller.
type Replica struct {
	cmd *exec.Cmd
	log bytes.Buffer
}

func launch(name string, arguments ...string) (*Replica, error) {
	r := &Replica{cmd: exec.Command(name, arguments...)}
	r.cmd.Stdout, r.cmd.Stderr = &r.log, &r.log
	if err := r.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	return r, nil
}

const (
	leaseNamespace = "--leader-elect-resource-namespace="
	// leaseName is the only one that kube-controller-manager's own account may have.
	leaseName = "--leader-elect-resource-name=kube-controller-manager"
)

// TApp is `tapp controller`, with the times of its Lease that it has by default.
func TApp(binary, kubeconfig string) Contender {
	return Contender{
		Name: record.TApp, Resource: schema.GroupVersionResource{Group: "apps.tkestack.io", Version: "v1", Resource: "tapps"}, Kind: "TApp",
		Launch: func(namespace string) (*Replica, error) {
			address, err := local.FreeAddress()
			if err != nil {
				return nil, err
			}
			return launch(binary, "controller", "--kubeconfig", kubeconfig, "--metrics-address", address, leaseNamespace+namespace, leaseName)
		},
	}
}

// StatefulSet is kube-controller-manager with this controller alone, by the command line with which the cluster's own
// runs, and the times of its Lease that it has by default, which are TApp's.
func StatefulSet(line []string) Contender {
	return Contender{
		Name: record.StatefulSetAlone, Resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}, Kind: "StatefulSet",
		Launch: func(namespace string) (*Replica, error) {
			own := []string{"--controllers=statefulset-controller", "--leader-elect=true", "--secure-port=0", leaseNamespace + namespace, leaseName}
			return launch(line[0], append(line[1:len(line):len(line)], own...)...)
		},
	}
}
