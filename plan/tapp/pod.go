package tapp

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/claim"
	"tkestack.io/tapp/plan/inplace"
	"tkestack.io/tapp/plan/spread"
	"tkestack.io/tapp/plan/template"
	"tkestack.io/tapp/plan/trial"
)

// podFor returns the pod that the instance's template makes, which a running one is
// compared with. The instance must have a template.
func (s *spec) podFor(i *instance) *corev1.Pod { return s.podFrom(i, i.template) }

// podFrom returns the pod that a template makes for the instance. The pods of a plan share
// what they have in common: it can hold 10,000 of them.
func (s *spec) podFrom(i *instance, t *podTemplate) *corev1.Pod {
	if t.model == nil {
		t.model = t.Spec.DeepCopy() // once, because the template is the input's
	}
	pod := &corev1.Pod{ObjectMeta: t.model.ObjectMeta, Spec: t.model.Spec}
	pod.Labels, pod.Annotations = maps.Clone(t.model.Labels), maps.Clone(t.model.Annotations)
	pod.Name, pod.GenerateName, pod.Namespace = s.tapp.Name+"-"+i.name, "", s.tapp.Namespace
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(s.tapp, tappv1.GroupVersionKind())}

	if pod.Labels == nil {
		pod.Labels = make(map[string]string, 4)
	}
	pod.Labels[tappv1.LabelInstanceID] = i.name
	pod.Labels[tappv1.LabelPodIndex] = i.name
	pod.Labels[tappv1.LabelTemplateHash] = t.Hashes.Template
	pod.Labels[tappv1.LabelUniqHash] = t.Hashes.Uniq
	if shape := t.shape(); shape != t.Hashes.Uniq { // otherwise the label says so
		setAnnotation(pod, tappv1.AnnotationShapeHash, shape)
	}
	delete(pod.Annotations, tappv1.AnnotationRestart) // one in a template would restart it for ever
	delete(pod.Annotations, tappv1.AnnotationKept)
	delete(pod.Annotations, tappv1.AnnotationClaimMayGo)
	setAnnotation(pod, tappv1.AnnotationTemplateKeys, t.Record)

	if service := s.tapp.Spec.ServiceName; service != "" {
		pod.Spec.Hostname, pod.Spec.Subdomain = pod.Name, service
	}
	if *s.tapp.Spec.UpdateStrategy.InPlaceUpdate.Drain && !inplace.HasGate(pod) {
		pod.Spec.ReadinessGates = append(slices.Clip(pod.Spec.ReadinessGates), corev1.PodReadinessGate{ConditionType: tappv1.GateInPlaceUpdate})
	}
	claim.Mount(pod, s.tapp, i.name)
	return pod
}

// newPod returns the pod to create, the given number of failures after the last
// one that ran well.
func (s *spec) newPod(i *instance, failures int) *corev1.Pod {
	t := s.nextTemplate(i)
	pod := s.podFrom(i, t)
	spread.Add(&pod.Spec, s.spread)
	if t != i.template {
		setAnnotation(pod, tappv1.AnnotationKept, t.Hashes.Template)
	}
	if failures > 0 {
		setAnnotation(pod, tappv1.AnnotationFailures, strconv.Itoa(failures))
	}
	if node := s.tapp.Status.Nodes[i.name]; s.tapp.Spec.NeverMigrate && node != "" {
		template.RequireNode(&pod.Spec, node)
	}
	return pod
}

// birth is the action that creates the instance's pod. A gated pod cannot become
// Ready before its gate is open, so that the gate opens with the same action.
func (s *spec) birth(c *clock, i *instance, op Op, failures int, reason, why string) Action {
	because, told := i.contentTold()
	a := Action{Op: op, Pod: s.newPod(i, failures), Reason: cmp.Or(because, reason), Why: why + told, Question: trial.Question{Kind: trial.Create, Key: s.nextTemplate(i).Hashes.Template}}
	if inplace.HasGate(a.Pod) {
		if s.openGate == nil {
			s.openGate = inplace.GatePatch(inplace.Target{}, true, "PodCreated", "no in-place update is under way", c.now)
		}
		a.Status = s.openGate
	}
	return a
}

func setAnnotation(pod *corev1.Pod, key, value string) {
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[key] = value
}
