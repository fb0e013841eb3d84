package fleet

import (
	"reflect"
	"sync"
	"weak"

	"k8s.io/apimachinery/pkg/types"

	"tkestack.io/tapp/controller/cache"
	"tkestack.io/tapp/crd/workload/v1beta1"
)

// packed is a part in little memory: another one of its AppSet, and what it has otherwise. Parts of one AppSet are much alike in
// all clusters, and there are as many of them as AppSets times clusters.
type packed struct {
	model *v1beta1.AdvDeployment
	delta string
}

// unpack the part. It shares most of what it holds with others, and must not be written to.
func (p *packed) unpack() *v1beta1.AdvDeployment {
	if p == nil {
		return nil
	}
	if p.delta == "" {
		return p.model
	}
	o := *p.model
	r := reader{p.delta}
	r.apply(reflect.ValueOf(&o).Elem())
	return &o
}

// packer packs the parts of all clusters.
type packer struct {
	mu sync.Mutex
	// models of the parts of each name, the one that served last first. They are not kept alive from here.
	models map[types.NamespacedName][]weak.Pointer[v1beta1.AdvDeployment]
	// sweepAt is the number of names at which those are dropped of which no part is left.
	sweepAt int
}

const (
	// maxModels of one name. During a rollout there are two contents of an AppSet, and one more after an undo; and parts of the
	// same content may have statuses with other fields.
	maxModels  = 6
	sweepFirst = 1024
)

// pack a part, which nobody else has yet, and may not be written to any more.
func (s *packer) pack(o *v1beta1.AdvDeployment) *packed {
	_, _ = cache.Trim(o) // it fails never
	key := keyOf(o)
	s.mu.Lock()
	defer s.mu.Unlock()
	var alive []weak.Pointer[v1beta1.AdvDeployment]
	var found *packed
	for _, pointer := range s.models[key] {
		model := pointer.Value()
		if model == nil {
			continue
		}
		if found == nil {
			if found = packBy(model, o); found != nil {
				alive = append([]weak.Pointer[v1beta1.AdvDeployment]{pointer}, alive...)
				continue
			}
		}
		alive = append(alive, pointer)
	}
	if found == nil {
		found = &packed{model: o}
		alive = append([]weak.Pointer[v1beta1.AdvDeployment]{weak.Make(o)}, alive[:min(len(alive), maxModels-1)]...)
	}
	if s.models == nil {
		s.models, s.sweepAt = map[types.NamespacedName][]weak.Pointer[v1beta1.AdvDeployment]{}, sweepFirst
	}
	s.models[key] = alive
	if len(s.models) >= s.sweepAt {
		s.sweep()
	}
	return found
}

// packBy a model; nil: the part is too different. Then it may still share pieces with it.
func packBy(model, o *v1beta1.AdvDeployment) *packed {
	if !shareSpec(&o.Spec, &model.Spec) {
		return nil
	}
	var d delta
	if d.add(reflect.ValueOf(model).Elem(), reflect.ValueOf(o).Elem()) == unlike {
		return nil
	}
	return &packed{model, string(d)}
}

// sweep drops names of which no part is left. The caller has the lock.
func (s *packer) sweep() {
	for key, all := range s.models {
		alive := false
		for _, pointer := range all {
			alive = alive || pointer.Value() != nil
		}
		if !alive {
			delete(s.models, key)
		}
	}
	s.sweepAt = max(sweepFirst, 2*len(s.models))
}

// shareSpec has mine use the large pieces of theirs that are equal, and says whether all of them are.
func shareSpec(mine, theirs *v1beta1.AdvDeploymentSpec) (alike bool) {
	alike = once(&mine.PodSpec, &theirs.PodSpec)
	if once(&mine.Revisions, &theirs.Revisions) {
		return alike
	}
	for i := range mine.Revisions {
		for k := range theirs.Revisions {
			if once(&mine.Revisions[i], &theirs.Revisions[k]) {
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
