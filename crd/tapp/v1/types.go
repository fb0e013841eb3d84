package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// TApp runs a fixed number of pods, each with an identity of its own: an
// instance id, from "0" to replicas-1 unless ordinals says otherwise, and with it a
// name, optionally a DNS name and claims. Every instance can have its own template, and can be stopped,
// started and upgraded alone.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=tapps,singular=tapp,shortName=ta,categories=all
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.scaleLabelSelector
// +kubebuilder:printcolumn:name="DESIRED",type=integer,JSONPath=`.spec.replicas`,description="Number of instances asked for"
// +kubebuilder:printcolumn:name="READY",type=integer,JSONPath=`.status.readyReplicas`,description="Instances whose pod is ready"
// +kubebuilder:printcolumn:name="UPDATED",type=integer,JSONPath=`.status.updatedReplicas`,description="Instances whose pod follows its current template"
// +kubebuilder:printcolumn:name="COMPLETED",type=integer,priority=1,JSONPath=`.status.completedReplicas`,description="Instances that ended, and stay as they ended"
// +kubebuilder:printcolumn:name="STATUS",type=string,JSONPath=`.status.appStatus`,description="State of the application as a whole"
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="IMAGE",type=string,priority=1,JSONPath=`.spec.template.spec.containers[0].image`,description="Image of the first container of the template named default"
// +kubebuilder:printcolumn:name="SELECTOR",type=string,priority=1,JSONPath=`.status.scaleLabelSelector`
type TApp struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the user asks for.
	// +required
	Spec TAppSpec `json:"spec"`

	// status is what the controller last observed. An observedGeneration of -1 says
	// that it has not looked yet.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status TAppStatus `json:"status,omitempty"`
}

// TAppList is a list of TApps.
//
// +kubebuilder:object:root=true
type TAppList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TApp `json:"items"`
}

