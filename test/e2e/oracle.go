//go:build cluster

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/audit"
	"tkestack.io/tapp/test/cluster"
)

// oracle watches every step of every pod during the whole suite, for what must
// never happen, whatever a test is about:
//
//	S1  two pods that have not ended for one id of one TApp
//	S4  a pod on a node that goes without having been told to end
//	S5  an image that changes while the pod is still in its Services
//	S7  a write of ours to a pod that never was a TApp's
type oracle struct {
	mu         sync.Mutex
	instances  map[instance]map[types.UID]string // the pods that have not ended
	places     map[types.UID]instance            // where each of them is
	ours       map[types.NamespacedName]bool     // pods that belonged to a TApp at some time
	violations map[string][]string               // by namespace
	log        *audit.Log
}

// instance is an id of a TApp, which may have had others of its name before.
type instance struct {
	tapp types.UID
	id   string
}

func startOracle(f *feed, log *audit.Log) *oracle {
	o := &oracle{
		instances: map[instance]map[types.UID]string{}, places: map[types.UID]instance{}, ours: map[types.NamespacedName]bool{},
		violations: map[string][]string{}, log: log,
	}
	f.follow(o.observe)
	return o
}

func (o *oracle) observe(s step) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if s.Old != nil && (s.New == nil || s.New.UID != s.Old.UID) {
		o.gone(s)
	}
	if s.New == nil {
		return
	}
	o.single(s.New)
	if owner(s.New) != nil {
		o.ours[types.NamespacedName{Namespace: s.New.Namespace, Name: s.New.Name}] = true
	}
	if s.Old != nil && s.Old.UID == s.New.UID && !s.Gap {
		o.drained(s.Old, s.New)
	}
}

// single is S1.
func (o *oracle) single(p *corev1.Pod) {
	o.forget(p.UID) // it may have had another owner, or label
	ref := owner(p)
	if ref == nil || isFinished(p) {
		return
	}
	i := instance{ref.UID, p.Labels[tappv1.LabelInstanceID]}
	if o.instances[i] == nil {
		o.instances[i] = map[types.UID]string{}
	}
	o.instances[i][p.UID], o.places[p.UID] = p.Name, i
	if len(o.instances[i]) > 1 {
		o.violation(p, "S1: instance %s of TApp %s has the pods %v", i.id, ref.Name, o.instances[i])
	}
}

func (o *oracle) forget(uid types.UID) {
	i, ok := o.places[uid]
	if !ok {
		return
	}
	delete(o.places, uid)
	delete(o.instances[i], uid)
	if len(o.instances[i]) == 0 {
		delete(o.instances, i)
	}
}

// gone is S4: a pod on a node goes only after its kubelet was told to end it.
func (o *oracle) gone(s step) {
	p := s.Old
	o.forget(p.UID)
	if owner(p) != nil && !s.Gap && p.DeletionTimestamp == nil && p.Spec.NodeName != "" && !isFinished(p) {
		o.violation(p, "S4: it went by force: %s", cluster.PodLine(p))
	}
}

// drained is S5.
func (o *oracle) drained(before, after *corev1.Pod) {
	if owner(after) == nil || !hasGate(after) {
		return
	}
	for _, c := range after.Spec.Containers {
		if image(before, c.Name) == c.Image || setByKubectl(after) {
			continue
		}
		if isReady(before) || condition(before, tappv1.GateInPlaceUpdate) != corev1.ConditionFalse {
			o.violation(after, "S5: %s became %s before the pod was drained: %s", c.Name, c.Image, cluster.PodLine(before))
		}
	}
}

// setByKubectl says whether an image of the pod was written last by kubectl set image.
func setByKubectl(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == "kubectl-set" && e.FieldsV1 != nil && strings.Contains(e.FieldsV1.GetRawString(), "f:image")
	})
}

func (o *oracle) violation(p *corev1.Pod, format string, args ...any) {
	o.violations[p.Namespace] = append(o.violations[p.Namespace],
		"pod "+p.Namespace+"/"+p.Name+" at "+p.ResourceVersion+": "+fmt.Sprintf(format, args...))
}

// take returns the violations in a namespace, once.
func (o *oracle) take(ns string) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	v := o.violations[ns]
	delete(o.violations, ns)
	return v
}

// conclude returns the violations that no test has reported.
func (o *oracle) conclude() ([]string, error) {
	requests, err := o.log.Read()
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []string
	for _, v := range o.violations {
		out = append(out, v...)
	}
	for _, r := range audit.Select(requests, audit.Filter{Agent: ourAgent, Resource: "pods", Subresource: "*"}) {
		if r.IsWrite() && r.Verb != "create" && !o.ours[types.NamespacedName{Namespace: r.Namespace, Name: r.Name}] {
			out = append(out, "S7: "+r.String())
		}
		if r.IsWrite() && r.Subresource != "" && r.Subresource != "status" && r.Subresource != "resize" {
			out = append(out, "a write that TApp never makes: "+r.String())
		}
	}
	return out, nil
}

// owner returns the TApp that controls the pod, or nil.
func owner(p *corev1.Pod) *metav1.OwnerReference {
	if ref := metav1.GetControllerOfNoCopy(p); ref != nil && ref.Kind == tappv1.Kind {
		return ref
	}
	return nil
}
