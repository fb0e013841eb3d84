//go:build cluster

package nodes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// containers watches what runs on all nodes, by the control groups of the machine's
// processes: on a node that is lost containers go on, and nobody else can tell.
type containers struct {
	mu    sync.Mutex
	names map[types.UID]string // of all pods that there ever were
	opted map[string]bool      // names that may run twice: somebody asked for it
	twice map[string]string    // by name
}

// watchContainers notes pods of one name that run at the same time, and fails the
// test at its end, unless the names were asked for.
func watchContainers(r *rig, opted ...string) *containers {
	c := &containers{names: map[types.UID]string{}, opted: map[string]bool{}, twice: map[string]string{}}
	for _, name := range opted {
		c.opted[name] = true
	}
	r.witness.Follow(func(_, after *corev1.Pod) {
		if after != nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.names[after.UID] = after.Name
		}
	})
	for _, p := range r.Pods() {
		c.mu.Lock()
		c.names[p.UID] = p.Name
		c.mu.Unlock()
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(250 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				c.count()
			}
		}
	}()
	r.Cleanup(func() {
		cancel()
		<-done
		c.conclude(r.T)
	})
	return c
}

// count looks once. Processes are read one after the other, so that two pods of a
// name have to be seen twice.
func (c *containers) count() {
	first := c.doubles()
	if len(first) > 0 {
		for name, where := range c.doubles() {
			if first[name] != "" {
				c.mu.Lock()
				c.twice[name] = where
				c.mu.Unlock()
			}
		}
	}
}

// ranTwice says whether two pods of that name were ever seen to run at once.
func (c *containers) ranTwice(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.twice[name] != ""
}

// doubles are the names of which more than one pod runs.
func (c *containers) doubles() map[string]string {
	running := runningPods()
	c.mu.Lock()
	defer c.mu.Unlock()
	places := map[string][]string{}
	for uid, node := range running {
		if name, ours := c.names[uid]; ours {
			places[name] = append(places[name], fmt.Sprintf("%s on %s", uid, node))
		}
	}
	out := map[string]string{}
	for name, where := range places {
		if len(where) > 1 {
			slices.Sort(where)
			out[name] = strings.Join(where, ", ")
		}
	}
	return out
}

func (c *containers) conclude(t *testing.T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, where := range c.twice {
		t.Logf("two pods of %s ran at the same time: %s", name, where)
		if !c.opted[name] {
			t.Errorf("nobody asked for two pods of %s", name)
		}
	}
}

// inPod finds the pod and its node in the path of a control group.
var inPod = regexp.MustCompile(`/(node[0-9]+)/kubepods/\S*pod([0-9a-f]{8}-[0-9a-f-]{27})/`)

// runningPods are the pods of which a container has a process on this machine, where
// all nodes are, with the node.
func runningPods() map[types.UID]string {
	out := map[types.UID]string{}
	files, _ := filepath.Glob("/proc/[0-9]*/cgroup")
	for _, file := range files {
		groups, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		found := inPod.FindSubmatch(groups)
		if found == nil {
			continue
		}
		// The first process of each pod only keeps its namespaces.
		name, err := os.ReadFile(filepath.Join(filepath.Dir(file), "comm"))
		if err != nil || strings.TrimSpace(string(name)) == "pause" {
			continue
		}
		out[types.UID(found[2])] = string(found[1])
	}
	return out
}
