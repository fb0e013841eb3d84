package template

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Difference between a running pod and the pod that its template would make now.
type Difference struct {
	// None: the pod has all that the template sets.
	None bool
	// ImagesOnly: what differs can change in place: images, labels, annotations.
	ImagesOnly bool
	// Fields that differ, as paths for people, for example
	// spec.containers[app].env[FOO]: the first ten.
	Fields []string
}

const maxFields = 10

// Compare tells whether a pod is what its template would make now. It is for pods
// whose hash is not ours: those of tkestack/tapp, and adopted ones. Every field
// that want sets has to be the same in the pod. The pod may have more: what the
// API server, admission, the scheduler and injectors add cannot be told from
// what the template had once, and a pod that is restarted for nothing is the
// greater harm.
//
// Not compared are what the pod keeps and a new pod would not (scheduling gates,
// which are gone once they opened), what must not touch running pods when it changes
// (our readiness gate), and our own labels and annotations, which a relabel
// writes. Nor is what admission is known to rewrite (see match_admission.go).
func Compare(pod, want *corev1.Pod) Difference {
	c := &comparison{pod: pod, template: want}
	c.metadata("metadata.labels", want.Labels, pod.Labels)
	c.annotations(want.Annotations, pod.Annotations)
	c.structs("spec", reflect.ValueOf(&want.Spec).Elem(), reflect.ValueOf(&pod.Spec).Elem())
	c.rewrittenAnnotations()
	return Difference{None: c.differences == 0, ImagesOnly: c.differences > 0 && !c.beyondInPlace, Fields: c.fields}
}

// comparison collects what differs.
type comparison struct {
	pod, template *corev1.Pod // nil where one element of a list is tried
	rewritten     []string    // annotations of which the pod has another value
	fields        []string
	differences   int
	beyondInPlace bool
}

func (c *comparison) differs(path string) {
	c.beyondInPlace = true
	c.differsInPlace(path)
}

func (c *comparison) differsInPlace(path string) {
	c.differences++
	if len(c.fields) < maxFields {
		c.fields = append(c.fields, path)
	}
}

func (c *comparison) metadata(path string, want, have map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if value, ok := have[key]; (!ok || value != want[key]) && !IsOurKey(key) {
			c.differsInPlace(path + "[" + key + "]")
		}
	}
}

// annotations of which the pod has others are looked at last.
func (c *comparison) annotations(want, have map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		switch value, ok := have[key]; {
		case IsOurKey(key):
		case !ok:
			c.differsInPlace("metadata.annotations[" + key + "]")
		case value != want[key] && !IsNodeKey(key):
			c.rewritten = append(c.rewritten, key)
		}
	}
}

// rewrittenAnnotations count where something else differs, so that the template is not
// the one that the pod was made of. Otherwise somebody wrote to the pod's, for example
// a mesh that merges its own into them.
func (c *comparison) rewrittenAnnotations() {
	if c.differences == 0 {
		return
	}
	for _, key := range c.rewritten {
		c.differsInPlace("metadata.annotations[" + key + "]")
	}
}

func (c *comparison) structs(path string, want, have reflect.Value) {
	for _, f := range jsonFields(want.Type()) {
		w := want.FieldByIndex(f.index)
		if unset(w) {
			continue
		}
		h := have.FieldByIndex(f.index)
		path := path + "." + f.name
		switch rule := ruleOf(want.Type(), f.name); {
		case rule != nil:
			rule(c, path, want, have)
		case w.Kind() == reflect.Slice && f.mergeKey != "":
			c.keyed(path, f.mergeKey, w, h)
		default:
			c.values(path, w, h)
		}
	}
}

func (c *comparison) values(path string, want, have reflect.Value) {
	switch want.Kind() {
	case reflect.Pointer:
		switch {
		case want.IsNil():
		case have.IsNil():
			c.differs(path)
		default:
			c.values(path, want.Elem(), have.Elem())
		}
	case reflect.Struct:
		if same, known := sameScalar(want, have); !known {
			c.structs(path, want, have)
		} else if !same {
			c.differs(path)
		}
	case reflect.Slice:
		c.inOrder(path, want, have)
	case reflect.Map:
		c.maps(path, want, have)
	default:
		if !want.Equal(have) {
			c.differs(path)
		}
	}
}

// sameScalar compares the structs that are one value.
func sameScalar(want, have reflect.Value) (same, known bool) {
	switch w := want.Interface().(type) {
	case resource.Quantity:
		h := have.Interface().(resource.Quantity)
		if w.Cmp(h) == 0 {
			return true, true
		}
		// The API server rounds the resources of a pod up (SetDefaults_ResourceList).
		w, h = w.DeepCopy(), h.DeepCopy()
		w.RoundUp(resource.Milli)
		h.RoundUp(resource.Milli)
		return w.Cmp(h) == 0, true
	case intstr.IntOrString:
		return w == have.Interface().(intstr.IntOrString), true
	}
	return false, false
}

func (c *comparison) maps(path string, want, have reflect.Value) {
	keys := want.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
	for _, key := range keys {
		path := path + "[" + key.String() + "]"
		if h := have.MapIndex(key); h.IsValid() {
			c.values(path, want.MapIndex(key), h)
		} else {
			c.differs(path)
		}
	}
}

// inOrder compares lists in which the position counts.
func (c *comparison) inOrder(path string, want, have reflect.Value) {
	if want.Len() != have.Len() {
		c.differs(path)
		return
	}
	for i := range want.Len() {
		c.values(path+"["+strconv.Itoa(i)+"]", want.Index(i), have.Index(i))
	}
}

// subset compares lists to which the API server or admission adds, and whose
// order means nothing.
func (c *comparison) subset(path string, want, have reflect.Value) {
	for i := range want.Len() {
		if !containsEqual(have, want.Index(i)) {
			c.differs(path + "[" + strconv.Itoa(i) + "]")
		}
	}
}

func containsEqual(have, want reflect.Value) bool {
	for i := range have.Len() {
		trial := &comparison{}
		if trial.values("", want, have.Index(i)); trial.differences == 0 {
			return true
		}
	}
	return false
}
