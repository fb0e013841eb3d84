package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Defaults of fields whose absence has a meaning.
const (
	DefaultReplicas                int32 = 1
	DefaultRevisionHistoryLimit    int32 = 10
	DefaultProgressDeadlineSeconds int32 = 600
)

// Default fills the fields of a spec whose absence has a meaning. It is
// idempotent, and needs nothing but the object. The admission webhook applies it
// to what is stored, the planner to a copy: both see the same TApp, so that the
// controller never has to write spec.
//
// An absent selector is left absent when the template has no labels to take it
// from; such a TApp is invalid, and the planner says so.
func Default(t *TApp) {
	s := &t.Spec
	setDefault(&s.Replicas, DefaultReplicas)
	setDefault(&s.RevisionHistoryLimit, DefaultRevisionHistoryLimit)
	setDefault(&s.ProgressDeadlineSeconds, DefaultProgressDeadlineSeconds)

	if s.DefaultTemplateName == "" {
		s.DefaultTemplateName = s.LegacyDefaultTemplateName
	}
	s.LegacyDefaultTemplateName = ""
	if s.DefaultTemplateName == "" {
		s.DefaultTemplateName = DefaultTemplateName
	}
	if s.UpdateStrategy.Template == "" {
		s.UpdateStrategy.Template = s.DefaultTemplateName
	}
	setDefault(&s.UpdateStrategy.MaxUnavailable, intstr.FromInt32(1))
	setDefault(&s.UpdateStrategy.ForceUpdate.MaxUnavailable, intstr.FromString("100%"))
	if s.UpdateStrategy.InPlaceUpdate.Policy == "" {
		s.UpdateStrategy.InPlaceUpdate.Policy = InPlaceIfPossible
	}
	setDefault(&s.UpdateStrategy.InPlaceUpdate.Drain, true)

	if s.PersistentVolumeClaimRetentionPolicy == nil {
		s.PersistentVolumeClaimRetentionPolicy = &PersistentVolumeClaimRetentionPolicy{}
	}
	if p := s.PersistentVolumeClaimRetentionPolicy; p.WhenDeleted == "" {
		p.WhenDeleted = RetainPersistentVolumeClaim
	}
	if p := s.PersistentVolumeClaimRetentionPolicy; p.WhenScaled == "" {
		p.WhenScaled = RetainPersistentVolumeClaim
	}
	defaultSelector(t)
}

// defaultSelector takes an absent selector from the status, where the one in
// effect is kept: once pods exist, an edit of the template's labels must not
// change which pods are ours. Before the first status it is the template's
// labels without those that name a version.
func defaultSelector(t *TApp) {
	if t.Spec.Selector == nil {
		if set, err := metav1.ParseToLabelSelector(t.Status.ScaleLabelSelector); err == nil && t.Status.ScaleLabelSelector != "" {
			t.Spec.Selector = set
		} else if labels := WithoutVersionLabels(WithoutHashLabels(t.Spec.Template.Labels)); len(labels) > 0 {
			t.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		}
		return
	}
	// tkestack/tapp took the selector from labels that it had stamped already. The
	// hashes change with every update, so that they can select nothing for long.
	if len(t.Spec.Selector.MatchLabels) > 0 {
		t.Spec.Selector.MatchLabels = WithoutHashLabels(t.Spec.Selector.MatchLabels)
	}
}

func setDefault[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}
