package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/sim/apiserver"
)

// budget is S2: an available instance is taken out of service only while fewer than
// the budget are out of it.
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
	if pod, _ := v.pods[keyOf(t)+"-"+id].(*corev1.Pod); !isAvailable(t, pod, v.at) {
		return "" // it is out of service already
	}
	wants, out := map[string]bool{}, map[string]bool{}
	for n := range int(*t.Spec.Replicas) {
		i := strconv.Itoa(n)
		pod, _ := v.pods[keyOf(t)+"-"+i].(*corev1.Pod)
		if t.Spec.Statuses[i] == tappv1.InstanceKilled || o.isCompleted(t, pod, i) {
			continue
		}
		wants[i] = true
		if !isAvailable(t, pod, v.at) {
			out[i] = true
		}
	}
	isForced := func(id string) bool { return templateName(t, id) != t.Spec.UpdateStrategy.Template }
	for i, version := range b.out {
		// Forced updates go first, and those that roll take what they leave, whatever
		// the order of the writes.
		if wants[i] && version > v.version && (isForced(i) || !isForced(id)) {
			out[i] = true
		}
	}
	out[id] = true
	running, budget := len(wants), t.Spec.UpdateStrategy.MaxUnavailable
	if isForced(id) {
		budget = t.Spec.UpdateStrategy.ForceUpdate.MaxUnavailable
	}
	if most := scale(budget, running); len(out) > most {
		return fmt.Sprintf("%d of %d would be (%s), and %d may", len(out), running, strings.Join(apiserver.SortedKeys(out), " "), most)
	}
	return ""
}

// scale is how many of a number of instances a budget lets be out of service.
func scale(budget *intstr.IntOrString, of int) int {
	n, err := intstr.GetScaledValueFromIntOrPercent(budget, of, true)
	if err != nil {
		return 0
	}
	return max(1, n)
}

// isCompleted says whether an instance ended, and stays so. That another controller takes
// its name afterwards does not have it run again.
func (o *oracle) isCompleted(t *tappv1.TApp, pod *corev1.Pod, id string) bool {
	if pod == nil || pod.DeletionTimestamp != nil || controllerOf(pod) != t.UID {
		return isEnd(t.Status.Statuses[id])
	}
	return isFinished(pod) && !o.runsAgain(t, pod)
}

func (o *oracle) runsAgain(t *tappv1.TApp, pod *corev1.Pod) bool {
	switch s := o.w.sandboxes[pod.UID]; {
	case s != nil && s.byUpdate:
		return true
	case t.Spec.NeverMigrate:
		return false
	case len(pod.Status.ContainerStatuses) == 0:
		return true
	case pod.Spec.RestartPolicy == corev1.RestartPolicyNever:
		return false
	case pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure:
		return pod.Status.Phase == corev1.PodFailed
	}
	return true
}

func isEnd(s tappv1.InstanceStatus) bool {
	return s == tappv1.InstanceFailed || s == tappv1.InstanceSucc
}

func instanceKey(t *tappv1.TApp, id string) string { return string(t.UID) + " " + id }

// noteEnd notes, for S8, that an instance came to its end: its pod ended, no update and
// nobody who deleted it had a hand in that, and the TApp does not have it run again.
func (o *oracle) noteEnd(pod *corev1.Pod) {
	app, id := stem(keyOf(pod))
	t, exists := apiserver.Find[*tappv1.TApp](o.w.Store, tapps, app)
	if exists && isFinished(pod) && pod.DeletionTimestamp == nil && controllerOf(pod) == t.UID && !o.runsAgain(t, pod) {
		o.ended[instanceKey(t, id)] = true
	}
}

// isAvailable says whether a pod serves: ready for long enough, not ending, and not
// changing.
func isAvailable(t *tappv1.TApp, pod *corev1.Pod, at time.Time) bool {
	if pod == nil || controllerOf(pod) != t.UID || pod.DeletionTimestamp != nil || isFinished(pod) || !isReady(pod) {
		return false
	}
	if hasGate(pod) && !gateOpen(pod) || !hasGate(pod) && isChanging(pod) {
		return false
	}
	wait := time.Duration(t.Spec.MinReadySeconds) * time.Second
	return wait == 0 || at.Sub(conditionOf(pod, corev1.PodReady).LastTransitionTime.Time) >= wait
}

// isChanging says whether the kubelet has not followed the spec yet.
func isChanging(pod *corev1.Pod) bool {
	if _, updated := pod.Annotations[tappv1.AnnotationInPlaceState]; !updated {
		return false
	}
	if told := pod.Status.ObservedGeneration; told != 0 && told < pod.Generation {
		return true
	}
	for _, c := range pod.Spec.Containers {
		for _, s := range pod.Status.ContainerStatuses {
			if s.Name == c.Name && (s.Image != c.Image || !s.Ready) {
				return true
			}
		}
	}
	return false
}

// wanted says why an instance must have no pod; nothing if it may.
func wanted(t *tappv1.TApp, id string) string {
	num, ok := number(id)
	switch {
	case !ok:
		return "it is no instance"
	case t.DeletionTimestamp != nil:
		return "the TApp is being deleted"
	case num >= int(*t.Spec.Replicas):
		return fmt.Sprintf("replicas are %d", *t.Spec.Replicas)
	case t.Spec.Statuses[id] == tappv1.InstanceKilled:
		return "it is killed"
	}
	return ""
}

func templateName(t *tappv1.TApp, id string) string {
	if name := t.Spec.Templates[id]; name != "" {
		return name
	}
	return t.Spec.DefaultTemplateName
}

// template of an instance; nil: there is none of that name.
func template(t *tappv1.TApp, id string) *corev1.PodTemplateSpec {
	name := templateName(t, id)
	if name == tappv1.DefaultTemplateName {
		return &t.Spec.Template
	}
	if out, ok := t.Spec.TemplatePool[name]; ok {
		return &out
	}
	return nil
}

// follows says whether a pod is what a template makes, as far as these tests change
// templates.
func follows(pod *corev1.Pod, t *corev1.PodTemplateSpec) bool {
	if t == nil {
		return false
	}
	own := slices.DeleteFunc(slices.Clone(pod.Spec.Containers), func(c corev1.Container) bool { return c.Name == proxy })
	if len(own) != len(t.Spec.Containers) {
		return false
	}
	for k, v := range t.Labels {
		if pod.Labels[k] != v {
			return false
		}
	}
	if _, has := t.Labels["extra"]; !has && pod.Labels["extra"] != "" {
		return false
	}
	for i, c := range t.Spec.Containers {
		p := own[i]
		if !isImage(p.Image, c.Image) || fmt.Sprint(p.Env) != fmt.Sprint(c.Env) || !isRight(&p) && p.Resources.Requests.Cpu().Cmp(*c.Resources.Requests.Cpu()) != 0 {
			return false
		}
	}
	for i, c := range t.Spec.InitContainers {
		if !isImage(pod.Spec.InitContainers[i].Image, c.Image) {
			return false
		}
	}
	return true
}
