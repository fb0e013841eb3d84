package tapp

import (
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	plan "tkestack.io/tapp/plan/tapp"
)

// forUpdate has the instances whose pods this process deleted for their update or restart, and
// that have no next pod yet.
type forUpdate struct {
	mu sync.Mutex // actions are carried out beside each other
	// pods that were deleted, by the ids of their instances.
	pods map[string]types.UID
}

// deleted notes that the pod of an instance was deleted for its update.
func (s *forUpdate) deleted(id string, pod types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pods == nil {
		s.pods = map[string]types.UID{}
	}
	s.pods[id] = pod
}

// created notes that an instance has its next pod.
func (s *forUpdate) created(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pods, id)
}

// followed drops the instances that have a next pod. A view that shows the deleted pod as it
// was is behind, and shows no next one.
func (s *forUpdate) followed(pods []*corev1.Pod) {
	if len(s.pods) == 0 {
		return
	}
	for _, pod := range pods {
		id := pod.Name[strings.LastIndexByte(pod.Name, '-')+1:]
		if pod.DeletionTimestamp == nil && pod.UID != s.pods[id] {
			delete(s.pods, id)
		}
	}
}

// ids of the instances.
func (s *forUpdate) ids() map[string]struct{} {
	if len(s.pods) == 0 {
		return nil
	}
	out := make(map[string]struct{}, len(s.pods))
	for id := range s.pods {
		out[id] = struct{}{}
	}
	return out
}

// keep only instances that are to run.
func (s *forUpdate) keep(all []plan.Instance) {
	if len(s.pods) == 0 {
		return
	}
	desired := make(map[string]types.UID, len(s.pods))
	for i := range all {
		if uid, has := s.pods[all[i].ID]; has && all[i].Desired {
			desired[all[i].ID] = uid
		}
	}
	s.pods = desired
}