// TAppSpec is the desired state of a TApp.
//
// +kubebuilder:validation:XValidation:rule=`(has(self.serviceName) ? self.serviceName : "") == (has(oldSelf.serviceName) ? oldSelf.serviceName : "")`,fieldPath=".serviceName",message="serviceName is immutable: it is part of every instance's DNS name. Create a new TApp to change it"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.selector) || (has(self.selector) && self.selector == oldSelf.selector)",fieldPath=".selector",message="selector is immutable: instances that it no longer matches would be abandoned. Leave it out to keep the stored one. To change it, delete the TApp with --cascade=orphan and create it with the other selector: running pods that match are adopted"
// +kubebuilder:validation:XValidation:rule="(has(self.volumeClaimTemplates) ? self.volumeClaimTemplates.map(c, c.?metadata.?name) : []) == (has(oldSelf.volumeClaimTemplates) ? oldSelf.volumeClaimTemplates.map(c, c.?metadata.?name) : [])",fieldPath=".volumeClaimTemplates",message="volumeClaimTemplates cannot be added, removed or renamed: instances already own their claims. Create a new TApp to change them"
type TAppSpec struct {
	// replicas is the number of instances; their ids are "0" to replicas-1, or
	// begin at ordinals.start. Absent means 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// ordinals says which ids the instances have. Absent means "0" to replicas-1.
	// +optional
	Ordinals *Ordinals `json:"ordinals,omitempty"`

	// selector says which pods belong to this TApp. Absent: at creation, the labels
	// of template without those that name a version (app.kubernetes.io/version,
	// helm.sh/chart, chart, version, pod-template-hash, controller-revision-hash), or
	// all of them if nothing else is left; later, the one that was taken then.
	// Immutable; the labels of every template must match it.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// template is the pod template named "default". With restartPolicy Always no end of a pod
	// is that of its instance: another one follows. With OnFailure a success is, and with
	// Never any end, but not the loss of a pod that was evicted or preempted, was on a node
	// that shut down, or was refused by its kubelet: the instance then runs again. So Never is
	// no promise that it runs at most once.
	// +required
	Template corev1.PodTemplateSpec `json:"template"`

	// templatePool holds further pod templates by name. The name "default" is
	// reserved for template. At most 4,096 templates.
	// +optional
	// +kubebuilder:validation:MaxProperties=4096
	// +kubebuilder:validation:XValidation:rule="!('default' in self)",message="the name default is reserved for spec.template: give this template another name"
	TemplatePool map[string]corev1.PodTemplateSpec `json:"templatePool,omitempty"`

	// templates says which template an instance uses: instance id to template
	// name. An id that is not listed uses defaultTemplateName. Ids that the TApp does
	// not have are allowed, and wait until it has them. At most 50,000 entries.
	// +optional
	// +kubebuilder:validation:MaxProperties=50000
	Templates map[string]string `json:"templates,omitempty"`

	// defaultTemplateName is the template of instances that templates does not
	// list. Absent or empty means "default".
	// +optional
	DefaultTemplateName string `json:"defaultTemplateName,omitempty"`

	// DefaultTemplateName is the spelling of defaultTemplateName in the tutorial of
	// tkestack/tapp. It holds where defaultTemplateName is empty. Deprecated: use
	// defaultTemplateName.
	// +optional
	LegacyDefaultTemplateName string `json:"DefaultTemplateName,omitempty"`

	// statuses stops single instances: instance id to desired status. "Killed"
	// deletes the instance's pod and keeps its identity and claims; "Running" or
	// no entry runs it. All other values have no effect. At most 50,000 entries.
	// +optional
	// +kubebuilder:validation:MaxProperties=50000
	Statuses map[string]InstanceStatus `json:"statuses,omitempty"`

	// updateStrategy says how instances get to a changed template.
	// +optional
	UpdateStrategy TAppUpdateStrategy `json:"updateStrategy,omitempty"`

	// paused stops updates from starting while it is true. Updates under way
	// finish, and creates, kills and scaling go on: a pod that is lost, or that failed,
	// comes back as it was, and a new instance as most of those that are ready.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// minReadySeconds is how long, in seconds, a pod has to be ready before its
	// instance counts as available. A ready pod serves before that, too: to interrupt
	// it takes room in the budget. An instance that has its template makes room for the
	// next one when it is available. Absent means 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`

	// revisionHistoryLimit is how many old revisions of the spec are kept for
	// rollback. Those that instances still need do not count. Absent means 10.
	// +optional
	// +kubebuilder:validation:Minimum=0
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// progressDeadlineSeconds is how long, in seconds, the TApp may go without
	// progress before the condition Stalled says what is stuck. Absent means 600.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`

	// volumeClaimTemplates gives every instance claims of its own, named
	// <claim template>-<tapp>-<id>. A claim replaces the template's volume of the
	// same name. Immutable, but for a larger storage request, which existing claims
	// follow, and for metadata other than the name, which new claims get.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	VolumeClaimTemplates []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates,omitempty"`

	// persistentVolumeClaimRetentionPolicy says what happens to the claims of
	// volumeClaimTemplates. A killed instance always keeps its claims.
	// +optional
	PersistentVolumeClaimRetentionPolicy *PersistentVolumeClaimRetentionPolicy `json:"persistentVolumeClaimRetentionPolicy,omitempty"`

	// serviceName is the headless Service that gives every instance the DNS name
	// <pod>.<serviceName>.<namespace>.svc.<cluster domain>. Immutable.
	// +optional
	ServiceName string `json:"serviceName,omitempty"`

	// defaultTopologySpread is None or System: how new pods are spread over nodes and
	// zones whose template has no topologySpreadConstraints. System: as kube-scheduler
	// spreads those of a StatefulSet by default, by constraints in the pod for
	// kubernetes.io/hostname (maxSkew 3) and, while every node has that label,
	// topology.kubernetes.io/zone (maxSkew 5), with ScheduleAnyway. Pods whose template
	// gives nodeName or another schedulerName get none. A change holds for pods made from
	// then on, and restarts nothing. Absent means as the operator of TApp decided
	// (--default-topology-spread), which is System unless he chose None.
	// +optional
	DefaultTopologySpread DefaultTopologySpread `json:"defaultTopologySpread,omitempty"`

	// forceDeletePod lets the controller delete a terminating pod by force when
	// there is evidence that its node is lost. Two pods of one instance may then
	// run at once if the node is still alive.
	// +optional
	ForceDeletePod bool `json:"forceDeletePod,omitempty"`

	// neverMigrate keeps an instance on the node it first ran on: its later pods
	// carry a required node affinity. Whether one that ended is run again, its restartPolicy
	// says as without neverMigrate, but that with OnFailure a failure by itself is an end, too.
	// +optional
	NeverMigrate bool `json:"neverMigrate,omitempty"`

	// autoDeleteUnusedTemplate drops entries of templatePool that neither
	// templates, defaultTemplateName nor updateStrategy.template names.
	// +optional
	AutoDeleteUnusedTemplate bool `json:"autoDeleteUnusedTemplate,omitempty"`
}

