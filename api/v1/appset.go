package v1

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/foresight"
	"tkestack.io/tapp/plan/view"
)

// AppSet is one line of the list of AppSets.
type AppSet struct {
	Summary
	// Phase is the column STATUS of kubectl, such as Running or WaitingForConfirm.
	Phase string `json:"phase,omitempty"`
	// Version are the versions that run, joined by /.
	Version string `json:"version,omitempty"`
	// Desired instances in all clusters, those known to be available, those that are not,
	// and how many of these are in clusters that are silent.
	Desired     int32 `json:"desired"`
	Available   int32 `json:"available"`
	Unavailable int32 `json:"unavailable"`
	Unknown     int32 `json:"unknown"`
	Paused      bool  `json:"paused,omitempty"`
	// Clusters are the names of those that it is in.
	Clusters []string `json:"clusters"`
	// Rollout is how far the current change has come.
	Rollout *v1beta1.RolloutStatus `json:"rollout,omitempty"`
}

// AppSetDetail is one AppSet.
type AppSetDetail struct {
	AppSet
	// ClusterStatuses are what is known of its part in each cluster, and up to when.
	ClusterStatuses []v1beta1.ClusterStatus `json:"clusterStatuses,omitempty"`
	Commands        []Hint                  `json:"commands,omitempty"`
	Object          json.RawMessage         `json:"object"`
	Degraded        string                  `json:"degraded,omitempty"`
	AsOf            *metav1.Time            `json:"asOf,omitempty"`
}

// Cluster is what the statuses of the AppSets that the caller may see tell of a cluster.
type Cluster struct {
	// Name in lower case, with "-" for "_".
	Name string `json:"name"`
	// State is Ready, Suspect, Offline, Maintaining, Unregistered, Mistaken or Unfit.
	State   string `json:"state,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// AsOf is up to when that is known to be true; absent: now.
	AsOf *metav1.Time `json:"asOf,omitempty"`
	// AppSets that are in it, and their instances there.
	AppSets   int   `json:"appSets"`
	Desired   int32 `json:"desired"`
	Available int32 `json:"available"`
}

// AppSetRevision is a content that an AppSet asked for, with what changed since the one before.
type AppSetRevision struct {
	view.Revision
	// Content is its hash, and Versions are those of its podSets, joined by /.
	Content  string             `json:"content"`
	Versions string             `json:"versions"`
	Changes  []view.FieldChange `json:"changes"`
	// Command that goes back to it; empty for the present one.
	Command string `json:"command,omitempty"`
}

// AppSetPreview is what applying a manifest of an AppSet would do.
type AppSetPreview struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Created: there is no such AppSet yet.
	Created bool `json:"created,omitempty"`
	// Changes of the spec.
	Changes []view.FieldChange `json:"changes,omitempty"`
	// State in which the rollout would begin; empty: there would be none.
	State string `json:"state,omitempty"`
	// AtOnce is what no stage holds back, Stages are those that have work, in their order,
	// and Last is what goes as soon as the others are available.
	AtOnce []foresight.Change `json:"atOnce,omitempty"`
	Stages []foresight.Stage  `json:"stages,omitempty"`
	Last   []foresight.Change `json:"last,omitempty"`
	// Notes are what else there is to know.
	Notes []string `json:"notes,omitempty"`
	// Problems are why the spec cannot be carried out, with their field paths.
	Problems []string `json:"problems,omitempty"`
	// Paused: updates would wait.
	Paused bool `json:"paused,omitempty"`
	// Sentences are all of it in words, in order.
	Sentences []string `json:"sentences"`
}

// FleetInstance is a pod of an AppSet in one of its clusters.
type FleetInstance struct {
	Pod
	// PodSet that it is of, and its group, zone and version, as its labels have them.
	PodSet  string `json:"podSet"`
	Group   string `json:"group,omitempty"`
	Zone    string `json:"zone,omitempty"`
	Version string `json:"version,omitempty"`
	// ID of the instance; empty: pods of its kind have none.
	ID string `json:"id,omitempty"`
}

// FleetInstanceList is a page of the pods of an AppSet, sorted by cluster, podSet and id.
type FleetInstanceList struct {
	List[FleetInstance]
	// Clusters that were asked. What those have that did not answer is missing.
	Clusters []ClusterAnswer `json:"clusters"`
}

// ClusterAnswer is what came of asking a cluster.
type ClusterAnswer struct {
	Cluster string `json:"cluster"`
	// Instances that it has, after the filters.
	Instances int `json:"instances"`
	// Truncated: it has more than 5000 pods of the AppSet.
	Truncated bool `json:"truncated,omitempty"`
	// Error says why it did not answer; empty: it did.
	Error string `json:"error,omitempty"`
}

// Part of an AppSet in a cluster: its AdvDeployment, as it was seen last.
type Part struct {
	Cluster string `json:"cluster"`
	// State, Reason and Message are those of the cluster, and AsOf is up to when the rest is
	// true; absent: now.
	State     string       `json:"state"`
	Reason    string       `json:"reason,omitempty"`
	Message   string       `json:"message,omitempty"`
	AsOf      *metav1.Time `json:"asOf,omitempty"`
	Namespace string       `json:"namespace"`
	Name      string       `json:"name"`
	UID       string       `json:"uid"`
	// AppSet on the hub that it is of: namespace/name.
	AppSet string `json:"appSet"`
	// Generation of the spec, and the one that the cluster's controller has seen.
	Generation         int64 `json:"generation"`
	ObservedGeneration int64 `json:"observedGeneration"`
	// Phase, Version, Desired and Available are the columns of kubectl.
	Phase     string `json:"phase,omitempty"`
	Version   string `json:"version,omitempty"`
	Desired   int32  `json:"desired"`
	Available int32  `json:"available"`
}

// PartDetail is a Part with all that is stored of it.
type PartDetail struct {
	Part
	// PodSets one by one.
	PodSets []v1beta1.PodSetStatus `json:"podSets,omitempty"`
	// Object as it is stored, without managedFields.
	Object json.RawMessage `json:"object"`
}

// AliasResource are the pods and podSets of an AppSet.
type AliasResource struct {
	Pods    FleetInstanceList      `json:"pods"`
	PodSets []v1beta1.PodSetStatus `json:"podSets"`
}

// Endpoint is the address of a ready pod.
type Endpoint struct {
	Cluster   string `json:"cluster"`
	Namespace string `json:"namespace"`
	PodSet    string `json:"podSet"`
	Pod       string `json:"pod"`
	IP        string `json:"ip"`
	Node      string `json:"node,omitempty"`
}
