package appset

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/manifest"
)

// manifest of a part: all of its spec, and our marks. The generation is no part of the
// stamp, and is not compared: a change of the AppSet that leaves a part as it is writes
// nothing.
func (c *computation) partOf(s *site) map[string]any {
	ours := c.marks(s)
	labels, annotations := untyped(ours.labels), untyped(ours.annotations)
	out := manifest.Stamp(map[string]any{
		"apiVersion": v1beta1.SchemeGroupVersion.String(), "kind": v1beta1.KindAdvDeployment,
		"metadata": map[string]any{"namespace": c.app.Namespace, "name": c.app.Name, "labels": labels, "annotations": annotations},
		"spec":     manifest.Plain(s.spec),
	}, v1beta1.AnnotationApplied)
	annotations[v1beta1.AnnotationAppSetGeneration] = strconv.FormatInt(c.app.Generation, 10)
	return out
}

type marks struct{ labels, annotations map[string]string }

func (c *computation) marks(s *site) marks {
	return marks{
		labels:      map[string]string{v1beta1.LabelAppSetUID: string(c.app.UID), v1beta1.LabelFleetID: c.in.Fleet},
		annotations: map[string]string{v1beta1.AnnotationAppSet: c.app.Namespace + "/" + c.app.Name, v1beta1.AnnotationRevision: s.revision},
	}
}

// differences of a part from what it is to be. Most parts have none, which is found out without their manifests.
func (c *computation) differences(s *site) []string {
	if c.hasAll(s) {
		return nil
	}
	return Differences(c.partOf(s), s.Part)
}

func (c *computation) hasAll(s *site) bool {
	ours := c.marks(s)
	for _, kind := range []struct{ want, have map[string]string }{{ours.labels, s.Part.Labels}, {ours.annotations, s.Part.Annotations}} {
		for key, value := range kind.want {
			if kind.have[key] != value {
				return false
			}
		}
	}
	if s.Part.Annotations[v1beta1.AnnotationAppSetGeneration] == "" {
		return false
	}
	// Completing sets fields of these two alone.
	want, have := &v1beta1.AdvDeployment{Spec: *s.spec}, &v1beta1.AdvDeployment{Spec: s.Part.Spec}
	v1beta1.DefaultAdvDeployment(want)
	v1beta1.DefaultAdvDeployment(have)
	return equality.Semantic.DeepEqual(&want.Spec, &have.Spec)
}

// Differences of a part from its manifest, in a fixed order. The spec is ours as a whole,
// but for what admission completes.
func Differences(wanted map[string]any, part *v1beta1.AdvDeployment) []string {
	metadata, _ := wanted["metadata"].(map[string]any)
	var out []string
	for kind, have := range map[string]map[string]string{"labels": part.Labels, "annotations": part.Annotations} {
		want, _ := metadata[kind].(map[string]any)
		for key, value := range want {
			if have[key] == value || key == v1beta1.AnnotationApplied || key == v1beta1.AnnotationAppSetGeneration && have[key] != "" {
				continue
			}
			out = append(out, fmt.Sprintf("metadata.%s[%s]", kind, key))
		}
	}
	slices.Sort(out)
	have := part.DeepCopy()
	v1beta1.DefaultAdvDeployment(have)
	return append(out, different("spec", completed(wanted["spec"]), manifest.Plain(&have.Spec))...)
}

// completed is a spec as admission completes it.
func completed(spec any) any {
	fields, _ := spec.(map[string]any)
	part := &v1beta1.AdvDeployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &part.Spec); err != nil {
		return spec
	}
	v1beta1.DefaultAdvDeployment(part)
	return manifest.Plain(&part.Spec)
}

// different lists the paths at which two values differ.
func different(path string, a, b any) []string {
	switch a := a.(type) {
	case map[string]any:
		if b, ok := b.(map[string]any); ok {
			keys := slices.Sorted(maps.Keys(a))
			for key := range b {
				if _, both := a[key]; !both {
					keys = append(keys, key)
				}
			}
			slices.Sort(keys)
			var out []string
			for _, key := range keys {
				out = append(out, different(path+"."+key, a[key], b[key])...)
			}
			return out
		}
	case []any:
		if b, ok := b.([]any); ok && len(a) == len(b) {
			var out []string
			for i := range a {
				out = append(out, different(fmt.Sprintf("%s[%d]", path, i), a[i], b[i])...)
			}
			return out
		}
	}
	if reflect.DeepEqual(a, b) || isEmpty(a) && isEmpty(b) {
		return nil
	}
	return []string{path}
}

