package tapp

import (
	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/template"
)

// remade says why the pod is to be recreated whatever its template says; empty:
// it is not. To the rollout it waits for the budget of its template, and for the
// end of a pause. InPlaceOnly does not hold it, since that is about what a new
// template may do.
func (d *decision) remade(i *instance) (reason, why string) {
	switch {
	case isRestartRequested(i.pod):
		return "RestartRequested", "a restart of the instance was requested"
	case d.isTiedInVain(i):
		return "NeverMigrateOff", "the pod waits for a node to which spec.neverMigrate tied it, and which it need not wait for any more"
	}
	return "", ""
}

// isRestartRequested says whether somebody asked for another pod in the place of
// this one. It is asked of the pod and not of the spec, so that it is done when
// the pod is gone, and nothing has to be taken back.
func isRestartRequested(pod *corev1.Pod) bool { return pod.Annotations[tappv1.AnnotationRestart] != "" }

// isTiedInVain says whether the pod has no node because neverMigrate, which is off
// by now, tied it to one.
func (d *decision) isTiedInVain(i *instance) bool {
	return !d.tapp.Spec.NeverMigrate && i.pod.Spec.NodeName == "" && i.template != nil &&
		template.RequiresNode(&i.pod.Spec) && !template.RequiresNode(&i.template.Spec.Spec)
}
