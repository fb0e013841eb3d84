package tapp

import (
	"fmt"
	"strings"
	"testing"
)

func TestStorage(t *testing.T) {
	const many = `spec.replicas: Invalid value: 20000: the TApp and its status have to fit into 1.5 MiB, and spec.neverMigrate keeps a node name for each instance: 15500 instances do; split it into several TApps`
	const full = `spec.replicas: Invalid value: 3: the TApp and its status have to fit into 1.5 MiB, and the spec leaves no room for a status; make it smaller, or split it into several TApps`
	const few = `spec.replicas: Invalid value: 60: the TApp and its status have to fit into 1.5 MiB, and the spec is so large: 50 instances do; split it into several TApps`
	testRule(t, "Storage", []ruleCase{
		{"absent", "replicas: null", ""},
		{"most", "replicas: 50000", ""},
		{"too many, of which another rule tells", "{replicas: 50001, neverMigrate: true}", ""},
		{"most with nodes", "{replicas: 15500, neverMigrate: true}", ""},
		{"too many with nodes", "{replicas: 20000, neverMigrate: true}", many},
		{"no room for a status", fmt.Sprintf("{replicas: 3, serviceName: %s}", strings.Repeat("s", 1_480_000)), full},
		{"room for few", fmt.Sprintf("{replicas: 60, serviceName: %s}", strings.Repeat("s", 1_472_000)), few},
		{"room for these few", fmt.Sprintf("{replicas: 40, serviceName: %s}", strings.Repeat("s", 1_472_000)), ""},
	})
}
