package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/sim/apiserver"
)

// budget is S2: what serves is interrupted only while enough others serve, and what is
// available only while enough others are.
func (o *oracle) budget(c *change, pod *corev1.Pod, id string, seen []*tappv1.TApp) error {
	b := causeOf(c).belief
	var why []string
	for _, t := range seen {
		if wanted(t, id) != "" {
			return nil // killed, or scaled down: no budget is spent
		}
		for _, view := range o.views(causeOf(c)) {
			said := o.withinBudget(t, view, b, id)
			if said == "" {
				return o.took(causeOf(c), id, nil)
			}
			why = append(why, said)
		}
	}
	return o.took(causeOf(c), id, fmt.Errorf("S2: pod %s goes out of service: %s", pod.Name, why[0]))
}

// took notes that a chain takes an instance out of service. What arrives late is not
// noted: its process was told that it failed, and what it asks for in the same moment may
// be of a plan that was made since, on what it saw then.
func (o *oracle) took(r *request, id string, err error) error {
	if !r.abandoned.Load() {
		r.belief.out[id] = o.judged
	}
	return err
}

// view of the pods at a version.
type view struct {
	pods    map[string]object
	at      time.Time
	version int64
}

// pod of an instance; nil: there is none.
func (v view) pod(t *tappv1.TApp, id string) *corev1.Pod {
	pod, _ := v.pods[keyOf(t)+"-"+id].(*corev1.Pod)
	return pod
}

// views of the pods that can have been believed in. What is ready for long enough
// depends on when the plan was made too.
func (o *oracle) views(r *request) []view {
	b := r.belief
	t := o.w.Tables[pods]
	from := b.told[pods]
	first := t.At(from)
	out := []view{{first, b.at, from}, {first, r.issued, from}}
	for _, c := range t.Since(from) {
		if c.Version >= o.judged {
			break
		}
		out = append(out, view{t.At(c.Version), c.At, c.Version}, view{t.At(c.Version), r.issued, c.Version})
	}
	return out
}

// withinBudget says what is wrong about taking the instance out, or nothing.
func (o *oracle) withinBudget(t *tappv1.TApp, v view, b *belief, id string) string {
	pod := v.pod(t, id)
	if !isServing(t, pod) && !isCalledUnready(t, pod) && !o.isHeldUp(t, pod, v.at) {
		return "" // it is out of service already
	}
	c := o.count(t, v)
	for i, version := range b.out {
		// Forced updates go first, and those that roll take what they leave, whatever
		// the order of the writes.
		if c.desired[i] && version > v.version && (updatesByForce(t, i) || !updatesByForce(t, id)) {
			c.takeOut(i)
		}
	}
	c.takeOut(id)
	most := scale(o.budgetOf(t, id), len(c.desired))
	if len(c.silent) > most {
		return fmt.Sprintf("%d of %d would not serve (%s), and %d may", len(c.silent), len(c.desired), strings.Join(apiserver.SortedKeys(c.silent), " "), most)
	}
	if isAvailable(t, pod, v.at) && len(c.unavailable) > most {
		return fmt.Sprintf("%d of %d would be unavailable (%s), and %d may", len(c.unavailable), len(c.desired), strings.Join(apiserver.SortedKeys(c.unavailable), " "), most)
	}
	return ""
}

// updatesByForce says whether an instance updates by force.
func updatesByForce(t *tappv1.TApp, id string) bool {
	return templateName(t, id) != t.Spec.UpdateStrategy.Template
}

// budgetOf an instance's updates.
func (o *oracle) budgetOf(t *tappv1.TApp, id string) *intstr.IntOrString {
	if updatesByForce(t, id) {
		return t.Spec.UpdateStrategy.ForceUpdate.MaxUnavailable
	}
	return t.Spec.UpdateStrategy.MaxUnavailable
}

// counts of the instances that are to run.
type counts struct {
	desired map[string]bool
	// silent do not serve: those that have their template already serve only when they are
	// available, and the others when they are Ready.
	silent map[string]bool
	// unavailable are not available.
	unavailable map[string]bool
}

func (c *counts) takeOut(id string) { c.silent[id], c.unavailable[id] = true, true }

// count the instances of a TApp in a view.
func (o *oracle) count(t *tappv1.TApp, v view) counts {
	c := counts{map[string]bool{}, map[string]bool{}, map[string]bool{}}
	for n := range int(*t.Spec.Replicas) {
		id := strconv.Itoa(n)
		pod := v.pod(t, id)
		if t.Spec.Statuses[id] == tappv1.InstanceKilled || o.isCompleted(t, pod, id) {
			continue
		}
		c.desired[id] = true
		late := o.w.answersClosing(pod, v.at)
		available := isAvailable(t, pod, v.at) && !late
		if !available {
			c.unavailable[id] = true
		}
		if !available && (late || !isServing(t, pod) || o.isSoaking(t, pod, id)) {
			c.silent[id] = true
		}
	}
	return c
}

// isSoaking says whether a pod has its template already, so that it counts only when it is
// available. Of one whose hash somebody changed, nobody can tell.
func (o *oracle) isSoaking(t *tappv1.TApp, pod *corev1.Pod, id string) bool {
	return !o.w.tampered[pod.UID] && pod.Annotations[tappv1.AnnotationRestart] == "" && follows(pod, template(t, id))
}

// scale is how many of a number of instances a budget lets be out of service.
func scale(budget *intstr.IntOrString, of int) int {
	n, err := intstr.GetScaledValueFromIntOrPercent(budget, of, true)
	if err != nil {
		return 0
	}
	return max(1, n)
}
