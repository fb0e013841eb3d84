package fleet

import (
	"reflect"
	"sync"
	"weak"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// kin are what parts of one cluster have in common. The sharer's lock guards it.
type kin struct {
	meta map[string]string // of a podSet there: it names the cluster
}

// share replaces pieces of a part, which nobody else has yet, by equal ones of a part of that name, or of its cluster. It
// is called once for each part: what it leaves in it may be another part's, too, a moment later.
func (s *sharer) share(o *v1beta1.AdvDeployment, near *kin) {
	key := keyOf(o)
	s.mu.Lock()
	defer s.mu.Unlock()
	recent := s.latest[key]
	kept := make([]weak.Pointer[v1beta1.AdvDeployment], 1, contents)
	kept[0] = weak.Make(o)
	alike := false
	for _, pointer := range recent {
		other := pointer.Value()
		if other == nil {
			continue
		}
		if !alike { // else there is nothing left to be found
			if alike = shareSpec(&o.Spec, &other.Spec); alike {
				shareDetails(o, other, near)
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

// shareSpec has mine use the large pieces of theirs that are equal, and says whether all of them are.
func shareSpec(mine, theirs *v1beta1.AdvDeploymentSpec) (alike bool) {
	alike = once(&mine.PodSpec, &theirs.PodSpec)
	if once(&mine.Revisions, &theirs.Revisions) {
		return alike
	}
	for i := range mine.Revisions {
		found := false
		for k := range theirs.Revisions {
			if found = once(&mine.Revisions[i], &theirs.Revisions[k]); found {
				break
			}
		}
		alike = alike && found
	}
	return alike
}

// shareDetails has mine use the small pieces of a part that is much like it. There are many of them.
func shareDetails(mine, theirs *v1beta1.AdvDeployment, near *kin) {
	once(&mine.TypeMeta, &theirs.TypeMeta)
	mine.Namespace, mine.Name = theirs.Namespace, theirs.Name
	texts(&mine.Labels, &theirs.Labels)
	texts(&mine.Annotations, &theirs.Annotations)
	once(&mine.Finalizers, &theirs.Finalizers)
	texts(&mine.Spec.Labels, &theirs.Spec.Labels)
	elements(&mine.Spec.Topology.PodSets, &theirs.Spec.Topology.PodSets, func(mine, theirs *v1beta1.PlacedPodSet) {
		once(&mine.Name, &theirs.Name)
		once(&mine.Version, &theirs.Version)
		once(&mine.Image, &theirs.Image)
		once(&mine.Replicas, &theirs.Replicas)
		once(&mine.Revision, &theirs.Revision)
		once(&mine.From, &theirs.From)
		once(&mine.MaxUnavailable, &theirs.MaxUnavailable)
		once(&mine.Ceiling, &theirs.Ceiling)
		if !once(&mine.Meta, &theirs.Meta) && !once(&mine.Meta, &near.meta) {
			near.meta = mine.Meta
		}
	})
	once(&mine.Status.AggrStatus.Status, &theirs.Status.AggrStatus.Status)
	once(&mine.Status.AggrStatus.Version, &theirs.Status.AggrStatus.Version)
	elements(&mine.Status.AggrStatus.PodSets, &theirs.Status.AggrStatus.PodSets, func(mine, theirs *v1beta1.PodSetStatus) {
		once(&mine.Name, &theirs.Name)
		once(&mine.Version, &theirs.Version)
		once(&mine.Ready, &theirs.Ready)
		once(&mine.Update, &theirs.Update)
		once(&mine.Current, &theirs.Current)
		once(&mine.Budget, &theirs.Budget)
	})
	elements(&mine.Status.Conditions, &theirs.Status.Conditions, func(mine, theirs *metav1.Condition) {
		once(&mine.Type, &theirs.Type)
		once(&mine.Status, &theirs.Status)
		once(&mine.Reason, &theirs.Reason)
		once(&mine.Message, &theirs.Message)
	})
}

// once has mine be theirs if they are equal to the last detail.
func once[T any](mine, theirs *T) bool {
	if !reflect.DeepEqual(mine, theirs) {
		return false
	}
	*mine = *theirs
	return true
}

// elements are once as a list, or else one by one.
func elements[T any](mine, theirs *[]T, each func(mine, theirs *T)) {
	if once(mine, theirs) {
		return
	}
	for i := range min(len(*mine), len(*theirs)) {
		each(&(*mine)[i], &(*theirs)[i])
	}
}

// texts are once as a map, or else their keys and equal values are.
func texts(mine, theirs *map[string]string) {
	if once(mine, theirs) {
		return
	}
	for key, value := range *theirs {
		if own, both := (*mine)[key]; both {
			if own != value {
				value = own
			}
			delete(*mine, key) // it would stay the key
			(*mine)[key] = value
		}
	}
}
