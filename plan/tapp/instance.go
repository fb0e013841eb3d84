package tapp

import (
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/inplace"
)

// state is the bucket of an instance; it is in exactly one.
type state int

const (
	missing  state = iota // no pod
	foreign               // the name is taken by a pod that is not ours
	adoptee               // a pod without a controller that is ours to adopt
	stray                 // our pod, but the selector no longer matches it
	dying                 // the pod is being deleted, or about to be by Kubernetes
	finished              // the pod ended
	alive                 // none of these
)

// instance is one id, what is wanted of it and what was observed.
type instance struct {
	id  string
	num int

	wanted       bool // below replicas
	stopped      bool // by spec.statuses
	completed    bool // ended, and stays as it ended
	leftBehind   bool // scaled down, its pod is gone, and its claims are to follow
	templateName string
	template     *podTemplate // nil: cannot be used, reason says why

	pod       *corev1.Pod
	state     state
	current   bool // the pod follows its template
	updating  bool // the pod is changing in place, or drained for it
	available bool
	// doubted: it is ready, and nobody knows whether it is about to restart. It counts
	// as not available, and what interrupts it has to be paid for nevertheless.
	doubted bool
	update  *inplace.Progress // nil until it is asked for

	actions []Action
	status  tappv1.InstanceStatus
	reason  string
	why     string
}

// running says whether the instance is to have a running pod.
func (i *instance) running() bool { return i.wanted && !i.stopped && !i.completed }

func (i *instance) act(a Action) {
	i.reason, i.why = "", ""
	a.ID = i.id
	i.actions = append(i.actions, a)
	if i.template != nil {
		i.template.actions++
	}
}

// hold notes why nothing is done although the instance is not where the spec
// wants it.
func (i *instance) hold(reason, why string) { i.reason, i.why = reason, why }

// observe makes an instance of every wanted id and of every pod, and puts each
// in its state.
func (d *decision) observe() {
	d.readClaims()
	wanted := d.wantedIDs()
	d.byID = make(map[int]*instance, max(len(wanted), len(d.in.Pods)))
	d.instances = make([]*instance, 0, max(len(wanted), len(d.in.Pods)))
	pool := make([]instance, len(wanted))
	for k, num := range wanted {
		i := &pool[k]
		i.id, i.num, i.wanted = strconv.Itoa(num), num, true
		i.stopped = d.tapp.Spec.Statuses[i.id] == tappv1.InstanceKilled
		d.byID[num] = i
		d.instances = append(d.instances, i)
	}
	sorted := true
	for _, pod := range d.in.Pods {
		num, ok := instanceOf(d.tapp.Name, pod.Name)
		if !ok {
			continue // none of our making; it takes no name that we need
		}
		i := d.byID[num]
		if i == nil {
			i = &instance{id: strconv.Itoa(num), num: num}
			d.byID[num] = i
			d.instances = append(d.instances, i)
			sorted = false
		}
		i.pod = pod
	}
	if more := d.withClaimsOnly(); len(more) > 0 {
		d.instances = append(d.instances, more...)
		sorted = false
	}
	if !sorted {
		slices.SortFunc(d.instances, func(a, b *instance) int { return a.num - b.num })
	}
	for _, i := range d.instances {
		d.assignTemplate(i)
		d.look(i)
	}
	d.instances = slices.DeleteFunc(d.instances, func(i *instance) bool {
		// A pod that is not ours, under a name that we do not need.
		return !i.wanted && i.state == foreign
	})
}

// look puts the instance in its state.
func (d *decision) look(i *instance) {
	i.state = d.stateOf(i)
	i.completed = d.isCompleted(i)
	if i.state != alive {
		return
	}
	i.current = i.template != nil && i.pod.Labels[tappv1.LabelTemplateHash] == i.template.Hashes.Template &&
		inplace.HasResources(i.pod, i.template.Spec)
	i.updating = !d.settled(i)
	i.available = i.running() && !i.updating && d.isAvailable(i.pod)
	i.doubted = i.running() && i.update != nil && i.update.Left > 0 && d.isAvailable(i.pod)
}

