package failover

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tkestack.io/tapp/test/bench/program"
	"tkestack.io/tapp/test/bench/record"
	"tkestack.io/tapp/test/local"
)

const (
	leaseNamespace = "--leader-elect-resource-namespace="
	// leaseName is the only one that kube-controller-manager's own account may have.
	leaseName = "--leader-elect-resource-name=kube-controller-manager"
)

// TApp is `tapp controller`, with the times of its Lease that it has by default.
func TApp(binary, kubeconfig string) Contender {
	return Contender{
		Name: record.TApp, Resource: schema.GroupVersionResource{Group: "apps.tkestack.io", Version: "v1", Resource: "tapps"}, Kind: "TApp",
		Launch: func(namespace string) (*program.Process, error) {
			address, err := local.FreeAddress()
			if err != nil {
				return nil, err
			}
			return program.Run(binary, "controller", "--kubeconfig", kubeconfig, "--metrics-address", address, leaseNamespace+namespace, leaseName)
		},
	}
}

// StatefulSet is kube-controller-manager with this controller alone, by the command line with which the cluster's own
// runs, and the times of its Lease that it has by default, which are TApp's.
func StatefulSet(line []string) Contender {
	return Contender{
		Name: record.StatefulSetAlone, Resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}, Kind: "StatefulSet",
		Launch: func(namespace string) (*program.Process, error) {
			own := []string{"--controllers=statefulset-controller", "--leader-elect=true", "--secure-port=0", leaseNamespace + namespace, leaseName}
			return program.Run(line[0], append(line[1:len(line):len(line)], own...)...)
		},
	}
}
