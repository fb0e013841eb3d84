package sim

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// apiServer keeps the rules of Kubernetes' API server.
type apiServer struct {
	*store
	now func() time.Time
	// quota is how many pods the namespace may have; below 0: any number.
	quota int
	// admit changes a new pod, as admission webhooks do; nil: none.
	admit func(*corev1.Pod)
	// breaksOff says that a pod is stamped, and not removed.
	breaksOff bool
}

func newAPIServer(now func() time.Time) *apiServer {
	return &apiServer{store: newStore(), now: now, quota: -1}
}

// second is the time as the API writes it.
func (s *apiServer) second() metav1.Time { return metav1.NewTime(s.now().Truncate(time.Second)) }

func (s *apiServer) groupResource(resource string) schema.GroupResource {
	return schema.GroupResource{Group: s.kinds[resource].gvk.Group, Resource: resource}
}

func (s *apiServer) notFound(resource, name string) error {
	return apierrors.NewNotFound(s.groupResource(resource), name)
}

func (s *apiServer) conflict(resource, name, format string, args ...any) error {
	return apierrors.NewConflict(s.groupResource(resource), name, fmt.Errorf(format, args...))
}

func (s *apiServer) invalid(resource, name string, path, why string) error {
	return apierrors.NewInvalid(s.kinds[resource].gvk.GroupKind(), name, field.ErrorList{field.Invalid(field.NewPath(path), nil, why)})
}

// create is a POST. It takes the object over.
func (s *apiServer) create(resource string, o object, who actor) (object, error) {
	if o.GetName() == "" {
		return nil, s.invalid(resource, "", "metadata.name", "required")
	}
	if pod, ok := o.(*corev1.Pod); ok && s.quota >= 0 && len(s.tables[pods].objects) >= s.quota {
		return nil, apierrors.NewForbidden(s.groupResource(pods), pod.Name, fmt.Errorf("exceeded quota: pods, limited: pods=%d", s.quota))
	}
	if s.get(resource, o.GetName()) != nil {
		return nil, apierrors.NewAlreadyExists(s.groupResource(resource), o.GetName())
	}
	if !s.kinds[resource].cluster {
		o.SetNamespace(namespace)
	}
	o.SetUID(s.newUID())
	o.SetCreationTimestamp(s.second())
	o.SetDeletionTimestamp(nil)
	o.SetDeletionGracePeriodSeconds(nil)
	switch o := o.(type) {
	case *corev1.Pod:
		o.Generation = 1
		o.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: corev1.PodQOSBestEffort}
		if s.admit != nil {
			s.admit(o)
		}
		defaultPod(o)
	case *tappv1.TApp:
		o.Generation = 1
		o.Status = tappv1.TAppStatus{ObservedGeneration: -1} // the CRD's default
	case *corev1.PersistentVolumeClaim:
		o.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}
		o.Finalizers = append(o.Finalizers, protectClaim)
	}
	return s.commit(resource, nil, o, who), nil
}

// preconditions of a write; empty ones hold.
type preconditions struct{ uid, version string }

func (s *apiServer) check(resource string, o object, p preconditions) error {
	if p.uid != "" && p.uid != string(o.GetUID()) {
		return s.conflict(resource, o.GetName(), "Precondition failed: UID in precondition: %v, UID in object meta: %v", p.uid, o.GetUID())
	}
	if p.version != "" && p.version != o.GetResourceVersion() {
		return s.conflict(resource, o.GetName(), "Precondition failed: ResourceVersion in precondition: %v, ResourceVersion in object meta: %v", p.version, o.GetResourceVersion())
	}
	return nil
}

// update is a write to an object or one of its subresources: edit changes a copy of
// it, of which what the subresource does not cover is put back.
func (s *apiServer) update(resource, name, sub string, who actor, edit func(object) error) (object, error) {
	old := s.get(resource, name)
	if old == nil {
		return nil, s.notFound(resource, name)
	}
	now := clone(old)
	if err := edit(now); err != nil {
		return nil, err
	}
	if now.GetUID() != old.GetUID() {
		return nil, s.invalid(resource, name, "metadata.uid", "field is immutable")
	}
	if v := now.GetResourceVersion(); v != old.GetResourceVersion() && v != "" {
		return nil, s.conflict(resource, name, "the object has been modified; please apply your changes to the latest version and try again")
	}
	keepSystemFields(now, old)
	if err := s.restrict(resource, sub, now, old); err != nil {
		return nil, err
	}
	now.SetResourceVersion(old.GetResourceVersion())
	now.GetObjectKind().SetGroupVersionKind(s.kinds[resource].gvk)
	if equality.Semantic.DeepEqual(now, old) {
		return old, nil
	}
	if now.GetDeletionTimestamp() != nil && len(now.GetFinalizers()) == 0 && ended(now) {
		s.commit(resource, now, nil, who)
		return now, nil
	}
	return s.commit(resource, old, now, who), nil
}

// ended says whether nothing but finalizers keeps a deleted object.
func ended(o object) bool {
	grace := o.GetDeletionGracePeriodSeconds()
	return grace == nil || *grace == 0
}

func keepSystemFields(now, old object) {
	now.SetName(old.GetName())
	now.SetNamespace(old.GetNamespace())
	now.SetCreationTimestamp(old.GetCreationTimestamp())
	now.SetDeletionTimestamp(old.GetDeletionTimestamp())
	now.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
	now.SetGeneration(old.GetGeneration())
	if old.GetDeletionTimestamp() != nil { // finalizers may only go
		now.SetFinalizers(slices.DeleteFunc(now.GetFinalizers(), func(f string) bool { return !slices.Contains(old.GetFinalizers(), f) }))
	}
}

// restrict puts back what a subresource does not cover, counts generations, and
// refuses what may not change.
func (s *apiServer) restrict(resource, sub string, now, old object) error {
	switch now := now.(type) {
	case *corev1.Pod:
		return s.restrictPod(sub, now, old.(*corev1.Pod))
	case *tappv1.TApp:
		old := old.(*tappv1.TApp)
		if sub == "status" {
			now.ObjectMeta, now.Spec = *old.ObjectMeta.DeepCopy(), *old.Spec.DeepCopy()
			return nil
		}
		now.Status = *old.Status.DeepCopy()
		if !equality.Semantic.DeepEqual(now.Spec, old.Spec) {
			now.Generation++
		}
	case *corev1.PersistentVolumeClaim:
		old := old.(*corev1.PersistentVolumeClaim)
		if sub == "status" {
			now.ObjectMeta, now.Spec = *old.ObjectMeta.DeepCopy(), *old.Spec.DeepCopy()
			return nil
		}
		now.Status = *old.Status.DeepCopy()
		grown := old.Spec.DeepCopy()
		grown.Resources.Requests = now.Spec.Resources.Requests
		if !equality.Semantic.DeepEqual(*grown, now.Spec) {
			return apierrors.NewForbidden(s.groupResource(resource), now.Name, fmt.Errorf("spec is immutable after creation except resources.requests"))
		}
	}
	return nil
}

func (s *apiServer) restrictPod(sub string, now, old *corev1.Pod) error {
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
		return s.invalid(pods, now.Name, "spec", "Forbidden: pod updates may not change fields other than `spec.containers[*].image`, `spec.initContainers[*].image`, `spec.activeDeadlineSeconds`, `spec.tolerations`")
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
