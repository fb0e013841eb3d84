package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The ConfigMap in the controller's namespace that tells of the operator's policy.
const (
	PolicyConfigMap = "tapp-policy"
	// PolicyKey is the key of its data that holds a PublishedPolicy in JSON.
	PolicyKey = "policy.json"
)

// SchemasConfigMap is the ConfigMap in the controller's namespace that has, by resource and group,
// what leaders knew of the served schemas. Its data has a message for each kind that is held:
// nothing is done for it, because its served schema lost fields that objects use.
const SchemasConfigMap = "tapp-schemas"

// PublishedPolicy is what the operator of the controller decided for all TApps, as the
// controller goes by it: `kubectl tapp` plans with it. The leader writes it into the
// ConfigMap when it begins to lead. Fields may be added to it.
//
// +kubebuilder:object:generate=false
type PublishedPolicy struct {
	// DeletePodAfterAppFinish is --delete-pod-after-app-finish.
	DeletePodAfterAppFinish bool `json:"deletePodAfterAppFinish"`
	// NodeLostAfter is --node-lost-after.
	NodeLostAfter metav1.Duration `json:"nodeLostAfter"`
	// Resize is true where the cluster has the subresource resize of pods.
	Resize bool `json:"resize"`
	// TrackingLabel is --argocd-instance-label.
	TrackingLabel string `json:"trackingLabel,omitempty"`
}
