package apiserver

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// Resources that every API server has.
const (
	Pods       = "pods"
	Claims     = "persistentvolumeclaims"
	Revisions  = "controllerrevisions"
	Nodes      = "nodes"
	Events     = "events"
	Namespaces = "namespaces"
	Secrets    = "secrets"
	ConfigMaps = "configmaps"
	Quotas     = "resourcequotas"
	Leases     = "leases"
)

// ProtectClaim is the finalizer of claims.
const ProtectClaim = "kubernetes.io/pvc-protection"

// Core are Kubernetes' own kinds with their rules.
func Core() map[string]Kind {
	core := func(name string, one func() Object, list func() runtime.Object) Kind {
		return Kind{GVK: corev1.SchemeGroupVersion.WithKind(name), New: one, NewList: list}
	}
	pod := core("Pod", func() Object { return &corev1.Pod{} }, func() runtime.Object { return &corev1.PodList{} })
	pod.Prepare, pod.Restrict, pod.Grace = preparePod, restrictPod, podGrace
	claim := core("PersistentVolumeClaim", func() Object { return &corev1.PersistentVolumeClaim{} },
		func() runtime.Object { return &corev1.PersistentVolumeClaimList{} })
	claim.Prepare, claim.Restrict = prepareClaim, restrictClaim
	event := core("Event", func() Object { return &corev1.Event{} }, func() runtime.Object { return &corev1.EventList{} })
	event.Discard = true
	node := core("Node", func() Object { return &corev1.Node{} }, func() runtime.Object { return &corev1.NodeList{} })
	node.Cluster = true
	namespace := core("Namespace", func() Object { return &corev1.Namespace{} }, func() runtime.Object { return &corev1.NamespaceList{} })
	namespace.Cluster = true
	return map[string]Kind{
		Pods: pod, Claims: claim, Events: event, Nodes: node, Namespaces: namespace,
		Secrets:    core("Secret", func() Object { return &corev1.Secret{} }, func() runtime.Object { return &corev1.SecretList{} }),
		ConfigMaps: core("ConfigMap", func() Object { return &corev1.ConfigMap{} }, func() runtime.Object { return &corev1.ConfigMapList{} }),
		Quotas:     core("ResourceQuota", func() Object { return &corev1.ResourceQuota{} }, func() runtime.Object { return &corev1.ResourceQuotaList{} }),
		Leases: {GVK: coordinationv1.SchemeGroupVersion.WithKind("Lease"), New: func() Object { return &coordinationv1.Lease{} },
			NewList: func() runtime.Object { return &coordinationv1.LeaseList{} }},
		Revisions: {GVK: appsv1.SchemeGroupVersion.WithKind("ControllerRevision"), New: func() Object { return &appsv1.ControllerRevision{} },
			NewList: func() runtime.Object { return &appsv1.ControllerRevisionList{} }},
	}
}

func prepareClaim(o Object) {
	c := o.(*corev1.PersistentVolumeClaim)
	c.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}
	c.Finalizers = append(c.Finalizers, ProtectClaim)
}

func restrictClaim(s *Server, sub string, o, before Object) error {
	now, old := o.(*corev1.PersistentVolumeClaim), before.(*corev1.PersistentVolumeClaim)
	if sub == "status" {
		now.ObjectMeta, now.Spec = *old.ObjectMeta.DeepCopy(), *old.Spec.DeepCopy()
		return nil
	}
	now.Status = *old.Status.DeepCopy()
	grown := old.Spec.DeepCopy()
	grown.Resources.Requests = now.Spec.Resources.Requests
	if !equality.Semantic.DeepEqual(*grown, now.Spec) {
		return apierrors.NewForbidden(s.GroupResource(Claims), now.Name, fmt.Errorf("spec is immutable after creation except resources.requests"))
	}
	return nil
}

func restrictPod(s *Server, sub string, o, before Object) error {
	now, old := o.(*corev1.Pod), before.(*corev1.Pod)
	if sub == "status" {
		now.Spec = *old.Spec.DeepCopy()
		now.OwnerReferences, now.Finalizers = old.OwnerReferences, old.Finalizers
		return nil
	}
	now.Status = *old.Status.DeepCopy()
	allowed := old.Spec.DeepCopy()
	switch sub {
	case "":
		takeImages(allowed.InitContainers, now.Spec.InitContainers)
		takeImages(allowed.Containers, now.Spec.Containers)
		allowed.ActiveDeadlineSeconds, allowed.Tolerations = now.Spec.ActiveDeadlineSeconds, now.Spec.Tolerations
	case "resize":
		for i := range min(len(allowed.Containers), len(now.Spec.Containers)) {
			allowed.Containers[i].Resources = now.Spec.Containers[i].Resources
		}
		now.ObjectMeta = *old.ObjectMeta.DeepCopy()
	case "binding":
		allowed.NodeName = now.Spec.NodeName
	}
	if !equality.Semantic.DeepEqual(*allowed, now.Spec) {
		return apierrors.NewInvalid(s.kinds[Pods].GVK.GroupKind(), now.Name, field.ErrorList{field.Forbidden(field.NewPath("spec"), "pod updates may not change fields other than `spec.containers[*].image`, `spec.initContainers[*].image`, `spec.activeDeadlineSeconds`, `spec.tolerations`")})
	}
	if sub != "binding" && !equality.Semantic.DeepEqual(old.Spec, now.Spec) {
		now.Generation++
	}
	return nil
}

func takeImages(allowed, now []corev1.Container) {
	for i := range min(len(allowed), len(now)) {
		allowed[i].Image = now[i].Image
	}
}

// podGrace of a deletion in seconds: pods that run have some.
func podGrace(o Object, d metav1.DeleteOptions) int64 {
	pod := o.(*corev1.Pod)
	if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		return 0
	}
	if d.GracePeriodSeconds != nil {
		return *d.GracePeriodSeconds
	}
	return ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, 30)
}

// preparePod fills what the API server and its built-in admission fill.
func preparePod(o Object) {
	pod := o.(*corev1.Pod)
	pod.Generation = 1
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: corev1.PodQOSBestEffort}
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
