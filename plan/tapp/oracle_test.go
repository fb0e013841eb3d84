package tapp

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/ids"
	"tkestack.io/tapp/plan/inplace"
	"tkestack.io/tapp/plan/kept"
	"tkestack.io/tapp/plan/template"
)

// oracle says what must hold for any plan. It is written from what a TApp
// promises and not from how the planner goes about it, so that it repeats as
// little of the planner as it can.
type oracle struct {
	t    rapid.TB
	in   Input
	plan Plan
	spec *tappv1.TAppSpec // with defaults
	pods map[string]*corev1.Pod
}

// judge fails the test when the plan does something that must never be.
func judge(t rapid.TB, in Input, p Plan) {
	t.Helper()
	o := oracle{t: t, in: in, plan: p, spec: &defaulted(in.TApp).Spec, pods: map[string]*corev1.Pod{}}
	for _, pod := range in.Pods {
		o.pods[pod.Name] = pod
		if update := inplace.ProgressOf(pod, in.Now); inplace.CertainlyDone(pod) && !update.Done {
			t.Fatalf("the update of pod %s is not certainly done: %s", pod.Name, update.Why)
		}
	}
	o.order()
	for _, a := range p.Actions {
		if a.Reason == "" || a.Why == "" || strings.ContainsAny(a.Reason, " :") {
			o.fail(a, "reason %q, why %q", a.Reason, a.Why)
		}
		switch a.Op {
		case OpCreate, OpReplace:
			o.create(a)
		case OpCreateClaim:
			o.mayRun(a)
		case OpUpdateClaim, OpDeleteClaim:
			o.touchClaim(a)
		default:
			o.touch(a)
		}
	}
	o.keepsClaims()
	o.budgets()
	o.explained()
	if p.Status.ObservedGeneration != in.TApp.Generation {
		t.Fatalf("status of generation %d", p.Status.ObservedGeneration)
	}
}

func (o *oracle) fail(a Action, format string, args ...any) {
	o.t.Helper()
	o.t.Fatalf("%s %s (%s: %s): %s", a.Op, a.ID, a.Reason, a.Why, fmt.Sprintf(format, args...))
}

// order: ascending ids, and no two actions that contradict each other.
func (o *oracle) order() {
	o.t.Helper()
	last, ops := -1, map[string][]Op{}
	for _, a := range o.plan.Actions {
		num, ok := ids.Parse(a.ID)
		if !ok || num < last {
			o.fail(a, "not in ascending order, after %d", last)
		}
		last = num
		ops[a.ID] = append(ops[a.ID], a.Op)
	}
	for id, list := range ops {
		list = slices.DeleteFunc(list, func(op Op) bool { return op == OpCreateClaim || op == OpUpdateClaim || op == OpDeleteClaim })
		if len(list) > 1 && !slices.Equal(list, []Op{OpRelabel, OpUndrain}) {
			o.t.Fatalf("instance %s: %v in one plan", id, list)
		}
	}
}

// mayRun: neither what is stopped, nor what is out of range, nor anything of
// a TApp that is being deleted gets a pod or a claim.
func (o *oracle) mayRun(a Action) {
	o.t.Helper()
	num, _ := strconv.Atoi(a.ID)
	switch {
	case o.in.TApp.DeletionTimestamp != nil:
		o.fail(a, "the TApp is being deleted")
	case o.spec.Statuses[a.ID] == tappv1.InstanceKilled:
		o.fail(a, "the instance is stopped")
	case !asksFor(o.spec, num):
		o.fail(a, "replicas are %d from %v", *o.spec.Replicas, o.spec.Ordinals)
	}
}

// create: S1, one pod per id.
func (o *oracle) create(a Action) {
	o.t.Helper()
	o.mayRun(a)
	old := o.pods[a.Pod.Name]
	if a.Pod.Name != o.in.TApp.Name+"-"+a.ID || a.Pod.Labels[tappv1.LabelInstanceID] != a.ID || !controls(o.in.TApp, a.Pod) {
		o.fail(a, "pod %s", a.Pod.Name)
	}
	switch {
	case a.Op == OpCreate && old != nil:
		o.fail(a, "pod %s exists", old.Name)
	case a.Op == OpReplace && (old == nil || a.Old == nil || a.UID() != old.UID || !controls(o.in.TApp, old) || !isEnded(old) || old.DeletionTimestamp != nil):
		o.fail(a, "of %v", old)
	case o.spec.Paused && a.Pod.Labels[tappv1.LabelTemplateHash] != o.heldBack(a) && o.heldBack(a) != "":
		o.fail(a, "a loss brings an update while paused: it had %s", o.heldBack(a))
	case inplace.HasGate(a.Pod) != (a.Status != nil):
		o.fail(a, "gate %t, second write %s", inplace.HasGate(a.Pod), a.Status)
	case o.spec.NeverMigrate && o.in.TApp.Status.Nodes[a.ID] != "" && a.Pod.Spec.Affinity == nil:
		o.fail(a, "free to run anywhere, and it has run on %s", o.in.TApp.Status.Nodes[a.ID])
	}
}

