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
	"tkestack.io/tapp/plan/podset"
)

// partOf is the manifest of a part: its whole spec, and our marks. The AppSet's generation
// is neither stamped nor compared, so a change of the AppSet that does not concern a part
// does not write it.
func (c *computation) partOf(s *site) map[string]any {
	ours := c.marks(s)
	labels, annotations := untyped(ours.labels), untyped(ours.annotations)
	out := manifest.Stamp(map[string]any{
		"apiVersion": v1beta1.SchemeGroupVersion.String(), "kind": v1beta1.KindAdvDeployment,
		"metadata": map[string]any{"namespace": c.app.Namespace, "name": c.app.Name, "labels": labels, "annotations": annotations},
		"spec":     c.plain(s.spec),
	}, v1beta1.AnnotationApplied)
	annotations[v1beta1.AnnotationAppSetGeneration] = strconv.FormatInt(c.app.Generation, 10)
	return out
}

// plain is a spec as JSON has it. What the parts of all clusters have in common is converted
// once and shared by their manifests, since hundreds of manifests may wait to be written at
// a time. Nobody may change it.
func (c *computation) plain(spec *v1beta1.AdvDeploymentSpec) map[string]any {
	if c.common.spec == nil || !equality.Semantic.DeepEqual(c.common.spec, &spec.PodSpec) {
		c.common.spec, c.common.plain = &spec.PodSpec, manifest.Plain(&spec.PodSpec)
	}
	own := *spec
	own.PodSpec = v1beta1.PodSpec{}
	out := manifest.Plain(&own)
	if len(c.common.plain) > 0 {
		out["podSpec"] = c.common.plain
	}
	return out
}

// marks are our labels and annotations on a part, without the stamp and the generation.
type marks struct{ labels, annotations map[string]string }

func (c *computation) marks(s *site) marks {
	out := marks{
		labels:      map[string]string{v1beta1.LabelAppSetUID: string(c.app.UID), v1beta1.LabelFleetID: c.in.Fleet},
		annotations: map[string]string{v1beta1.AnnotationAppSet: c.app.Namespace + "/" + c.app.Name, v1beta1.AnnotationRevision: s.revision},
	}
	if retry := c.retryOf(s); retry != "" {
		out.annotations[v1beta1.AnnotationRetry] = retry
	}
	return out
}

// retryOf is what asks a part for another try of releases whose hooks failed: what asks the AppSet
// for another try of the present rollout. Only parts that are to get the content now, and have not
// got it, are asked anew. So a hook that fails later is not tried again by an earlier request.
func (c *computation) retryOf(s *site) string {
	asked := c.app.Annotations[v1beta1.AnnotationRetry]
	id, _, _ := strings.Cut(asked, "/")
	deployType, _ := v1beta1.DeployTypeOf(&c.app.Spec.PodSpec)
	if deployType == v1beta1.DeployHelm && c.rolling != nil && id == c.rolling.decision.Record.ID && slices.ContainsFunc(s.units, func(u podset.Unit) bool {
		v := c.verdict(s.Name, u.PodSet.Name)
		return v != nil && !v.Done && v.Content == u.Hash
	}) {
		return asked
	}
	if !s.ours {
		return ""
	}
	return s.Part.Annotations[v1beta1.AnnotationRetry]
}

// Differences of a part from its manifest, in a fixed order.
func Differences(wanted map[string]any, part *v1beta1.AdvDeployment) []string {
	made := &v1beta1.AdvDeployment{}
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(wanted, made) // the manifest was made of one
	delete(made.Annotations, v1beta1.AnnotationApplied)
	delete(made.Annotations, v1beta1.AnnotationAppSetGeneration)
	return (&compared{}).differences(marks{made.Labels, made.Annotations}, &made.Spec, part)
}

// compared are the last two podSpecs that were compared, and were the same. Most parts of an AppSet have one podSpec in memory.
type compared struct{ want, have *v1beta1.PodSpec }

func (c *compared) same(want, have *v1beta1.PodSpec) bool {
	if c.want != nil && reflect.DeepEqual(c.want, want) && reflect.DeepEqual(c.have, have) { // to compare a thing with itself is cheap
		return true
	}
	if !equality.Semantic.DeepEqual(want, have) {
		return false
	}
	c.want, c.have = want, have
	return true
}

