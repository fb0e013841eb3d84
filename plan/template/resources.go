package template

import (
	"iter"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// ResourceField is a request or a limit of a container, which a kubelet changes while the
// container runs.
type ResourceField struct {
	Container string
	// List is requests or limits.
	List string
	Name corev1.ResourceName
}

// String is the field as pods have it in the annotation AnnotationResized, for example
// web:requests.cpu.
func (f ResourceField) String() string {
	return f.Container + ":" + f.List + "." + string(f.Name)
}

// ResourceFields of a container, with what a pod of the template has there: the API server
// takes the limit for a request that is absent, and rounds up to thousandths. The quantity
// is nil where the template says nothing.
func ResourceFields(c *corev1.Container) iter.Seq2[ResourceField, *resource.Quantity] {
	return func(yield func(ResourceField, *resource.Quantity) bool) {
		for _, list := range [2]string{"requests", "limits"} {
			for _, name := range Resizable() {
				if !yield(ResourceField{c.Name, list, name}, wantedResource(&c.Resources, list, name)) {
					return
				}
			}
		}
	}
}

func wantedResource(r *corev1.ResourceRequirements, list string, name corev1.ResourceName) *resource.Quantity {
	q, ok := r.Limits[name]
	if request, has := r.Requests[name]; list == "requests" && has {
		q, ok = request, true
	}
	if !ok {
		return nil
	}
	q = q.DeepCopy()
	q.RoundUp(resource.Milli)
	return &q
}

// ResourceSet says of which fields a pod follows its template. The zero value has none.
type ResourceSet struct {
	all    bool
	fields []string
}

// allResources stands for every field. Earlier versions write nothing else.
const allResources = "true"

// ReadResourceSet reads what String wrote. What it cannot read counts as all.
func ReadResourceSet(text string) ResourceSet {
	fields := strings.Fields(text)
	if slices.ContainsFunc(fields, func(f string) bool { return !strings.Contains(f, ":") }) {
		return ResourceSet{all: true}
	}
	return ResourceSet{fields: fields}
}

// String is empty for the empty set.
func (s ResourceSet) String() string {
	if s.all {
		return allResources
	}
	return strings.Join(s.fields, " ")
}

// Has says whether the field is in the set.
func (s ResourceSet) Has(f ResourceField) bool {
	return s.all || slices.Contains(s.fields, f.String())
}

// With is the union of two sets.
func (s ResourceSet) With(more ResourceSet) ResourceSet {
	if s.all || more.all {
		return ResourceSet{all: true}
	}
	fields := slices.Concat(s.fields, more.fields)
	slices.Sort(fields)
	return ResourceSet{fields: slices.Compact(fields)}
}

// ChangedResources are the fields in which the template differs from what the record says.
// Those that admission or an autoscaler changed in the pod are not among them, unless the
// template changed them too. Without a record of resources all may have changed.
func (r *Record) ChangedResources(pod *corev1.Pod, t *corev1.PodTemplateSpec) ResourceSet {
	if !r.knowsResources(pod) {
		return ResourceSet{all: true}
	}
	var out ResourceSet
	for _, want := range SharedContainers(pod, t) {
		had, rest := "", r.Resources[want.Name]
		for field, quantity := range ResourceFields(want) {
			if had, rest, _ = strings.Cut(rest, ","); !isQuantity(had, quantity) {
				out.fields = append(out.fields, field.String())
			}
		}
	}
	slices.Sort(out.fields)
	return out
}

// knowsResources says whether the record tells of resources. A template without cpu and
// memory leaves none in it; only pods whose template had some carry a shape hash.
func (r *Record) knowsResources(pod *corev1.Pod) bool {
	return r.copies == nil && (len(r.Resources) > 0 || pod.Annotations[tappv1.AnnotationShapeHash] == "")
}

// isQuantity says whether the text is that quantity; empty: none.
func isQuantity(text string, q *resource.Quantity) bool {
	if text == "" || q == nil {
		return text == "" && q == nil
	}
	had, err := resource.ParseQuantity(text)
	return err == nil && had.Cmp(*q) == 0
}

// recordedResources of a container: its ResourceFields in their order, by commas; empty where
// it has none.
func recordedResources(c *corev1.Container) string {
	var texts []string
	some := false
	for _, quantity := range ResourceFields(c) {
		text := ""
		if quantity != nil {
			text, some = quantity.String(), true
		}
		texts = append(texts, text)
	}
	if !some {
		return ""
	}
	return strings.Join(texts, ",")
}
