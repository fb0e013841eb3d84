package sim

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// Finalizers that Kubernetes itself sets.
const (
	foreground   = metav1.FinalizerDeleteDependents
	orphan       = metav1.FinalizerOrphanDependents
	protectClaim = "kubernetes.io/pvc-protection"
)

// remove is a DELETE. It returns the object while that is still there.
func (s *apiServer) remove(resource, name string, o metav1.DeleteOptions, who actor) (object, error) {
	old := s.get(resource, name)
	if old == nil {
		return nil, s.notFound(resource, name)
	}
	var p preconditions
	if o.Preconditions != nil {
		p.uid, p.version = string(ptr.Deref(o.Preconditions.UID, "")), ptr.Deref(o.Preconditions.ResourceVersion, "")
	}
	if err := s.check(resource, old, p); err != nil {
		return nil, err
	}
	grace := graceOf(old, o)
	if old.GetDeletionTimestamp() != nil && ptr.Deref(old.GetDeletionGracePeriodSeconds(), 0) == 0 {
		grace = 0 // what an earlier request began is finished
	}
	now := clone(old)
	if f := finalizerOf(o); f != "" && !slices.Contains(now.GetFinalizers(), f) && old.GetDeletionTimestamp() == nil {
		now.SetFinalizers(append(now.GetFinalizers(), f))
	}
	if grace == 0 && len(now.GetFinalizers()) == 0 && !(s.breaksOff && resource == pods) {
		s.commit(resource, old, nil, who)
		return nil, nil
	}
	if old.GetDeletionTimestamp() != nil {
		if left := ptr.Deref(old.GetDeletionGracePeriodSeconds(), 0); grace >= left {
			return old, nil // it is under way
		}
	}
	if old.GetDeletionTimestamp() == nil && now.GetGeneration() > 0 {
		now.SetGeneration(now.GetGeneration() + 1)
	}
	until := metav1.NewTime(s.second().Add(time.Duration(grace) * time.Second))
	now.SetDeletionTimestamp(&until)
	now.SetDeletionGracePeriodSeconds(&grace)
	return s.commit(resource, old, now, who), nil
}

// graceOf a deletion in seconds: pods that run have some.
func graceOf(o object, d metav1.DeleteOptions) int64 {
	pod, ok := o.(*corev1.Pod)
	if !ok || pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		return 0
	}
	if d.GracePeriodSeconds != nil {
		return *d.GracePeriodSeconds
	}
	return ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, 30)
}

func finalizerOf(o metav1.DeleteOptions) string {
	switch ptr.Deref(o.PropagationPolicy, metav1.DeletePropagationBackground) {
	case metav1.DeletePropagationForeground:
		return foreground
	case metav1.DeletePropagationOrphan:
		return orphan
	}
	return ""
}

// defaultPod fills what the API server and its built-in admission fill.
func defaultPod(pod *corev1.Pod) {
	s := &pod.Spec
	setDefault(&s.RestartPolicy, corev1.RestartPolicyAlways)
	setDefault(&s.DNSPolicy, corev1.DNSClusterFirst)
	setDefault(&s.SchedulerName, corev1.DefaultSchedulerName)
	setDefault(&s.ServiceAccountName, "default")
	s.DeprecatedServiceAccount = s.ServiceAccountName
	if s.TerminationGracePeriodSeconds == nil {
		s.TerminationGracePeriodSeconds = ptr.To[int64](30)
	}
	if s.SecurityContext == nil {
		s.SecurityContext = &corev1.PodSecurityContext{}
	}
	if s.EnableServiceLinks == nil {
		s.EnableServiceLinks = ptr.To(true)
	}
	if s.Priority == nil {
		s.Priority, s.PreemptionPolicy = ptr.To[int32](0), ptr.To(corev1.PreemptLowerPriority)
	}
	for _, list := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range list {
			setDefault(&list[i].TerminationMessagePath, corev1.TerminationMessagePathDefault)
			setDefault(&list[i].TerminationMessagePolicy, corev1.TerminationMessageReadFile)
			setDefault(&list[i].ImagePullPolicy, corev1.PullIfNotPresent)
			list[i].VolumeMounts = append(list[i].VolumeMounts, corev1.VolumeMount{Name: "kube-api-access", ReadOnly: true,
				MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"})
		}
	}
	s.Volumes = append(s.Volumes, corev1.Volume{Name: "kube-api-access", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}})
	for _, taint := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		s.Tolerations = append(s.Tolerations, corev1.Toleration{Key: taint, Operator: corev1.TolerationOpExists,
			Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](300)})
	}
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// isTApp says whether a reference is one to a TApp.
func isTApp(ref *metav1.OwnerReference) bool {
	return ref != nil && ref.Kind == tappv1.Kind && ref.APIVersion == tappv1.SchemeGroupVersion.String()
}

// deleteNow is a deletion by force.
func deleteNow() metav1.DeleteOptions { return metav1.DeleteOptions{GracePeriodSeconds: new(int64)} }
