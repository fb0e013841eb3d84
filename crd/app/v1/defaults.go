package v1

import corev1 "k8s.io/api/core/v1"

// Defaults of fields whose absence has a meaning.
const (
	DefaultReplicas int32 = 1
	DefaultPort     int32 = 8080
	DefaultType           = corev1.ServiceTypeClusterIP
)

// Default fills the fields of a spec whose absence has a meaning. It is
// idempotent, and needs nothing but the object. The planner applies it to a copy:
// the controller never writes spec.
func Default(a *App) {
	d, s := &a.Spec.DeploymentTemplate, &a.Spec.ServiceTemplate
	if d.Replicas == nil {
		replicas := DefaultReplicas
		d.Replicas = &replicas
	}
	for i := range d.Ports {
		if d.Ports[i].Protocol == "" {
			d.Ports[i].Protocol = corev1.ProtocolTCP
		}
	}
	if s.Port == 0 {
		s.Port = DefaultPort
	}
	if s.Type == "" {
		s.Type = DefaultType
	}
}
