package tapp

import (
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/inplace"
	"tkestack.io/tapp/plan/template"
)

// podFor returns the pod that the instance's template makes: what a new pod
// would be, and what a running one is compared with. The instance must have a
// template. The pods of a plan share what they have in common: it can hold 10,000
// of them.
func (d *decision) podFor(i *instance) *corev1.Pod {
	t := i.template
	if t.model == nil {
		t.model = t.Spec.DeepCopy() // once, because the template is the input's
	}
	pod := &corev1.Pod{ObjectMeta: t.model.ObjectMeta, Spec: t.model.Spec}
	pod.Labels, pod.Annotations = maps.Clone(t.model.Labels), maps.Clone(t.model.Annotations)
	pod.Name, pod.GenerateName, pod.Namespace = d.tapp.Name+"-"+i.id, "", d.tapp.Namespace
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(d.tapp, tappv1.GroupVersionKind())}

	if pod.Labels == nil {
		pod.Labels = make(map[string]string, 4)
	}
	pod.Labels[tappv1.LabelInstanceID] = i.id
	pod.Labels[tappv1.LabelPodIndex] = i.id
	pod.Labels[tappv1.LabelTemplateHash] = t.Hashes.Template
	pod.Labels[tappv1.LabelUniqHash] = t.Hashes.Uniq
	if shape := t.shape(); shape != t.Hashes.Uniq { // otherwise the label says so
		setAnnotation(pod, tappv1.AnnotationShapeHash, shape)
	}
	delete(pod.Annotations, tappv1.AnnotationRestart) // one in a template would restart it for ever
	if t.Keys != "" {
		setAnnotation(pod, tappv1.AnnotationTemplateKeys, t.Keys)
	}

	if service := d.tapp.Spec.ServiceName; service != "" {
		pod.Spec.Hostname, pod.Spec.Subdomain = pod.Name, service
	}
	if *d.tapp.Spec.UpdateStrategy.InPlaceUpdate.Drain && !inplace.HasGate(pod) {
		pod.Spec.ReadinessGates = append(slices.Clip(pod.Spec.ReadinessGates), corev1.PodReadinessGate{ConditionType: tappv1.GateInPlaceUpdate})
	}
	d.mountClaims(pod, i)
	return pod
}

// newPod returns the pod to create, the given number of failures after the last
// one that ran well.
func (d *decision) newPod(i *instance, failures int) *corev1.Pod {
	pod := d.podFor(i)
	if failures > 0 {
		setAnnotation(pod, tappv1.AnnotationFailures, strconv.Itoa(failures))
	}
	if node := d.tapp.Status.Nodes[i.id]; d.tapp.Spec.NeverMigrate && node != "" {
		template.RequireNode(&pod.Spec, node)
	}
	return pod
}

// birth is the action that creates the instance's pod. A gated pod cannot become
// Ready before its gate is open, so that the gate opens with the same action.
func (d *decision) birth(i *instance, op Op, failures int, reason, why string) Action {
	a := Action{Op: op, Pod: d.newPod(i, failures), Reason: reason, Why: why}
	if inplace.HasGate(a.Pod) {
		if d.openGate == nil {
			d.openGate = inplace.GatePatch("", true, "PodCreated", "no in-place update is under way", d.in.Now)
		}
		a.Status = d.openGate
	}
	return a
}

func setAnnotation(pod *corev1.Pod, key, value string) {
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[key] = value
}
