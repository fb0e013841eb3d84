package v1beta1

import "strings"

// Names of the API.
const (
	// GroupName is the API group.
	GroupName = "workload.dmall.com"

	KindAppSet        = "AppSet"
	KindAdvDeployment = "AdvDeployment"
	KindConfirmation  = "Confirmation"
)

// Labels of children and pods. The first two are the selector.
const (
	// LabelApp is the name of the AppSet, or of an AdvDeployment that has none.
	LabelApp = "app"
	// LabelRelease is the name of the podSet.
	LabelRelease = "release"
	// LabelVersion is the version of the podSet.
	LabelVersion = "version"
	// LabelCluster is the cluster. Default: its registered name.
	LabelCluster = "sym-cluster-info"
	// LabelGroup is the group of the podSet: canary, blue or green.
	LabelGroup = "sym-group"
	// LabelLDC is the logical data center of the podSet, such as gz01b.
	LabelLDC = "sym-ldc"
	// LabelDomain is the service's domain.
	LabelDomain = "lightningDomain0"
)

// Marks on the objects that a controller of AdvDeployments makes.
const (
	// LabelAdvDeployment is the name of the AdvDeployment.
	LabelAdvDeployment = GroupName + "/advdeployment"
	// AnnotationApplied is the hash of what was applied.
	AnnotationApplied = GroupName + "/applied"
	// AnnotationRevision is the hash of the content that the object has; of a part, of all
	// its podSets together.
	AnnotationRevision = GroupName + "/revision"
	// AnnotationVersion is the version of that content, for people.
	AnnotationVersion = GroupName + "/version"
	// AnnotationFrom is on a TApp of which only some instances may have the content of
	// AnnotationRevision yet: the hash of the content that the others have.
	AnnotationFrom = GroupName + "/from"
)

// Words of events and of conditions.
const (
	// Component is who events about AppSets and AdvDeployments come from, and the field
	// manager of what is made of them.
	Component = "sym-controller"
	// ReasonResourceExists is the reason for the name of an object being taken.
	ReasonResourceExists = "ErrResourceExists"
	// ReasonNotYet is the reason for something that a later version will do.
	ReasonNotYet = "NotYet"
	// ReasonInvalid is the reason for a spec that cannot be carried out.
	ReasonInvalid = "Invalid"
	// ReasonRefused is the reason for an object that the API server does not take.
	ReasonRefused = "Refused"
	// ReasonProgressing is the reason while something is on its way.
	ReasonProgressing = "Progressing"
	// ReasonSynced is the reason when all is as the spec says.
	ReasonSynced = "Synced"
	// ReasonDeleting is the reason while the object and what was made of it are deleted.
	ReasonDeleting = "Deleting"
	// ReasonNodeLost is the reason for instances that wait because their node is lost, as a
	// TApp tells it. It is no fault of the content, and halts no rollout by itself.
	ReasonNodeLost = "NodeLost"
	// ReasonHalted is the reason for a rollout that failed and goes no further,
	// ReasonRolledBack for one that failed and returned, and ReasonHeld for a podSet that
	// waits for its turn.
	ReasonHalted     = "RolloutHalted"
	ReasonRolledBack = "RolledBack"
	ReasonHeld       = "Held"
)

// LegacyFinalizer is that of the original systems. It is taken off once ours is on.
const LegacyFinalizer = "sym-admin-finalizers"

// Marks of a part: the AdvDeployment that the controller of an AppSet writes into a
// cluster.
const (
	// LabelAppSetUID is the UID of the part's AppSet.
	LabelAppSetUID = GroupName + "/appset-uid"
	// LabelFleetID names the hub whose part it is. API servers filter by it.
	LabelFleetID = GroupName + "/fleet-id"
	// AnnotationAppSet is the namespace and name of the part's AppSet.
	AnnotationAppSet = GroupName + "/appset"
	// AnnotationAppSetGeneration is the generation of the AppSet that the part was written
	// for last.
	AnnotationAppSetGeneration = GroupName + "/appset-generation"
)

// Annotations of an AppSet.
const (
	// AnnotationClusters are the clusters that a part was written into, with the UIDs of
	// their namespaces kube-system. Backups without status keep it.
	AnnotationClusters = GroupName + "/clusters"
	// AnnotationAbandonClusters names clusters whose parts are given up, with commas between
	// them: a deletion does not wait for them.
	AnnotationAbandonClusters = GroupName + "/abandon-clusters"
	// AnnotationLeave with the value LeaveNow has clusters that left the topology emptied at
	// once, and not only when the others are available.
	AnnotationLeave = GroupName + "/leave"
	LeaveNow        = "Now"
	// AnnotationAcceptGeneration is the generation up to which parts may be newer than their
	// AppSet: the AppSet of a hub that was restored goes on as it is.
	AnnotationAcceptGeneration = GroupName + "/accept-generation"
)

// Backups of AppSets, and of AdvDeployments that no AppSet made.
const (
	// AnnotationRestoring is on an object that is being restored: nothing is done for it
	// until the annotation is gone, since its history is not complete.
	AnnotationRestoring = GroupName + "/restoring"
	// AnnotationRestoredFrom is on an object that was restored: the UID that it had, a slash,
	// and its generation when it was backed up. Parts in clusters that were written for a
	// later generation are newer than the backup.
	AnnotationRestoredFrom = GroupName + "/restored-from"
)