// heldBack is what an instance had that comes back while paused; empty: it may have any
// content, since that is not known, its revision is lost, or TApp deleted it for its update.
func (o *oracle) heldBack(a Action) string {
	_, forUpdate := o.in.ForUpdate[a.ID]
	if a.Reason == kept.ReasonRevisionLost || forUpdate {
		return ""
	}
	had := ""
	if a.Old != nil {
		had = a.Old.Labels[tappv1.LabelTemplateHash]
	} else {
		num, _ := strconv.Atoi(a.ID)
		for hash, ids := range o.in.TApp.Status.Contents {
			for part := range strings.SplitSeq(ids, ",") {
				from, to, is := strings.Cut(strings.TrimSuffix(part, "!"), "-")
				if !is {
					to = from
				}
				if first, _ := strconv.Atoi(from); num >= first {
					if last, _ := strconv.Atoi(to); num <= last {
						had = hash
					}
				}
			}
		}
	}
	if !template.IsOurs(had) {
		return ""
	}
	return had
}

// touch: what may be done to a pod that is there.
func (o *oracle) touch(a Action) {
	o.t.Helper()
	pod := o.pods[a.Pod.Name]
	if pod == nil || pod.UID != a.UID() {
		o.fail(a, "no such pod")
	}
	ours := controls(o.in.TApp, pod)
	if a.Op == OpAdopt {
		ours = metav1.GetControllerOfNoCopy(pod) == nil
	}
	ready, gate := conditionOf(pod, corev1.PodReady), conditionOf(pod, tappv1.GateInPlaceUpdate)
	switch {
	case !ours:
		o.fail(a, "S7: of another owner")
	case o.spec.NeverMigrate && a.Op == OpDelete && pod.Spec.NodeName != "" && o.in.TApp.Status.Nodes[a.ID] == "":
		o.fail(a, "nobody would know any more that it ran on %s", pod.Spec.NodeName)
	case a.Op == OpForceDelete:
		o.forced(a, pod)
	case pod.DeletionTimestamp != nil && !(a.Op == OpDelete && isLeft(pod, o.in.Now)):
		o.fail(a, "the pod is being deleted already")
	case a.Op == OpUpdateInPlace && inplace.HasGate(pod) && (gate == nil || gate.Status == corev1.ConditionTrue || ready != nil && ready.Status == corev1.ConditionTrue):
		o.fail(a, "S5: the pod is not drained")
	case a.Op == OpResize && inplace.HasGate(pod) && (gate == nil || gate.Status == corev1.ConditionTrue) && strings.Contains(fmt.Sprint(pod.Spec.Containers), string(corev1.RestartContainer)) && strings.Contains(string(a.Patch), "memory"):
		o.fail(a, "S5: a container restarts for it, and the pod is not drained")
	case a.Op == OpDrain && !inplace.HasGate(pod), a.Op == OpUndrain && !inplace.HasGate(pod):
		o.fail(a, "the pod has no gate")
	case o.spec.Paused && (a.Op == OpDrain || a.Op == OpDelete && (a.Reason == "TemplateChanged" || a.Reason == "RestartRequested") && gate != nil && gate.Status == corev1.ConditionTrue):
		o.fail(a, "starts an update while paused")
	}
	if payload := string(a.Patch) + string(a.Status); a.Op != OpDelete && a.Op != OpForceDelete && !strings.Contains(payload, `"uid":"`+string(pod.UID)+`"`) {
		o.fail(a, "not conditional on the UID: %s", payload)
	} else if strings.Contains(payload, `"type":"Ready"`) {
		o.fail(a, "writes Ready: %s", payload)
	}
}

