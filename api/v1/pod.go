package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Event about an object or one of its pods.
type Event struct {
	// Type is Normal or Warning.
	Type    string `json:"type"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Kind and Name of what it is about.
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Count is how often it was seen, from First to Last.
	Count  int32        `json:"count"`
	First  *metav1.Time `json:"first,omitempty"`
	Last   *metav1.Time `json:"last,omitempty"`
	Source string       `json:"source,omitempty"`
}

// Pod of a TApp, an App or an AdvDeployment.
type Pod struct {
	// Cluster of a fleet; empty: this one.
	Cluster   string      `json:"cluster,omitempty"`
	Namespace string      `json:"namespace"`
	Name      string      `json:"name"`
	UID       string      `json:"uid"`
	Created   metav1.Time `json:"created"`
	// Deleting: it is being deleted.
	Deleting bool   `json:"deleting,omitempty"`
	Phase    string `json:"phase"`
	Ready    bool   `json:"ready"`
	Node     string `json:"node,omitempty"`
	IP       string `json:"ip,omitempty"`
	// Owner is whose pod it is, as <kind>/<name>.
	Owner      string             `json:"owner"`
	Labels     map[string]string  `json:"labels,omitempty"`
	Containers []Container        `json:"containers"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Container of a pod.
type Container struct {
	Name  string `json:"name"`
	Image string `json:"image"`
	// Init is a container that runs before the others, or beside them.
	Init  bool `json:"init,omitempty"`
	Ready bool `json:"ready"`
	// State in words, such as running, or waiting: ImagePullBackOff, ...
	State    string `json:"state"`
	Restarts int32  `json:"restarts"`
}
