package main

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"tkestack.io/tapp/devcluster/cluster"
	"tkestack.io/tapp/devcluster/state"
)

func TestParse(t *testing.T) {
	for line, want := range map[string]struct {
		command
		problem string
	}{
		"up":                                   {command: command{name: "up"}},
		"up --cert-manager --nodes 1":          {command: command{name: "up", certManager: true, nodes: "1"}},
		"--dir d push a.tar x:1 y:1":           {command: command{name: "push", dir: "d", arguments: []string{"a.tar", "x:1", "y:1"}}},
		"stop etcd --dir d":                    {command: command{name: "stop", dir: "d", arguments: []string{"etcd"}}},
		"push a.tar":                           {problem: "push takes an archive and at least one name; see devcluster --help"},
		"cut node2":                            {command: command{name: "cut", arguments: []string{"node2"}}},
		"up --node-grace 20s --metrics-server": {command: command{name: "up", metricsServer: true, nodeGrace: 20 * time.Second}},
		"stop":                                 {problem: "stop takes 1 argument; see devcluster --help"},
		"need":                                 {problem: "need takes 1 argument; see devcluster --help"},
		"down now":                             {problem: "down takes no arguments; see devcluster --help"},
	} {
		t.Run(line, func(t *testing.T) {
			got, err := parse(strings.Fields(line))
			if want.problem != "" {
				if err == nil || err.Error() != want.problem {
					t.Errorf("got %v, want %s", err, want.problem)
				}
				return
			}
			if len(got.arguments) == 0 {
				got.arguments = nil
			}
			if err != nil || !reflect.DeepEqual(got, want.command) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

// TestSize: what --nodes says in words.
func TestSize(t *testing.T) {
	for nodes, want := range map[string]cluster.Size{
		"":    {Nodes: 2, Simulated: 20},
		"3":   {Nodes: 3, Simulated: 20},
		"sim": {Simulated: 20},
		"api": {APIOnly: true},
	} {
		if got, err := (command{nodes: nodes}).size(state.Dir{Runtime: t.TempDir()}); err != nil || got != want {
			t.Errorf("--nodes=%s: %+v, %v", nodes, got, err)
		}
	}
	if _, err := (command{nodes: "apis"}).size(state.Dir{Runtime: t.TempDir()}); err == nil || err.Error() != `--nodes: "apis" is neither a number nor "sim" or "api"` {
		t.Errorf("got %v", err)
	}
}
