package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/sim/apiserver"
)

// oracle says what must hold at every write. It is written from what a TApp promises,
// and knows nothing of how the controller goes about it.
type oracle struct {
	w *world
	// evidence is what processes read of nodes last: process and node to what it said.
	evidence map[string]string
	// judged is the version that the write made which is judged.
	judged int64
	// owed are the instances whose claims have to be gone at rest.
	owed map[string]bool
	// strays are the claims that a process made while the next one led.
	strays map[string]bool
	// strange are the claims that somebody else made, or marked.
	strange map[string]bool
	// ended are the instances that came to their end, by the UID of their TApp.
	ended map[string]bool
	// recorded is what stored statuses can tell of instances whose pod is gone.
	recorded map[string]record
	// passed are the answers by which processes may interrupt what serves, and refusedAt when the
	// gates were closed for which a patch was refused.
	passed    map[string][]tried
	refusedAt map[string]time.Time
	// wasReady are the pods that were Ready once.
	wasReady map[types.UID]bool
	// deleted are the pods that a process deleted while they were being deleted already.
	deleted map[types.UID]string
	// toldFailed are the pods of which a status tells that they failed by themselves.
	toldFailed map[types.UID]int64
}

func newOracle(w *world) *oracle {
	return &oracle{w: w, evidence: map[string]string{}, owed: map[string]bool{}, strays: map[string]bool{}, strange: map[string]bool{}, ended: map[string]bool{},
		recorded: map[string]record{}, wasReady: map[types.UID]bool{}, deleted: map[types.UID]string{}, toldFailed: map[types.UID]int64{},
		passed: map[string][]tried{}, refusedAt: map[string]time.Time{}}
}

func number(id string) (int, bool) {
	n, err := strconv.Atoi(id)
	return n, err == nil && n >= 0 && strconv.Itoa(n) == id
}

// read is told of what a process read of a node.
func (o *oracle) read(r *request) {
	if r.Resource != nodes || r.Name == "" {
		return
	}
	said := ""
	node, ok := apiserver.Find[*corev1.Node](o.w.Store, nodes, r.Name)
	switch {
	case !ok:
		said = "gone"
	case slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService }):
		said = "out of service"
	case !isNodeReady(node) && o.w.now().Sub(notReadySince(node)) >= 5*time.Minute:
		said = "not ready for 5 minutes"
	}
	o.evidence[r.replica.Name+" "+r.Name] = said
}

// judge is told of every step of every object, and finds what must not be.
func (o *oracle) judge(c *change) error {
	o.judged = c.Version
	if pod, ok := c.After.(*corev1.Pod); ok {
		if err := o.single(pod); err != nil {
			return err
		}
		o.noteEnd(pod)
		if isReady(pod) {
			o.wasReady[pod.UID] = true
		}
		if !isTApp(metav1.GetControllerOfNoCopy(pod)) {
			delete(o.owed, keyOf(pod))
		}
	}
	if c.Resource == tapps {
		o.owe(c)
	}
	if causeOf(c) == nil || causeOf(c).belief == nil {
		return nil
	}
	switch c.Resource {
	case pods:
		return o.judgePod(c)
	case claims:
		return o.judgeClaim(c)
	case tapps:
		return o.judgeTApp(c)
	}
	return nil
}

// single is S1: at most one pod of an instance has not ended.
func (o *oracle) single(pod *corev1.Pod) error {
	id, owner := pod.Labels[tappv1.LabelInstanceID], controllerOf(pod)
	if id == "" || !isTApp(metav1.GetControllerOfNoCopy(pod)) || isFinished(pod) {
		return nil
	}
	for _, other := range apiserver.All[*corev1.Pod](o.w.Store, pods) {
		if other.Name != pod.Name && controllerOf(other) == owner && other.Labels[tappv1.LabelInstanceID] == id && !isFinished(other) {
			return fmt.Errorf("S1: instance %s has the pods %s and %s", id, pod.Name, other.Name)
		}
	}
	return nil
}

