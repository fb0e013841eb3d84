package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Confirmation lets the rollout of an AppSet pass one gate, once. Its name is that of
// the AppSet and the gate's token, so that a gate is confirmed at most once.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=confirmations,singular=confirmation,shortName=conf
// +kubebuilder:printcolumn:name="APPSET",type=string,JSONPath=`.spec.appSet`
// +kubebuilder:printcolumn:name="ROLLOUT",type=string,JSONPath=`.spec.rollout`
// +kubebuilder:printcolumn:name="STAGE",type=string,JSONPath=`.spec.stage`
// +kubebuilder:printcolumn:name="BY",type=string,JSONPath=`.spec.confirmedBy`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name == self.spec.appSet + '-' + self.spec.token",message="the name must be that of the AppSet, a hyphen and the token, so that a gate is confirmed once"
type Confirmation struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which gate is confirmed.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a confirmation is immutable"
	Spec ConfirmationSpec `json:"spec"`
}

// ConfirmationList is a list of Confirmations.
//
// +kubebuilder:object:root=true
type ConfirmationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Confirmation `json:"items"`
}

// ConfirmationSpec says which gate is confirmed.
type ConfirmationSpec struct {
	// appSet is the name of the AppSet, or of the AdvDeployment that no AppSet made. It is
	// in the same namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=59
	AppSet string `json:"appSet"`

	// rollout is the id of the rollout, as status.rollout.id has it.
	// +required
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{10}-[0-9]+$`
	Rollout string `json:"rollout"`

	// stage after which the gate stands.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	Stage string `json:"stage"`

	// token of the gate, as status.rollout.stages[].token has it. It is known once the
	// stage is done.
	// +required
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[0-9a-f]+$`
	Token string `json:"token"`

	// confirmedBy is the user who created the confirmation. Admission writes it.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	ConfirmedBy string `json:"confirmedBy,omitempty"`

	// comment for those who read it later.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Comment string `json:"comment,omitempty"`
}
