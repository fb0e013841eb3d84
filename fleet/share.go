package fleet

import (
	"reflect"
	"sync"
	"weak"

	"k8s.io/apimachinery/pkg/types"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// sharer has the parts of one AppSet hold what is equal in them once, whatever the number of clusters: most of a part
// is its template, and the contents that its cluster has to know. Parts in caches are never written to.
type sharer struct {
	mu sync.Mutex
	// latest parts of each name, the last one first. They are not kept alive from here.
	latest map[types.NamespacedName][]weak.Pointer[v1beta1.AdvDeployment]
	// sweepAt is the number of names at which those are dropped of which no part is left.
	sweepAt int
}

const (
	// contents of one AppSet that are about at a time: during a rollout there are two, and one more after an undo.
	contents   = 3
	sweepFirst = 1024
)

// share replaces pieces of a part, which nobody else has yet, by equal ones of a part of that name.
func (s *sharer) share(o *v1beta1.AdvDeployment) {
	key := keyOf(o)
	s.mu.Lock()
	defer s.mu.Unlock()
	recent := s.latest[key]
	kept := make([]weak.Pointer[v1beta1.AdvDeployment], 1, contents)
	kept[0] = weak.Make(o)
	whole := false
	for _, pointer := range recent {
		other := pointer.Value()
		if other == nil || other == o {
			continue
		}
		if !whole { // else there is nothing left to be found
			if whole = shareParts(o, other); whole {
				continue // o takes its place
			}
		}
		if len(kept) < contents {
			kept = append(kept, pointer)
		}
	}
	if s.latest == nil {
		s.latest, s.sweepAt = map[types.NamespacedName][]weak.Pointer[v1beta1.AdvDeployment]{}, sweepFirst
	}
	s.latest[key] = kept
	if len(s.latest) >= s.sweepAt {
		s.sweep()
	}
}

// sweep drops names of which no part is left. The caller has the lock.
func (s *sharer) sweep() {
	for key, all := range s.latest {
		alive := false
		for _, pointer := range all {
			alive = alive || pointer.Value() != nil
		}
		if !alive {
			delete(s.latest, key)
		}
	}
	s.sweepAt = max(sweepFirst, 2*len(s.latest))
}

// shareParts has mine use what is equal in theirs, and says whether the whole spec is.
func shareParts(mine, theirs *v1beta1.AdvDeployment) (whole bool) {
	once(&mine.TypeMeta, &theirs.TypeMeta)
	mine.Namespace, mine.Name = theirs.Namespace, theirs.Name
	once(&mine.Labels, &theirs.Labels)
	once(&mine.Annotations, &theirs.Annotations)
	once(&mine.Finalizers, &theirs.Finalizers)
	once(&mine.Status.AggrStatus.PodSets, &theirs.Status.AggrStatus.PodSets)
	once(&mine.Status.Conditions, &theirs.Status.Conditions)
	if once(&mine.Spec, &theirs.Spec) {
		return true
	}
	once(&mine.Spec.Labels, &theirs.Spec.Labels)
	once(&mine.Spec.PodSpec, &theirs.Spec.PodSpec)
	once(&mine.Spec.Topology, &theirs.Spec.Topology)
	for i := range mine.Spec.Revisions {
		for k := range theirs.Spec.Revisions {
			if once(&mine.Spec.Revisions[i], &theirs.Spec.Revisions[k]) {
				break
			}
		}
	}
	return false
}

// once has mine be theirs if they are equal to the last detail.
func once[T any](mine, theirs *T) bool {
	if !reflect.DeepEqual(mine, theirs) {
		return false
	}
	*mine = *theirs
	return true
}