func (o *oracle) judgePod(c *change) error {
	app, id := stem(c.Key())
	seen := o.appsSeen(app, causeOf(c).belief)
	if c.Before == nil {
		pod := c.After.(*corev1.Pod)
		if err := o.mountable(pod, causeOf(c).belief); err != nil {
			return err
		}
		return o.create(pod, id, seen, causeOf(c))
	}
	before := c.Before.(*corev1.Pod)
	// A pod whose hash is none of ours is taken for one of another program, which may have
	// changed it and left our record of its template: what the template says holds then.
	if after, ok := c.After.(*corev1.Pod); ok && !o.w.tampered[before.UID] {
		if why := keptAdmitted(before, after); why != "" {
			return fmt.Errorf("S9: what admission made of pod %s is set back: %s", before.Name, why)
		}
	}
	if err := o.owned(c, before, app); err != nil {
		return err
	}
	after, _ := c.After.(*corev1.Pod)
	if o.w.has(classRestarts) && after != nil {
		if err := o.restarts(before, after, seen); err != nil {
			return err
		}
	}
	if after != nil && isTakenForOld(before) && !isTakenForOld(after) && !slices.ContainsFunc(o.podsSeen(before, causeOf(c).belief), func(p *corev1.Pod) bool { return !isTakenForOld(p) }) {
		return fmt.Errorf("S6: pod %s is taken for one of its template, and nothing says that it is", before.Name)
	}
	switch {
	case causeOf(c).Verb == "delete" && isForced(causeOf(c)):
		return o.force(c, before, seen)
	case causeOf(c).Verb == "delete":
		if err := o.deletes(c, before, id, seen); err != nil {
			return err
		}
		if err := o.keepsClaims(c, before, id, seen); err != nil {
			return err
		}
		if err := o.admitted(c, before, id, seen, true); err != nil {
			return err
		}
		return o.budget(c, before, id, seen)
	case causeOf(c).Sub == "status":
		if gateOpen(before) && !gateOpen(after) {
			if err := o.admitted(c, before, id, seen, false); err != nil {
				return err
			}
			return o.budget(c, before, id, seen)
		}
	case !equality.Semantic.DeepEqual(imagesOf(before), imagesOf(after)):
		if hasGate(before) {
			return o.drained(c, before, seen)
		}
		return o.budget(c, before, id, seen)
	}
	if !slices.EqualFunc(before.Status.Conditions, after.Status.Conditions, func(a, b corev1.PodCondition) bool {
		return a.Type != corev1.PodReady || a.Status == b.Status
	}) && len(before.Status.Conditions) == len(after.Status.Conditions) {
		return fmt.Errorf("the Ready of pod %s is written", before.Name)
	}
	return nil
}

func isForced(r *request) bool {
	d, err := apiserver.DecodeDelete(r.Body)
	return err == nil && d.GracePeriodSeconds != nil && *d.GracePeriodSeconds == 0
}

func imagesOf(pod *corev1.Pod) []string {
	var out []string
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for _, c := range list {
			out = append(out, c.Name+"="+c.Image)
		}
	}
	return out
}

// create: only what some version of the TApp wants to run, as it wants it.
func (o *oracle) create(pod *corev1.Pod, id string, seen []*tappv1.TApp, r *request) error {
	var why []string
	var may []*tappv1.TApp
	for _, t := range seen {
		w := wanted(t, id)
		switch {
		case w != "":
			why = append(why, w)
		case controllerOf(pod) != t.UID:
			why = append(why, "it belongs to "+string(controllerOf(pod)))
		default:
			may = append(may, t)
		}
	}
	if len(may) > 0 {
		return o.judgeContent(pod, id, may, r)
	}
	return fmt.Errorf("pod %s is made, and must not: %s", pod.Name, strings.Join(slices.Compact(why), ", "))
}

// owned is S7: no pod of another owner is touched.
func (o *oracle) owned(c *change, pod *corev1.Pod, app string) error {
	b := causeOf(c).belief
	uids := map[string]bool{"": true} // one without an owner is there to adopt
	for _, t := range o.appsSeen(app, b) {
		uids[string(t.UID)] = true
	}
	for _, p := range o.podsSeen(pod, b) {
		if uids[string(controllerOf(p))] {
			return nil
		}
	}
	return fmt.Errorf("S7: pod %s of owner %q is touched", pod.Name, controllerOf(pod))
}

// deletes: a pod goes only for a reason. One is that the API server stamped it, and did not
// remove it.
func (o *oracle) deletes(c *change, pod *corev1.Pod, id string, seen []*tappv1.TApp) error {
	if left := pod.DeletionGracePeriodSeconds; pod.DeletionTimestamp != nil && left != nil && *left == 0 && len(pod.Finalizers) == 0 {
		return nil
	}
	for _, t := range seen {
		for _, p := range o.podsSeen(pod, causeOf(c).belief) {
			// A resize that does not get on, or that the policy no longer allows, ends so.
			if s := o.w.sandboxes[p.UID]; s != nil && s.byUpdate {
				return nil
			}
			// A pod that lost its hash, and whose resources are admission's, is taken for one of the
			// template of then: what it has besides is made good when that changes again.
			unsure := o.w.tampered[p.UID] && p.Annotations[rightAnnotation] != ""
			if unsure || isPinned(p) && !t.Spec.NeverMigrate || p.Annotations[tappv1.AnnotationResized] != "" || wanted(t, id) != "" && t.DeletionTimestamp == nil || isFinished(p) || p.Annotations[tappv1.AnnotationRestart] != "" || !follows(p, template(t, id)) || isTakenForOld(p) {
				return nil
			}
		}
	}
	return fmt.Errorf("pod %s is deleted for no reason", pod.Name)
}

