package tapp

import (
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/inplace"
)

// settleOwnership adopts pods that are ours by name and labels, and releases
// those whose labels stopped matching.
func (d *decision) settleOwnership() {
	for _, i := range d.instances {
		switch i.state {
		case adoptee:
			// Also above replicas: what an earlier TApp of this name left is ours to remove.
			i.act(Action{Op: OpAdopt, Pod: i.pod, Patch: adoption(d.tapp, i.pod), Reason: "PodWithoutController",
				Why: "the pod has no controller, and has the name and the labels of the instance"})
		case stray:
			i.act(Action{Op: OpRelease, Pod: i.pod, Patch: release(d.tapp, i.pod), Reason: ReasonSelectorMismatch,
				Why: fmt.Sprintf("the labels of the pod no longer match the selector %s", d.selector)})
		case foreign:
			if i.running() {
				i.hold("NameTaken", whyTaken(i.pod))
			}
		}
	}
}

// whyTaken says whose the pod is that has the name of an instance.
func whyTaken(pod *corev1.Pod) string {
	switch ref := metav1.GetControllerOfNoCopy(pod); {
	case ref != nil:
		return fmt.Sprintf("there is a pod of this name that %s %s controls (UID %s), and the instance waits until it is gone", ref.Kind, ref.Name, ref.UID)
	case pod.DeletionTimestamp != nil:
		return "there is a pod of this name that does not belong to the TApp; it is being deleted"
	}
	return "there is a pod of this name that does not belong to the TApp; delete it, or give it the labels of the instance"
}

type ownersPatch struct {
	Metadata struct {
		UID             string           `json:"uid"`
		OwnerReferences []map[string]any `json:"ownerReferences"`
	} `json:"metadata"`
}

func adoption(t *tappv1.TApp, pod *corev1.Pod) []byte {
	return ownerPatch(pod, controllerRef(t))
}

// controllerRef is an owner reference as a patch has it.
func controllerRef(t *tappv1.TApp) map[string]any {
	ref := metav1.NewControllerRef(t, tappv1.GroupVersionKind())
	return map[string]any{
		"apiVersion": ref.APIVersion, "kind": ref.Kind, "name": ref.Name, "uid": ref.UID,
		"controller": true, "blockOwnerDeletion": true,
	}
}

func release(t *tappv1.TApp, pod *corev1.Pod) []byte {
	return ownerPatch(pod, map[string]any{"$patch": "delete", "uid": t.UID})
}

func ownerPatch(pod *corev1.Pod, ref map[string]any) []byte {
	var p ownersPatch
	p.Metadata.UID = string(pod.UID)
	p.Metadata.OwnerReferences = []map[string]any{ref}
	b, _ := json.Marshal(p) // strings and booleans always marshal
	return b
}

// removeUnwanted deletes the pods of ids that are not below replicas, and of
// stopped ones. That spends no budget.
func (d *decision) removeUnwanted() {
	for _, i := range d.instances {
		if i.state != alive && i.state != finished {
			continue
		}
		switch {
		case !i.wanted:
			d.delete(i, "ScaledDown", d.whyScaledDown())
		case i.stopped:
			d.delete(i, "Killed", whyKilled)
		}
	}
}

const whyKilled = "spec.statuses says Killed"

func (d *decision) whyScaledDown() string { return fmt.Sprintf("spec.replicas is %d", d.replicas) }

// delete deletes the instance's pod. Where its node, or its claims, must be remembered
// it first waits until the stored status has what tells of them.
func (d *decision) delete(i *instance, reason, why string) {
	if d.nodeUnrecorded(i) || d.claimsUnrecorded(i) {
		return
	}
	i.act(Action{Op: OpDelete, Pod: i.pod, Reason: reason, Why: why})
}

// nodeUnrecorded is true while status.nodes, as stored, lacks the node that an
// instance with neverMigrate has run on. Once the pod is gone nothing else could
// tell.
func (d *decision) nodeUnrecorded(i *instance) bool {
	if !d.tapp.Spec.NeverMigrate || i.pod.Spec.NodeName == "" || d.tapp.Status.Nodes[i.id] != "" {
		return false
	}
	d.waitFor(recordDelay)
	return true
}

// claimsUnrecorded is true while status.statuses, as stored, does not list an instance
// that is scaled down and whose claims are to follow: they are found by it. A TApp that
// is scaled up and down faster than statuses are written gets there.
func (d *decision) claimsUnrecorded(i *instance) bool {
	if i.wanted || !d.claimsFollow() || len(d.tapp.Spec.VolumeClaimTemplates) == 0 {
		return false
	}
	if _, listed := d.tapp.Status.Statuses[i.id]; listed {
		return false
	}
	d.waitFor(recordDelay)
	return true
}

// createMissing creates the pods of instances that are to run and have none.
// That spends no budget.
func (d *decision) createMissing() {
	unrecorded := d.selectorUnrecorded()
	for _, i := range d.instances {
		if i.state == dying && i.running() {
			i.hold("Terminating", "its pod is being deleted, and the next one follows when it is gone")
		}
		if i.state != missing || !i.running() || i.template == nil {
			continue
		}
		if unrecorded {
			i.hold("SelectorUnrecorded", "spec.selector is absent, and its pod follows when the status has the selector that is taken from the template's labels")
			continue
		}
		if d.mayBegin(i) && d.createClaims(i) {
			i.act(d.birth(i, OpCreate, 0, "PodMissing", "the instance has no pod"))
		}
	}
}

// mayBegin says whether this plan has room for one more instance of the template,
// and holds the instance otherwise. Each template has a room of its own, so that one
// whose pods are refused does not stand in the way of the others. A pod that is out of
// its Services for the update does not wait.
func (d *decision) mayBegin(i *instance) bool {
	most := d.in.Policy.Batch
	if most == 0 || i.template == nil || i.template.actions < most || i.pod != nil && inplace.HasGate(i.pod) && inplace.GateClosed(i.pod) {
		return true
	}
	i.hold(reasonTurn, fmt.Sprintf("its turn comes after %d actions on other instances", most))
	d.waitFor(nextBatch)
	return false
}

// nextBatch is when to plan again after a batch.
const nextBatch = time.Millisecond

// selectorUnrecorded is true while neither the spec nor the status, as stored, has
// the selector, which is then that of the template's labels. Once there are pods, a
// label added to the template must not have them belong to nobody.
func (d *decision) selectorUnrecorded() bool {
	if d.in.TApp.Spec.Selector != nil || d.in.TApp.Status.ScaleLabelSelector != "" || d.selector == nil {
		return false
	}
	d.waitFor(recordDelay)
	return true
}
