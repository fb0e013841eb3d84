package tapp

import "testing"

func TestStorage(t *testing.T) {
	const many = `spec.replicas: Invalid value: 20000: the TApp and its status have to fit into 1.5 MiB, and spec.neverMigrate keeps a node name for each instance: 15500 instances do; split it into several TApps`
	testRule(t, "Storage", []ruleCase{
		{"absent", "replicas: null", ""},
		{"most", "replicas: 50000", ""},
		{"too many, of which another rule tells", "{replicas: 50001, neverMigrate: true}", ""},
		{"most with nodes", "{replicas: 15500, neverMigrate: true}", ""},
		{"too many with nodes", "{replicas: 20000, neverMigrate: true}", many},
	})
}