// force is S4: nothing goes by force without evidence and opt-in.
func (o *oracle) force(c *change, pod *corev1.Pod, seen []*tappv1.TApp) error {
	opted := slices.ContainsFunc(seen, func(t *tappv1.TApp) bool {
		told := meta.FindStatusCondition(t.Status.Conditions, tappv1.ConditionForceDeleted)
		return t.Spec.ForceDeletePod && told != nil && strings.Contains(told.Message, "node "+pod.Spec.NodeName+" ")
	})
	switch {
	case !opted:
		return fmt.Errorf("S4: pod %s goes by force, and nobody opted in, or the status does not tell of it", pod.Name)
	case pod.DeletionTimestamp == nil || pod.DeletionTimestamp.After(o.w.now()):
		return fmt.Errorf("S4: pod %s goes by force before its grace period is over", pod.Name)
	case o.evidence[causeOf(c).replica.Name+" "+pod.Spec.NodeName] == "":
		return fmt.Errorf("S4: pod %s goes by force without evidence that node %s is lost", pod.Name, pod.Spec.NodeName)
	}
	return nil
}

// asked judges what is asked for whether or not it changes anything: a pod that only its
// finalizers keep is not deleted by force once more.
func (o *oracle) asked(r *request) error {
	if r.belief == nil || r.Resource != pods || r.Verb != "delete" || !isForced(r) {
		return nil
	}
	pod, ok := apiserver.Find[*corev1.Pod](o.w.Store, pods, r.Key())
	if !ok {
		return nil
	}
	o.judged = o.w.Version + 1
	if seen := o.podsSeen(pod, r.belief); len(seen) > 0 && !slices.ContainsFunc(seen, func(p *corev1.Pod) bool { return !isHeldBack(p) }) {
		return fmt.Errorf("S4: pod %s is deleted by force again, and only its finalizers keep it", pod.Name)
	}
	return nil
}

// isHeldBack says whether nothing but finalizers keeps a pod.
func isHeldBack(pod *corev1.Pod) bool {
	left := pod.DeletionGracePeriodSeconds
	return pod.DeletionTimestamp != nil && left != nil && *left == 0 && len(pod.Finalizers) > 0
}

// drained is S5: the spec of a pod changes only after its drain was visible, and the
// grace period over.
func (o *oracle) drained(c *change, pod *corev1.Pod, seen []*tappv1.TApp) error {
	for _, t := range seen {
		grace := time.Duration(t.Spec.UpdateStrategy.InPlaceUpdate.GracePeriodSeconds) * time.Second
		for _, p := range o.podsSeen(pod, causeOf(c).belief) {
			gate := conditionOf(p, tappv1.GateInPlaceUpdate)
			if gate == nil || gate.Status == corev1.ConditionTrue || isReady(p) {
				continue
			}
			since := gate.LastTransitionTime.Time
			if r := conditionOf(p, corev1.PodReady); r != nil && r.LastTransitionTime.After(since) {
				since = r.LastTransitionTime.Time
			}
			if grace == 0 || c.At.Sub(since) >= grace { // a node's clock may be ahead
				return nil
			}
		}
	}
	return fmt.Errorf("S5: the images of pod %s change before it is drained", pod.Name)
}

func (o *oracle) judgeTApp(c *change) error {
	if c.Before == nil || c.After == nil {
		return fmt.Errorf("TApp %s is made or deleted by the controller", c.Key())
	}
	before, after := c.Before.(*tappv1.TApp), c.After.(*tappv1.TApp)
	for id, is := range after.Status.Statuses {
		if isEnd(is) && !isEnd(before.Status.Statuses[id]) && !o.ended[instanceKey(after, id)] {
			return fmt.Errorf("S8: instance %s is said to have come to its end, and has not", id)
		}
	}
	if err := o.judgeReady(c); err != nil {
		return err
	}
	if equality.Semantic.DeepEqual(before.Spec, after.Spec) {
		o.remember(c)
		return nil
	}
	spec := *after.Spec.DeepCopy()
	spec.TemplatePool = before.Spec.TemplatePool
	pruned := slices.ContainsFunc(o.appsSeen(keyOf(before), causeOf(c).belief), func(t *tappv1.TApp) bool { return t.Spec.AutoDeleteUnusedTemplate })
	if !pruned || !equality.Semantic.DeepEqual(before.Spec, spec) {
		return fmt.Errorf("the controller changes the spec of TApp %s", before.Name)
	}
	return nil
}
