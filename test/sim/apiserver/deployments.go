package apiserver

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
)

// Deployments is the resource that RollOut looks after, where a cluster has it.
const Deployments = "deployments"

// RollOut is what the controller of Deployments does next: it has all instances of one be
// available at once. nil: nothing.
func (s *Server) RollOut() func() {
	for _, d := range All[*appsv1.Deployment](s.Store, Deployments) {
		n := ptr.Deref(d.Spec.Replicas, 1)
		status := appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n}
		if !equality.Semantic.DeepEqual(d.Status, status) {
			return func() {
				_, _ = s.Update(Deployments, Key(d), "status", Actor{By: "deployments", At: s.Now()}, func(o Object) error {
					o.(*appsv1.Deployment).Status = status
					return nil
				})
			}
		}
	}
	return nil
}
