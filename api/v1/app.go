package v1

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// App is one line of the list of Apps.
type App struct {
	Summary
	Image      string `json:"image,omitempty"`
	Deployment string `json:"deployment,omitempty"`
	Service    string `json:"service,omitempty"`
	// Replicas asked for, and ready pods.
	Replicas int32 `json:"replicas"`
	Ready    int32 `json:"ready"`
}

// AppDetail is one App.
type AppDetail struct {
	App
	Commands []Hint          `json:"commands,omitempty"`
	Object   json.RawMessage `json:"object"`
	Degraded string          `json:"degraded,omitempty"`
	AsOf     *metav1.Time    `json:"asOf,omitempty"`
}