// differences lists where a part differs from what the AppSet asks for: in our marks, and
// anywhere in the spec, except for fields that admission completes. Most parts do not
// differ, which comparing Go types finds out cheaply.
func (c *compared) differences(ours marks, spec *v1beta1.AdvDeploymentSpec, part *v1beta1.AdvDeployment) []string {
	out := missing("labels", ours.labels, part.Labels)
	out = append(out, missing("annotations", ours.annotations, part.Annotations)...)
	if part.Annotations[v1beta1.AnnotationAppSetGeneration] == "" {
		out = append(out, pathOfMark("annotations", v1beta1.AnnotationAppSetGeneration))
	}
	slices.Sort(out)
	// Completing sets fields of these two alone.
	want, have := &v1beta1.AdvDeployment{Spec: *spec}, &v1beta1.AdvDeployment{Spec: part.Spec}
	v1beta1.DefaultAdvDeployment(want)
	v1beta1.DefaultAdvDeployment(have)
	if c.same(&spec.PodSpec, &part.Spec.PodSpec) {
		want.Spec.PodSpec, have.Spec.PodSpec = v1beta1.PodSpec{}, v1beta1.PodSpec{}
		if equality.Semantic.DeepEqual(&want.Spec, &have.Spec) {
			return out
		}
		want.Spec.PodSpec, have.Spec.PodSpec = spec.PodSpec, part.Spec.PodSpec
	}
	return append(out, different("spec", manifest.Plain(&want.Spec), manifest.Plain(&have.Spec))...)
}

// missing lists the marks that a part lacks, or has with another value.
func missing(kind string, want, have map[string]string) (out []string) {
	for key, value := range want {
		if have[key] != value {
			out = append(out, pathOfMark(kind, key))
		}
	}
	return out
}

func pathOfMark(kind, key string) string { return fmt.Sprintf("metadata.%s[%s]", kind, key) }

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

// Lost lists the fields of a spec that were applied and that the API server did not store: the
// cluster's CRD does not have them. What they ask for would not be done, and nobody would be told.
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

// wasApplied says whether the manifest was applied as it is now. Then somebody else made
// the differences.
func wasApplied(wanted map[string]any, part *v1beta1.AdvDeployment) bool {
	metadata, _ := wanted["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	return part.Annotations[v1beta1.AnnotationApplied] == annotations[v1beta1.AnnotationApplied]
}

// observed begins a patch that fails unless the part has the observed resourceVersion.
func observed(part *v1beta1.AdvDeployment) []manifest.Operation {
	return manifest.ForVersion(part.UID, part.ResourceVersion)
}

// InPlaceOf an apply that a cluster finds invalid is a JSON patch that makes of the part what the
// manifest says: an apply makes null of an object whose fields were all taken out of it, and no
// schema takes that. Something has to have been observed.
func (a *Action) InPlaceOf() []byte { return correction(a.Manifest, a.Observed) }

// correction is a patch that gives a part the spec and the marks of the manifest.
func correction(wanted map[string]any, part *v1beta1.AdvDeployment) []byte {
	metadata, _ := wanted["metadata"].(map[string]any)
	patch := append(observed(part), manifest.Operation{Op: "replace", Path: "/spec", Value: wanted["spec"]})
	for kind, have := range map[string]map[string]string{"labels": part.Labels, "annotations": part.Annotations} {
		want, _ := metadata[kind].(map[string]any)
		all := untyped(have)
		maps.Copy(all, want)
		patch = append(patch, manifest.Operation{Op: "add", Path: "/metadata/" + kind, Value: all})
	}
	return encode(patch)
}

// release is a patch that removes our marks from a part.
func release(part *v1beta1.AdvDeployment) []byte {
	patch := observed(part)
	for _, kind := range []struct {
		name string
		have map[string]string
	}{{"labels", part.Labels}, {"annotations", part.Annotations}} {
		for _, key := range slices.Sorted(maps.Keys(kind.have)) {
			if isMark(key) {
				patch = append(patch, manifest.Operation{Op: "remove", Path: "/metadata/" + kind.name + "/" + manifest.Pointer(key)})
			}
		}
	}
	return encode(patch)
}

func isMark(key string) bool {
	return slices.Contains([]string{v1beta1.LabelAppSetUID, v1beta1.LabelFleetID, v1beta1.AnnotationAppSet,
		v1beta1.AnnotationAppSetGeneration, v1beta1.AnnotationRevision, v1beta1.AnnotationRetry, v1beta1.AnnotationApplied}, key)
}

func encode(patch []manifest.Operation) []byte {
	slices.SortStableFunc(patch, func(a, b manifest.Operation) int { return strings.Compare(a.Path, b.Path) })
	raw, _ := json.Marshal(patch) // what came from JSON
	return raw
}

// act plans a write to the part of a site.
func (c *computation) act(op Op, s *site, why string) *Action {
	a := Action{Op: op, Cluster: s.Name, Why: why}
	if op != Create && s.Part != nil {
		a.UID, a.Version, a.Observed = s.Part.UID, s.Part.ResourceVersion, s.Part
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