// isLeft says whether the API server began to remove a pod, and did not finish.
func isLeft(pod *corev1.Pod, now time.Time) bool {
	grace := pod.DeletionGracePeriodSeconds
	return grace != nil && *grace == 0 && len(pod.Finalizers) == 0 && now.Sub(pod.DeletionTimestamp.Time) >= 15*time.Second
}

// touchClaim: S3, no claim is deleted unless the policy says so, and S7.
func (o *oracle) touchClaim(a Action) {
	o.t.Helper()
	at := slices.IndexFunc(o.in.Claims, func(c *corev1.PersistentVolumeClaim) bool { return c.UID == a.UID() })
	if at < 0 {
		o.fail(a, "there is no such claim")
	}
	if owner := metav1.GetControllerOfNoCopy(o.in.Claims[at]); owner != nil && owner.UID != o.in.TApp.UID {
		o.fail(a, "S7: of another owner")
	}
	num, _ := strconv.Atoi(a.ID)
	switch _, listed := o.in.TApp.Status.Statuses[a.ID]; {
	case a.Op == OpUpdateClaim && !strings.Contains(string(a.Patch), `"uid":"`+string(a.UID())+`"`):
		o.fail(a, "not conditional on the UID: %s", a.Patch)
	case a.Op == OpUpdateClaim:
	case o.spec.PersistentVolumeClaimRetentionPolicy.WhenScaled != tappv1.DeletePersistentVolumeClaim:
		o.fail(a, "S3: the claims are to be retained")
	case asksFor(o.spec, num) || o.pods[o.in.TApp.Name+"-"+a.ID] != nil || !listed:
		o.fail(a, "S3: replicas are %d, the status lists it: %t", *o.spec.Replicas, listed)
	}
}

// keepsClaims: no pod is deleted by us while its claim was seen as being deleted, unless
// somebody let that claim go, or it goes by the policy.
func (o *oracle) keepsClaims() {
	o.t.Helper()
	for _, a := range o.plan.Actions {
		if a.Op != OpDelete && a.Op != OpReplace {
			continue
		}
		pod := o.pods[a.Pod.Name]
		num, _ := strconv.Atoi(a.ID)
		if pod.DeletionTimestamp != nil || !asksFor(o.spec, num) && o.spec.PersistentVolumeClaimRetentionPolicy.WhenScaled == tappv1.DeletePersistentVolumeClaim {
			continue
		}
		for _, v := range pod.Spec.Volumes {
			if v.PersistentVolumeClaim == nil {
				continue
			}
			for _, c := range o.in.Claims {
				if c.Name == v.PersistentVolumeClaim.ClaimName && c.DeletionTimestamp != nil && !strings.Contains(pod.Annotations[tappv1.AnnotationClaimMayGo], string(c.UID)) {
					o.fail(a, "claim %s is being deleted, and goes with the pod", c.Name)
				}
			}
		}
	}
}

// forced: S4.
func (o *oracle) forced(a Action, pod *corev1.Pod) {
	o.t.Helper()
	node, read := o.in.Nodes[pod.Spec.NodeName]
	lost := !node.Exists || node.OutOfService || !node.NotReadySince.IsZero() && o.in.Now.Sub(node.NotReadySince) >= o.in.Policy.NodeLostAfter
	if !o.spec.ForceDeletePod || pod.DeletionTimestamp == nil || o.in.Now.Before(pod.DeletionTimestamp.Time) || !read || !lost {
		o.fail(a, "S4: no evidence: dying %v, read %t, node %+v", pod.DeletionTimestamp, read, node)
	}
	told := meta.FindStatusCondition(o.in.TApp.Status.Conditions, tappv1.ConditionForceDeleted)
	if told == nil || told.Status != metav1.ConditionTrue || !strings.Contains(told.Message, "node "+pod.Spec.NodeName+" ") {
		o.fail(a, "S4: the stored status has no evidence: %v", told)
	}
}