// DefaultTopologySpread says how pods are spread whose template does not say it.
//
// +kubebuilder:validation:Enum=None;System
type DefaultTopologySpread string

const (
	// NoTopologySpread leaves it to kube-scheduler, which spreads pods of a Service only.
	NoTopologySpread DefaultTopologySpread = "None"
	// SystemTopologySpread gives new pods the constraints that kube-scheduler has for those
	// of a StatefulSet.
	SystemTopologySpread DefaultTopologySpread = "System"
)

// IsKnown says whether it is one of the constants.
func (s DefaultTopologySpread) IsKnown() bool {
	return s == NoTopologySpread || s == SystemTopologySpread
}

// Ordinals are the ids of the instances, as in a StatefulSet (KEP-3335).
type Ordinals struct {
	// start is the first id; the last one is start+replicas-1, at most 2147483647.
	// When it changes, instances whose ids the TApp has no more are removed as by a
	// scale-down, and those that it has now are created; the others are left alone.
	// Absent means 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Start int32 `json:"start,omitempty"`
}

// TAppUpdateStrategy says how instances get to a changed template.
type TAppUpdateStrategy struct {
	// template is the template whose instances update by rolling, within
	// maxUnavailable. Instances of all other templates update by force, within
	// forceUpdate.maxUnavailable. Absent or empty means defaultTemplateName.
	// +optional
	Template string `json:"template,omitempty"`

	// maxUnavailable is how many instances may be unavailable during a rolling
	// update: a number above 0, or a percentage of the instances that are to run,
	// rounded up. Absent means 1.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// forceUpdate bounds the updates of instances whose template is not the
	// rolling one.
	// +optional
	ForceUpdate ForceUpdateStrategy `json:"forceUpdate,omitempty"`

	// inPlaceUpdate says when a pod is changed in place rather than recreated.
	// +optional
	InPlaceUpdate InPlaceUpdateStrategy `json:"inPlaceUpdate,omitempty"`

	// restartOn names the annotations of templates that ask for a restart: when one of
	// them is added, changed or removed, instances are recreated, within the budget.
	// Entries are annotation keys, in which * stands for any characters but /. Absent
	// or empty means checksum/*, */checksum and kubectl.kubernetes.io/restartedAt;
	// the single entry None means no annotation. With the policy InPlaceOnly pods get
	// the annotation, and nothing restarts. At most 32 entries.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	RestartOn []string `json:"restartOn,omitempty"`
}