// Rollouts of an AppSet.
const (
	// AnnotationRetry is the id of a rollout that halted, and has it tried again, and releases
	// whose hooks failed. What follows a slash asks again: <id>/2. It is passed on to the parts.
	// An AdvDeployment of charts that no AppSet made has no id: any text asks, once.
	AnnotationRetry = GroupName + "/retry"
	// LabelRevision is on the ControllerRevisions of the hub, which have the label
	// LabelAppSetUID, too: the hash of the content that one has, or RevisionRecord.
	LabelRevision = GroupName + "/revision"
	// RevisionRecord marks the ControllerRevision that has the record of the rollout, in the
	// annotation AnnotationRecord: as JSON, or where that is longer than 128 KiB, after "gzip:"
	// compressed and in base64. Its name is that of the AppSet and RecordSuffix.
	RevisionRecord   = "record"
	RecordSuffix     = "-rollout"
	AnnotationRecord = GroupName + "/rollout"
	// LabelAdvDeploymentUID takes the place of LabelAppSetUID where an AdvDeployment that no
	// AppSet made is rolled out, and LoneSuffix follows its name there.
	LabelAdvDeploymentUID = GroupName + "/advdeployment-uid"
	LoneSuffix            = "-ad"
	// AnnotationGrant is on the children of such an AdvDeployment: how many of their instances
	// may be out of service, and after a slash the ceiling.
	AnnotationGrant = GroupName + "/grant"
)

// Registrations of clusters: Secrets, or ConfigMaps as in the original systems, in the
// namespace of the clusters on the hub. The name is that of the cluster.
const (
	// LabelOwner has the value OwnerLegacy on the Secrets and ConfigMaps that register
	// clusters, as in the original systems. Their kubeconfig is in KeyKubeconfig.
	LabelOwner    = "ClusterOwner"
	OwnerLegacy   = "sym-admin"
	KeyKubeconfig = "kubeconfig.yaml"
	// LabelRuntime is "true" on Secrets that follow the convention of multicluster-runtime.
	// Their kubeconfig is in KeyKubeconfigRuntime.
	LabelRuntime         = "sigs.k8s.io/multicluster-runtime-kubeconfig"
	KeyKubeconfigRuntime = "kubeconfig"
	// KeyStatus is absent, Ready or true, or else Maintaining or false.
	KeyStatus = "status"
	// AnnotationClusterStatus is KeyStatus on a ClusterProfile.
	AnnotationClusterStatus = GroupName + "/status"
	// AnnotationClusterUID keeps the identity of a cluster: the UID of its namespace
	// kube-system.
	AnnotationClusterUID = GroupName + "/cluster-uid"
)

// MemberLease is the name of the Lease in the namespace kube-system of a member. The hub
// that has it writes to the member.
const MemberLease = "tapp-fleet"

// LabelReplacesUID on the registration of a cluster is the UID of the cluster that it took
// the place of: AppSets that have a part there start anew in it.
const LabelReplacesUID = GroupName + "/replaces-uid"

// ChartSecretPrefix begins the names of the immutable Secrets that hold charts' archives,
// below KeyChart. The SHA-256 of the archive follows. They are in one namespace of the hub
// and of each member, DefaultChartNamespace unless an operator chose another one.
const (
	ChartSecretPrefix     = "tapp-chart-"
	KeyChart              = "chart.tgz"
	DefaultChartNamespace = "tapp-charts"
	// LabelChart is on these Secrets.
	LabelChart = GroupName + "/chart"
	// AnnotationChartSources are the places that the archive came from, as a JSON list of
	// URL and version.
	AnnotationChartSources = GroupName + "/chart-sources"
	// AnnotationChartKept is when a hub last made sure that a member has the archive, by the
	// hub's clock (RFC 3339). Unused archives go an hour after that.
	AnnotationChartKept = GroupName + "/chart-kept"
)

// LabelTombstone is on the ConfigMaps of the hub that tell of parts which were given up.
const LabelTombstone = GroupName + "/tombstone"

// Finalizer keeps an AppSet or AdvDeployment until all that was made of it is gone.
const Finalizer = GroupName + "/fleet"

// Values of PodSpec.deployType, in the spelling of the original documents. Any case is
// understood, and tapp is another name of InPlaceSet.
const (
	DeployHelm        = "helm"
	DeployInPlaceSet  = "InPlaceSet"
	DeployStatefulSet = "StatefulSet"
	DeployDeployment  = "deployment"
)

// CanonicalDeployType is the spelling of a deploy type as the constants have it. It is
// false for a type that there is not.
func CanonicalDeployType(deployType string) (string, bool) {
	if strings.EqualFold(deployType, "tapp") {
		return DeployInPlaceSet, true
	}
	for _, known := range []string{DeployHelm, DeployInPlaceSet, DeployStatefulSet, DeployDeployment} {
		if strings.EqualFold(deployType, known) {
			return known, true
		}
	}
	return "", false
}

// DeployTypeOf is the canonical deploy type of a podSpec. Absent means helm where a
// chart is given, otherwise deployment. It is false for a type that there is not.
func DeployTypeOf(p *PodSpec) (string, bool) {
	switch {
	case p.DeployType != "":
		return CanonicalDeployType(p.DeployType)
	case p.Chart != nil:
		return DeployHelm, true
	}
	return DeployDeployment, true
}

// FoldClusterName is the form in which names of clusters are compared: lower case,
// with "-" for "_".
func FoldClusterName(name string) string {
	return strings.ReplaceAll(strings.ToLower(name), "_", "-")
}
