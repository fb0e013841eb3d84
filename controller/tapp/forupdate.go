package tapp

import (
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	plan "tkestack.io/tapp/plan/tapp"
)

// idSet has the ids of the instances whose pods this process deleted for their update or
// restart, and that have no next pod yet.
type idSet struct {
	mu  sync.Mutex // actions are carried out beside each other
	ids map[string]struct{}
}

// deleted notes that the pod of an instance was deleted for its update.
func (s *idSet) deleted(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ids == nil {
		s.ids = map[string]struct{}{}
	}
	s.ids[id] = struct{}{}
}

// created notes that an instance has its next pod.
func (s *idSet) created(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ids, id)
}

// followed drops the instances that have a next pod.
func (s *idSet) followed(pods []*corev1.Pod) {
	if len(s.ids) == 0 {
		return
	}
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil {
			delete(s.ids, pod.Name[strings.LastIndexByte(pod.Name, '-')+1:])
		}
	}
}

// keep only instances that are to run.
func (s *idSet) keep(all []plan.Instance) {
	if len(s.ids) == 0 {
		return
	}
	desired := make(map[string]struct{}, len(s.ids))
	for i := range all {
		if _, has := s.ids[all[i].ID]; has && all[i].Desired {
			desired[all[i].ID] = struct{}{}
		}
	}
	s.ids = desired
}