// ForceUpdateStrategy bounds forced updates.
type ForceUpdateStrategy struct {
	// maxUnavailable is how many instances may be unavailable during a forced
	// update: a number above 0, or a percentage of the instances that are to run,
	// rounded up. Absent means 100%.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// InPlaceUpdatePolicy says whether pods are changed in place.
//
// +kubebuilder:validation:Enum=InPlaceIfPossible;InPlaceOnly;ReCreate
type InPlaceUpdatePolicy string

const (
	// InPlaceIfPossible changes a pod in place when only images, labels and
	// annotations of its template changed, and recreates it otherwise. It also
	// recreates for annotations of restartOn, and for images of init containers (see
	// initImages), and where admission changes the pod in what a running one cannot change.
	InPlaceIfPossible InPlaceUpdatePolicy = "InPlaceIfPossible"
	// InPlaceOnly never recreates a pod for an update: an instance whose template
	// changed in more than images, labels and annotations waits, and the
	// condition Stalled names it.
	InPlaceOnly InPlaceUpdatePolicy = "InPlaceOnly"
	// ReCreate recreates a pod for every update.
	ReCreate InPlaceUpdatePolicy = "ReCreate"
)

// InitImagesPolicy says what a changed image of an init container does.
//
// +kubebuilder:validation:Enum=ReCreate;NextStart
type InitImagesPolicy string

const (
	// InitImagesReCreate recreates the pod, so that the init container runs.
	InitImagesReCreate InitImagesPolicy = "ReCreate"
	// InitImagesNextStart changes the image in place. The init container runs it when
	// the instance's pod starts next.
	InitImagesNextStart InitImagesPolicy = "NextStart"
)

// InPlaceUpdateStrategy says when and how a pod is changed in place.
type InPlaceUpdateStrategy struct {
	// policy is InPlaceIfPossible, InPlaceOnly or ReCreate. Absent means
	// InPlaceIfPossible, which also recreates a pod whose update in place the API
	// server refuses because admission changes a field that is immutable.
	// +optional
	Policy InPlaceUpdatePolicy `json:"policy,omitempty"`

	// drain takes a pod out of its Services before it changes in place: pods get
	// the readiness gate tkestack.io/InPlaceUpdate. false saves two of three
	// writes for instances that no Service routes to. It holds for pods created
	// from then on. Absent means true.
	// +optional
	Drain *bool `json:"drain,omitempty"`

	// initImages is ReCreate or NextStart: what a changed image of an init container
	// does to a running pod. ReCreate recreates it. NextStart changes the image in
	// place, where it waits for the instance's next pod; until then the condition
	// InitImagesBehind names the instance. Init containers that keep running (sidecars)
	// restart in place with either. With the policy InPlaceOnly, and for pods of
	// another program that are taken over, it is NextStart. Absent means ReCreate.
	// +optional
	InitImages InitImagesPolicy `json:"initImages,omitempty"`

	// resources lets the cpu and memory of containers change in place too, by the
	// subresource resize of pods (KEP-1287). A pod whose node cannot provide them is
	// recreated. Absent means false: pods are recreated.
	// +optional
	Resources bool `json:"resources,omitempty"`

	// gracePeriodSeconds is how long, in seconds, a drained pod is left alone
	// before it changes, so that clients can notice. Absent means 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	GracePeriodSeconds int32 `json:"gracePeriodSeconds,omitempty"`
}

// PersistentVolumeClaimRetentionPolicyType is Retain or Delete.
//
// +kubebuilder:validation:Enum=Retain;Delete
type PersistentVolumeClaimRetentionPolicyType string

const (
	// RetainPersistentVolumeClaim leaves the claims alone.
	RetainPersistentVolumeClaim PersistentVolumeClaimRetentionPolicyType = "Retain"
	// DeletePersistentVolumeClaim deletes the claims.
	DeletePersistentVolumeClaim PersistentVolumeClaimRetentionPolicyType = "Delete"
)

// PersistentVolumeClaimRetentionPolicy says when claims of volumeClaimTemplates
// are deleted, as in StatefulSet (KEP-1847).
type PersistentVolumeClaimRetentionPolicy struct {
	// whenDeleted says what happens to the claims when the TApp is deleted.
	// They follow a change soon; until the TApp is Ready again, some may be as before.
	// Absent means Retain.
	// +optional
	WhenDeleted PersistentVolumeClaimRetentionPolicyType `json:"whenDeleted,omitempty"`

	// whenScaled says what happens to the claims of instances that a scale-down
	// removes. Those of an instance that was killed by then stay. Absent means Retain.
	// +optional
	WhenScaled PersistentVolumeClaimRetentionPolicyType `json:"whenScaled,omitempty"`
}
