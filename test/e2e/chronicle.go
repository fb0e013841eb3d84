//go:build cluster

package e2e

import (
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"tkestack.io/tapp/test/cluster"
)

// longestChronicle is how many steps of a namespace's pods are kept: the last ones,
// because a test fails on what came last.
const longestChronicle = 60

// chronicle is what the pods of a namespace went through, for whoever has to find out
// why a test failed when the namespace is gone.
type chronicle struct {
	mu    sync.Mutex
	lines []string
}

// keepChronicle writes until stop is called.
func keepChronicle(ns string) (c *chronicle, stop func()) {
	c = &chronicle{}
	return c, suite.feed.follow(func(s step) {
		if s.pod().Namespace == ns {
			c.write(s)
		}
	})
}

func (c *chronicle) write(s step) {
	line := "pod " + s.pod().Name + " is gone"
	if s.New != nil {
		line = cluster.PodLine(s.New)
		if since := readySince(s.New); since != "" {
			line += ", Ready is so since " + since
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.lines) == longestChronicle {
		c.lines = c.lines[1:]
	}
	c.lines = append(c.lines, time.Now().Format(time.StampMilli)+" "+line)
}

func readySince(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.LastTransitionTime.Local().Format(time.TimeOnly)
		}
	}
	return ""
}

func (c *chronicle) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprintf("the last steps of its pods:\n%s\n", strings.Join(c.lines, "\n"))
}
