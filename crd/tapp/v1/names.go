package v1

import corev1 "k8s.io/api/core/v1"

// Names that TApp's objects and pods carry. Those without a comment of their own
// are tkestack/tapp's, whose pods are taken over as they are.
const (
	// GroupName is the API group.
	GroupName = "apps.tkestack.io"
	// Kind of the API.
	Kind = "TApp"

	// MaxEntries is how many instances spec.templates and spec.statuses can name, and
	// MaxTemplates how many templates the pool can hold. The markers of the fields have
	// the same numbers. Larger ones fit into no object that etcd takes.
	MaxEntries   = 50_000
	MaxTemplates = 4096

	// DefaultTemplateName names spec.template among the templates.
	DefaultTemplateName = "default"

	// LabelInstanceID is the pod label with the instance id.
	LabelInstanceID = "tapp_instance_key"
	// LabelTemplateHash is the label with the hash of the whole template.
	LabelTemplateHash = "tapp_template_hash_key"
	// LabelUniqHash is the label with the hash of the template's spec without
	// images.
	LabelUniqHash = "tapp_uniq_hash_key"
	// LabelTApp is the label of ControllerRevisions with the name of their TApp.
	LabelTApp = "tkestack.io/tapp"
	// LabelPodIndex is the instance id under Kubernetes' own label (KEP-4017).
	LabelPodIndex = "apps.kubernetes.io/pod-index"

	// AnnotationInPlaceState is the pod annotation that records what an in-place
	// update waits for.
	AnnotationInPlaceState = "tkestack.io/inplace-update-state"
	// AnnotationTemplateKeys is the pod annotation that records what the pod's template
	// said of its labels, annotations, images and resources, so that an update in place changes what
	// the template changed, and nothing else.
	AnnotationTemplateKeys = "tkestack.io/template-keys"
	// AnnotationPortMapping is the pod annotation with which a template asks Galaxy for
	// host ports, with an empty value. Galaxy writes those that it allocated into the pod.
	AnnotationPortMapping = "tkestack.io/portmapping"
	// AnnotationShapeHash is the pod annotation with the hash of its template's spec
	// without images, cpu and memory: while it is the template's, resources can
	// change in place. Absent: it is the label LabelUniqHash.
	AnnotationShapeHash = "tkestack.io/shape-hash"
	// AnnotationResized is the pod annotation that says which requests and limits of the
	// pod's containers were, or are about to be, changed in place, for example
	// "web:limits.memory web:requests.cpu"; "true" stands for all of them.
	AnnotationResized = "tkestack.io/resized"
	// AnnotationFailures is the pod annotation that counts how many pods of the
	// instance failed in a row before this one.
	AnnotationFailures = "tkestack.io/failures"
	// AnnotationKept is the pod annotation of a pod that was made with another content than
	// its instance's present template: the hash of the template that it was made from.
	AnnotationKept = "tkestack.io/kept"
	// AnnotationRestart is the pod annotation that asks for another pod of the
	// instance, as soon as the budget of its template allows it. The value, which is
	// not empty, is the time of the request for people to read.
	AnnotationRestart = "tkestack.io/restart-requested"
	// AnnotationClaimMayGo is the pod annotation that lets claims go that are being deleted
	// and that the pod mounts: their UIDs, with commas between them. While it lacks one, the
	// pod is neither recreated nor stopped.
	AnnotationClaimMayGo = "tkestack.io/claim-may-go"

	// AnnotationClaimOf is the mark of a claim: whose it is, as <kind>/<name>/<uid>. Only a
	// claim with the UID of its TApp, or that the TApp controls, goes by a retention policy.
	AnnotationClaimOf = "tkestack.io/claim-of"
	// AnnotationClaimFound is the annotation of a claim that was there before the TApp used
	// it, without the TApp's labels: no retention policy is about it. Who removes the
	// annotation hands the claim over.
	AnnotationClaimFound = "tkestack.io/claim-found"

	// DefaultTrackingLabel is the label by which Argo CD tracks the objects of an Application,
	// unless argocd-cm names another one (application.instanceLabelKey).
	DefaultTrackingLabel = "app.kubernetes.io/instance"

	// AnnotationRestoring is the annotation of a TApp that is being restored from a backup:
	// nothing is done for it and its status is not written until the annotation is gone,
	// since its claims, its history and its status are not complete.
	AnnotationRestoring = "tkestack.io/restoring"
	// AnnotationRestoredFrom is the annotation of a TApp with the UID that it had in the
	// backup from which it was restored.
	AnnotationRestoredFrom = "tkestack.io/restored-from"

	// GateInPlaceUpdate is the readiness gate that takes a pod out of its
	// Services while it changes in place.
	GateInPlaceUpdate corev1.PodConditionType = "tkestack.io/InPlaceUpdate"
)
