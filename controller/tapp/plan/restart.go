package plan

import (
	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

const whyRestart = "a restart of the instance was requested"

// isRestartRequested says whether somebody asked for another pod in the place of
// this one. It is asked of the pod and not of the spec, so that it is done when
// the pod is gone, and nothing has to be taken back.
//
// To the rollout such a pod is one that has to be recreated: it waits for the
// budget of its template, and for the end of a pause. InPlaceOnly does not hold
// it, since that is about what a new template may do.
func isRestartRequested(pod *corev1.Pod) bool { return pod.Annotations[tappv1.AnnotationRestart] != "" }

// reasonRecreate is why a rollout deletes a pod.
func reasonRecreate(pod *corev1.Pod) string {
	if isRestartRequested(pod) {
		return "RestartRequested"
	}
	return "TemplateChanged"
}
