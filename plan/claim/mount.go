package claim

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// Name of an instance's claim.
func Name(template, tapp, id string) string { return template + "-" + tapp + "-" + id }

// Mount replaces volumes of a new pod by the instance's claims of the same name. The volumes
// that the pod has may be shared with others, and are not changed.
func Mount(pod *corev1.Pod, t *tappv1.TApp, id string) {
	if len(t.Spec.VolumeClaimTemplates) > 0 {
		pod.Spec.Volumes = slices.Clone(pod.Spec.Volumes)
	}
	for i := range t.Spec.VolumeClaimTemplates {
		name := t.Spec.VolumeClaimTemplates[i].Name
		pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == name })
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{
			Name: name,
			VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: Name(name, t.Name, id)},
			},
		})
	}
}

// IsMounted says whether a pod mounts a claim.
func IsMounted(pod *corev1.Pod, claim string) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
	})
}
