package tapp

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/controller/write"
	plan "tkestack.io/tapp/plan/tapp"
	"tkestack.io/tapp/process/parallel"
)

// nodesAtOnce is how many nodes a sync reads at a time.
const nodesAtOnce = 16

// readNodes reads nodes live. No cache will do: evidence that kills pods must
// not be old, and a watch on nodes costs more than the rare reads. What cannot be
// read is no evidence, and is left out.
func (c *Controller) readNodes(ctx context.Context, names []string) (map[string]plan.NodeState, error) {
	var (
		mu     sync.Mutex
		out    = make(map[string]plan.NodeState, len(names))
		errs   write.Failures
		places = make(chan struct{}, nodesAtOnce)
		reads  parallel.Group
	)
	for _, name := range names {
		places <- struct{}{}
		reads.Do(func() {
			defer func() { <-places }()
			node, err := c.Core.Nodes().Get(ctx, name, metav1.GetOptions{})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case apierrors.IsNotFound(err):
				out[name] = plan.NodeState{}
			case err != nil:
				err = fmt.Errorf("%s: %w", name, err)
				errs.Add("read a node", err.Error(), err)
			default:
				out[name] = nodeState(node)
			}
		})
	}
	reads.Wait()
	return out, errs.Join()
}

func nodeState(node *corev1.Node) plan.NodeState {
	s := plan.NodeState{Exists: true}
	for _, t := range node.Spec.Taints {
		if t.Key == corev1.TaintNodeOutOfService {
			s.OutOfService = true
		}
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			s.NotReadySince = c.LastTransitionTime.Time
		}
	}
	return s
}