// Lost are the fields of a part's spec that were applied, and did not come back: the cluster's
// definition of AdvDeployments does not know them, and what they ask for would be dropped in
// silence.
func Lost(applied map[string]any, part *v1beta1.AdvDeployment) []string {
	return lost("spec", applied["spec"], manifest.Plain(&part.Spec))
}

func lost(path string, want, have any) (out []string) {
	if have == nil && !isEmpty(want) {
		return []string{path}
	}
	switch want := want.(type) {
	case map[string]any:
		have, ok := have.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(want)) {
			if ok {
				out = append(out, lost(path+"."+key, want[key], have[key])...)
			}
		}
	case []any:
		have, ok := have.([]any)
		for i := range want {
			if ok && i < len(have) {
				out = append(out, lost(fmt.Sprintf("%s[%d]", path, i), want[i], have[i])...)
			}
		}
	}
	return out
}

func isEmpty(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return v == nil
}

// wasApplied says whether the part was written as the manifest is now: what differs,
// somebody else did.
func wasApplied(wanted map[string]any, part *v1beta1.AdvDeployment) bool {
	metadata, _ := wanted["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	return part.Annotations[v1beta1.AnnotationApplied] == annotations[v1beta1.AnnotationApplied]
}

// operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// observed begins a patch that holds for the very version that was seen.
func observed(part *v1beta1.AdvDeployment) []operation {
	return []operation{
		{Op: "add", Path: "/metadata/uid", Value: part.UID},
		{Op: "add", Path: "/metadata/resourceVersion", Value: part.ResourceVersion},
	}
}

// correction has a part say what the manifest says.
func correction(wanted map[string]any, part *v1beta1.AdvDeployment) []byte {
	metadata, _ := wanted["metadata"].(map[string]any)
	patch := append(observed(part), operation{Op: "replace", Path: "/spec", Value: wanted["spec"]})
	for kind, have := range map[string]map[string]string{"labels": part.Labels, "annotations": part.Annotations} {
		want, _ := metadata[kind].(map[string]any)
		all := untyped(have)
		maps.Copy(all, want)
		patch = append(patch, operation{Op: "add", Path: "/metadata/" + kind, Value: all})
	}
	return encode(patch)
}

// release takes our marks from a part.
func release(part *v1beta1.AdvDeployment) []byte {
	patch := observed(part)
	for _, kind := range []struct {
		name string
		have map[string]string
	}{{"labels", part.Labels}, {"annotations", part.Annotations}} {
		for _, key := range slices.Sorted(maps.Keys(kind.have)) {
			if isMark(key) {
				patch = append(patch, operation{Op: "remove", Path: "/metadata/" + kind.name + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)})
			}
		}
	}
	return encode(patch)
}

func isMark(key string) bool {
	return slices.Contains([]string{v1beta1.LabelAppSetUID, v1beta1.LabelFleetID, v1beta1.AnnotationAppSet,
		v1beta1.AnnotationAppSetGeneration, v1beta1.AnnotationRevision, v1beta1.AnnotationApplied}, key)
}

func encode(patch []operation) []byte {
	slices.SortStableFunc(patch, func(a, b operation) int { return strings.Compare(a.Path, b.Path) })
	raw, _ := json.Marshal(patch) // what came from JSON
	return raw
}

// act plans a write to the part of a site.
func (c *computation) act(op Op, s *site, why string) *Action {
	a := Action{Op: op, Cluster: s.Name, Why: why}
	if op != Create && s.Part != nil {
		a.UID, a.Version = s.Part.UID, s.Part.ResourceVersion
	}
	c.actions = append(c.actions, a)
	return &c.actions[len(c.actions)-1]
}

func uidOf(part *v1beta1.AdvDeployment) types.UID {
	return types.UID(part.Labels[v1beta1.LabelAppSetUID])
}

func untyped(m map[string]string) map[string]any {
	out := make(map[string]any, len(m))
	for key, value := range m {
		out[key] = value
	}
	return out
}