// budgets: S2. Updates leave at least as many available as the budget says, or take none
// that is; and so of those that serve, where one with its template has to be available.
func (o *oracle) budgets() {
	o.t.Helper()
	wanted, available, serving := 0, map[string]bool{}, map[string]bool{}
	serves := map[string]bool{} // for its own turn, also in the soak of its template
	for _, i := range o.plan.Instances {
		num, _ := strconv.Atoi(i.ID)
		if !asksFor(o.spec, num) || o.spec.Statuses[i.ID] == tappv1.InstanceKilled || isEnd(o.plan.Status.Statuses[i.ID]) {
			continue
		}
		wanted++
		pod := o.pods[o.in.TApp.Name+"-"+i.ID]
		if pod == nil || !o.serves(pod) {
			continue
		}
		serves[i.ID] = true
		available[i.ID] = o.in.Now.Sub(conditionOf(pod, corev1.PodReady).LastTransitionTime.Time) >= time.Duration(o.spec.MinReadySeconds)*time.Second
		serving[i.ID] = available[i.ID] || !i.Current
	}
	left := func(is map[string]bool) (n int) {
		for _, yes := range is {
			if yes {
				n++
			}
		}
		return n
	}
	tookServing, tookAvailable, rolling := false, false, false
	for _, a := range o.plan.Actions {
		if serves[a.ID] && (a.Op == OpDrain || a.Op == OpUpdateInPlace || a.Op == OpDelete) {
			tookServing, tookAvailable = true, tookAvailable || available[a.ID]
			rolling = rolling || o.templateOf(a.ID) == o.spec.UpdateStrategy.Template
			available[a.ID], serving[a.ID] = false, false
		}
	}
	budget := budgetOf(*o.spec.UpdateStrategy.ForceUpdate.MaxUnavailable, wanted)
	if rolling {
		budget = budgetOf(*o.spec.UpdateStrategy.MaxUnavailable, wanted)
	}
	if n := left(available); tookAvailable && n < wanted-budget {
		o.t.Fatalf("S2: of %d wanted instances %d stay available, the budget is %d", wanted, n, budget)
	}
	if n := left(serving); tookServing && n < wanted-budget {
		o.t.Fatalf("S2: of %d wanted instances %d go on serving, the budget is %d", wanted, n, budget)
	}
}

// serves says whether the pod is Ready, and no interruption of ours is under way.
func (o *oracle) serves(pod *corev1.Pod) bool {
	ready := conditionOf(pod, corev1.PodReady)
	if !controls(o.in.TApp, pod) || pod.DeletionTimestamp != nil || isEnded(pod) || ready == nil || ready.Status != corev1.ConditionTrue {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(o.spec.Selector)
	if err == nil && !selector.Empty() && !selector.Matches(labelsOf(pod)) {
		return false
	}
	if gate := conditionOf(pod, tappv1.GateInPlaceUpdate); inplace.HasGate(pod) && (gate == nil || gate.Status != corev1.ConditionTrue) {
		return false
	}
	return inplace.HasGate(pod) || inplace.ProgressOf(pod, o.in.Now).Done
}

func (o *oracle) templateOf(id string) string {
	if name := o.spec.Templates[id]; name != "" {
		return name
	}
	return o.spec.DefaultTemplateName
}

// explained: every instance that is not where the spec wants it has an action or
// a reason, and the plan says the same of each id everywhere.
func (o *oracle) explained() {
	o.t.Helper()
	acted := map[string]bool{}
	for _, a := range o.plan.Actions {
		acted[a.ID] = true
	}
	for _, i := range o.plan.Instances {
		num, _ := strconv.Atoi(i.ID)
		runs := asksFor(o.spec, num) && o.spec.Statuses[i.ID] != tappv1.InstanceKilled && !isEnd(i.Status)
		if o.in.TApp.DeletionTimestamp == nil && runs && !(i.Available && i.Current) && !acted[i.ID] && i.Reason == "" && !o.spec.NeverMigrate {
			o.t.Fatalf("instance %s is %s, available %t, current %t: neither an action nor a reason", i.ID, i.Status, i.Available, i.Current)
		}
		if (i.Reason == "") != (i.Why == "") {
			o.t.Fatalf("instance %s: reason %q, why %q", i.ID, i.Reason, i.Why)
		}
	}
}

func conditionOf(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	if i < 0 {
		return nil
	}
	return &pod.Status.Conditions[i]
}

// budgetOf is how many may be unavailable; none with a budget that is none.
func budgetOf(b intstr.IntOrString, wanted int) int {
	if b.Type == intstr.Int {
		return int(b.IntVal)
	}
	percent, err := strconv.Atoi(strings.TrimSuffix(b.StrVal, "%"))
	if err != nil || percent < 1 || percent > 100 {
		return 0
	}
	for n := 1; ; n++ {
		if n*100 >= percent*wanted {
			return n
		}
	}
}
