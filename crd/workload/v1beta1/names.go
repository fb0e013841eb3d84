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
