package advdeployment

import (
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// numbers of instances, as the child's own controller tells them.
type numbers struct {
	// desired are those that are to run.
	desired int32
	// current are all, and updated those that have the content that they are to have.
	current, updated, ready, available int32
	// observed says that the child's controller has observed its present generation.
	observed bool
	// failures that the child's own controller tells of.
	failures []failure
}

type failure struct{ reason, message string }

// numbersOf a podSet. A child that is not ours has none.
func (c *computation) numbersOf(u *unit) numbers {
	n := numbers{desired: u.Replicas}
	if u.have == nil {
		return n
	}
	o := u.have.Object
	if live, found, _ := unstructured.NestedInt64(o, "spec", "replicas"); found && c.in.Autoscaled[u.child] {
		n.desired = int32(live)
	}
	n.desired -= stopped(o, n.desired)
	number := func(field string) int32 {
		value, _, _ := unstructured.NestedInt64(o, "status", field)
		return int32(value)
	}
	n.current, n.ready, n.available = number("replicas"), number("readyReplicas"), number("availableReplicas")
	generation, found, _ := unstructured.NestedInt64(o, "status", "observedGeneration")
	n.observed = found && generation >= u.have.GetGeneration()
	if n.observed && u.have.GetAnnotations()[v1beta1.AnnotationRevision] == u.Hash {
		n.updated = number("updatedReplicas")
		if u.have.GetAnnotations()[v1beta1.AnnotationFrom] != "" {
			n.updated = changed(u)
		}
	}
	if left := leftBehind(o); u.child.Kind == TApp && left > 0 { // in place of those that are left, others may be missing
		n.current = max(n.current, n.desired+left)
	}
	if n.observed {
		n.failures = failuresOf(u.child.Kind, o)
	}
	return n
}

// stopped instances of a TApp, which are not to run.
func stopped(o map[string]any, replicas int32) (out int32) {
	statuses, _, _ := unstructured.NestedStringMap(o, "spec", "statuses")
	start, _, _ := unstructured.NestedInt64(o, "spec", "ordinals", "start")
	for id, status := range statuses {
		if n, err := strconv.Atoi(id); err == nil && n >= int(start) && n < int(start)+int(replicas) && status == "Killed" {
			out++
		}
	}
	return out
}

// leftBehind are the instances of a TApp that are not in its range, and are there yet.
func leftBehind(o map[string]any) (out int32) {
	statuses, _, _ := unstructured.NestedStringMap(o, "status", "statuses")
	start, _, _ := unstructured.NestedInt64(o, "spec", "ordinals", "start")
	replicas, _, _ := unstructured.NestedInt64(o, "spec", "replicas")
	for id := range statuses {
		if n, err := strconv.ParseInt(id, 10, 64); err == nil && (n < start || n >= start+replicas) {
			out++
		}
	}
	return out
}

// failing are the conditions by which the controller of a kind says that it cannot go on.
var failing = map[Kind]map[string]string{
	TApp:       {"Stalled": "True"},
	Deployment: {"ReplicaFailure": "True", "Progressing": "False"},
}

// failuresOf a child, as its own controller tells them.
func failuresOf(kind Kind, o map[string]any) (out []failure) {
	conditions, _, _ := unstructured.NestedSlice(o, "status", "conditions")
	for _, entry := range conditions {
		c, _ := entry.(map[string]any)
		condition, _ := c["type"].(string)
		if bad, known := failing[kind][condition]; known && c["status"] == bad {
			reason, _ := c["reason"].(string)
			text, _ := c["message"].(string)
			out = append(out, failure{reason, text})
		}
	}
	return out
}