func (d *decision) stateOf(i *instance) state {
	switch pod := i.pod; {
	case pod == nil:
		return missing
	case metav1.GetControllerOfNoCopy(pod) == nil:
		// The name is the identity, so that a label which contradicts it was not
		// put there by a TApp.
		if pod.DeletionTimestamp == nil && pod.Labels[tappv1.LabelInstanceID] == i.id && d.selects(pod) {
			return adoptee
		}
		return foreign
	case !controls(d.tapp, pod):
		return foreign
	case pod.DeletionTimestamp != nil:
		return dying
	case isCollected(pod):
		return dying
	case d.selector != nil && !d.selects(pod):
		return stray
	case isFinished(pod):
		return finished
	}
	return alive
}

func (d *decision) selects(pod *corev1.Pod) bool {
	return d.selector != nil && d.selector.Matches(labels.Set(pod.Labels))
}

// isCollected says whether Kubernetes is about to remove the pod because its node
// is gone. It calls such a pod failed a moment before, which is no end that the
// instance came to: seen or missed, the instance goes on the same.
func isCollected(pod *corev1.Pod) bool {
	_, is := collectedSince(pod)
	return is
}

// collectedSince is when Kubernetes was about to remove the pod.
func collectedSince(pod *corev1.Pod) (time.Time, bool) {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && c.Reason == "DeletionByPodGC" {
			return c.LastTransitionTime.Time, true
		}
	}
	return time.Time{}, false
}

// settled says whether no in-place update of the pod is under way. With the
// readiness gate, the gate says so; it opens only after the update. Without it,
// the recorded state does.
func (d *decision) settled(i *instance) bool {
	if inplace.HasGate(i.pod) {
		return inplace.GateOpen(i.pod)
	}
	return d.inPlaceDone(i).Done
}

// inPlaceDone is inplace.ProgressOf, asked only once and only where it may be false:
// reading the record of the last update would be most of the cost of a plan.
func (d *decision) inPlaceDone(i *instance) *inplace.Progress {
	if i.update == nil {
		i.update = &inplace.Progress{Done: inplace.CertainlyDone(i.pod)}
		if !i.update.Done {
			*i.update = inplace.ProgressOf(i.pod, d.in.Now)
		}
		if i.update.Left > 0 {
			d.waitFor(i.update.Left)
		}
	}
	return i.update
}

// isAvailable says whether the pod has been ready for minReadySeconds.
func (d *decision) isAvailable(pod *corev1.Pod) bool {
	c := ready(pod)
	if c == nil || c.Status != corev1.ConditionTrue {
		return false
	}
	left := seconds(d.tapp.Spec.MinReadySeconds) - d.in.Now.Sub(c.LastTransitionTime.Time)
	if d.tapp.Spec.MinReadySeconds == 0 || left <= 0 {
		return true
	}
	d.waitFor(left)
	return false
}

// whyNotAvailable says what a pod that is not changing lacks. What a container
// waits for names the cause: ImagePullBackOff, CrashLoopBackOff.
func whyNotAvailable(pod *corev1.Pod) (reason, why string) {
	if isReady(pod) {
		return "NotReadyForLong", "its pod has not been ready for minReadySeconds yet"
	}
	if reason, why := inplace.WaitingContainer(pod); reason != "" {
		return reason, why
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason != "" {
			return c.Reason, "its pod has no node: " + c.Message
		}
	}
	return "NotReady", "its pod is not ready"
}

// instanceOf returns the id in a pod's name, and whether it is one of the
// TApp's: <tapp>-<id>, the id without leading zeros.
func instanceOf(tapp, pod string) (int, bool) {
	id, ok := strings.CutPrefix(pod, tapp+"-")
	if !ok {
		return 0, false
	}
	return ParseID(id)
}

// ParseID reads a canonical instance id: "0", "1", "10", but not "01", "+1" or
// "-1".
func ParseID(id string) (int, bool) {
	num, err := strconv.Atoi(id)
	if err != nil || num < 0 || strconv.Itoa(num) != id {
		return 0, false
	}
	return num, true
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }

// set of strings.
type set map[string]struct{}

func (s *set) add(value string) {
	if *s == nil {
		*s = set{}
	}
	(*s)[value] = struct{}{}
}

func (s set) all() iter.Seq[string] { return maps.Keys(s) }
