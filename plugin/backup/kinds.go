package backup

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/crd/workload/v1beta1"
)

// The resources that are read and written.
var (
	tapps          = schema.GroupVersionResource{Group: tappv1.GroupName, Version: "v1", Resource: "tapps"}
	appSets        = schema.GroupVersionResource{Group: v1beta1.GroupName, Version: "v1beta1", Resource: "appsets"}
	advDeployments = schema.GroupVersionResource{Group: v1beta1.GroupName, Version: "v1beta1", Resource: "advdeployments"}
	revisions      = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "controllerrevisions"}
	claims         = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	volumes        = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"}
	spaces         = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	secrets        = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	configMaps     = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

// class is a kind that a file has.
type class struct {
	kind     schema.GroupVersionKind
	resource schema.GroupVersionResource
	// step of a restore in which it is made.
	step step
	// Of workloads: the annotations by which one is held while it is restored, and which
	// says what it was restored from; the label of its revisions, whose value is its UID
	// where labelUID says so.
	holding, from, label string
	labelUID             bool
}

// step of a restore; see writer.
type step int

const (
	stepData step = iota
	stepClaims
	stepWorkloads
	stepRevisions
)

// classes in the order in which they are written and restored.
var classes = []class{
	{kind: corev1.SchemeGroupVersion.WithKind("Secret"), resource: secrets, step: stepData},
	{kind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), resource: configMaps, step: stepData},
	{kind: corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), resource: claims, step: stepClaims},
	{kind: tappv1.GroupVersionKind(), resource: tapps, step: stepWorkloads,
		holding: tappv1.AnnotationRestoring, from: tappv1.AnnotationRestoredFrom, label: tappv1.LabelTApp},
	{kind: v1beta1.SchemeGroupVersion.WithKind(v1beta1.KindAdvDeployment), resource: advDeployments, step: stepWorkloads,
		holding: v1beta1.AnnotationRestoring, from: v1beta1.AnnotationRestoredFrom, label: v1beta1.LabelAdvDeploymentUID, labelUID: true},
	{kind: v1beta1.SchemeGroupVersion.WithKind(v1beta1.KindAppSet), resource: appSets, step: stepWorkloads,
		holding: v1beta1.AnnotationRestoring, from: v1beta1.AnnotationRestoredFrom, label: v1beta1.LabelAppSetUID, labelUID: true},
	{kind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ControllerRevision"}, resource: revisions, step: stepRevisions},
}

// classOf an object, and its place in the order; nil: a kind that no backup has.
func classOf(u *unstructured.Unstructured) (of *class, order int) {
	for i := range classes {
		if u.GroupVersionKind() == classes[i].kind {
			return &classes[i], i
		}
	}
	return nil, len(classes)
}

// workloadOf a resource.
func workloadOf(resource schema.GroupVersionResource) *class {
	for i := range classes {
		if classes[i].resource == resource && classes[i].step == stepWorkloads {
			return &classes[i]
		}
	}
	return nil
}

// ownerName is how a document names the workload that owns it: a TApp by its name alone, and
// others with their kind.
func ownerName(u *unstructured.Unstructured) string {
	if u.GroupVersionKind() == tappv1.GroupVersionKind() {
		return u.GetName()
	}
	return u.GetKind() + "/" + u.GetName()
}

// origin is what the annotation of a restored workload says: its former UID, and for the
// kinds of the fleet its generation, which tells parts that are newer than the backup.
func (of *class) origin(document *unstructured.Unstructured) string {
	uid := document.GetAnnotations()[annotationUID]
	if !of.labelUID {
		return uid
	}
	return uid + "/" + document.GetAnnotations()[annotationGeneration]
}

// isFrom says whether a live workload is the one that a restore made of a document.
func (of *class) isFrom(live, document *unstructured.Unstructured) bool {
	uid, _, _ := strings.Cut(live.GetAnnotations()[of.from], "/")
	return uid == document.GetAnnotations()[annotationUID]
}

// generationOf an AppSet is that up to which its parts may have been written.
func generationOf(u *unstructured.Unstructured) string {
	accepted, _ := strconv.ParseInt(u.GetAnnotations()[v1beta1.AnnotationAcceptGeneration], 10, 64)
	return strconv.FormatInt(max(u.GetGeneration(), accepted), 10)
}

// isRegistration says whether an object registers a cluster, and so has its credentials.
func isRegistration(u *unstructured.Unstructured) bool {
	of, _ := classOf(u)
	labels := u.GetLabels()
	return of != nil && of.step == stepData && (labels[v1beta1.LabelOwner] == v1beta1.OwnerLegacy || labels[v1beta1.LabelRuntime] == "true")
}

// nameOf an object, as kubectl writes it, with its namespace.
func nameOf(u *unstructured.Unstructured) string {
	kind := strings.ToLower(u.GetKind())
	if group := u.GroupVersionKind().Group; group != "" {
		kind += "." + group
	}
	return fmt.Sprintf("%s/%s -n %s", kind, u.GetName(), u.GetNamespace())
}

// controllerOf is the UID of an object's controller, or empty.
func controllerOf(u *unstructured.Unstructured) string {
	if owner := metav1.GetControllerOf(u); owner != nil {
		return string(owner.UID)
	}
	return ""
}
