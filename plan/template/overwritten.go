package template

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// writer is the field manager of writes of this program: API servers take it from its name.
const writer = "tapp"

// ReasonImageDiffers is the reason of an instance that runs an overwritten image.
const ReasonImageDiffers = "ImageDiffers"

// managedSpec is the part of managedFields that Overwritten reads: of the containers, by
// key, which fields of theirs a manager has.
type managedSpec struct {
	Spec struct {
		Containers     map[string]map[string]json.RawMessage `json:"f:containers,omitempty"`
		InitContainers map[string]map[string]json.RawMessage `json:"f:initContainers,omitempty"`
	} `json:"f:spec"`
}

// Overwritten are the containers of a pod, by name, whose image somebody wrote who neither
// made the pod nor is TApp, as `kubectl set image` does. The pod's managedFields say so;
// what admission made of an image is the writer's. Without managedFields there are none.
//
//	the manager of the image                                   overwritten
//	TApp                                                       no
//	who wrote the container's name, by another way than apply  no: it made the pod
//	who wrote the container's name, where all of them applied  no
//	another one                                                yes
//	none, or one of several is one of the above                no
func Overwritten(pod *corev1.Pod) []string {
	type field struct {
		images, updated, applied []string // managers of the image; of the name, by update and by apply
	}
	if !mayBeOverwritten(pod.ManagedFields) {
		return nil
	}
	fields := map[string]*field{}
	for i := range pod.ManagedFields {
		entry := &pod.ManagedFields[i]
		for key, has := range containersManaged(entry) {
			f := fields[key]
			if f == nil {
				f = &field{}
				fields[key] = f
			}
			if _, is := has["f:image"]; is {
				f.images = append(f.images, entry.Manager)
			}
			if _, is := has["f:name"]; !is {
				continue
			}
			if entry.Operation == metav1.ManagedFieldsOperationApply {
				f.applied = append(f.applied, entry.Manager)
			} else {
				f.updated = append(f.updated, entry.Manager)
			}
		}
	}
	var out []string
	for key, f := range fields {
		makers := f.updated
		if len(makers) == 0 {
			makers = f.applied
		}
		ours := func(manager string) bool { return manager == writer || slices.Contains(makers, manager) }
		if len(f.images) > 0 && !slices.ContainsFunc(f.images, ours) {
			out = append(out, nameInKey(key))
		}
	}
	slices.Sort(out)
	return out
}

// containersManaged are the fields of containers that an entry has, by the container's key.
// An entry of a status, and one that cannot be read, has none.
func containersManaged(entry *metav1.ManagedFieldsEntry) map[string]map[string]json.RawMessage {
	var m managedSpec
	if entry.Subresource == "status" || entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &m) != nil {
		return nil
	}
	if m.Spec.Containers == nil {
		return m.Spec.InitContainers
	}
	maps.Copy(m.Spec.Containers, m.Spec.InitContainers) // no two have one name
	return m.Spec.Containers
}

// nameInKey is the name in a key such as k:{"name":"main"}.
func nameInKey(key string) string {
	var k struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal([]byte(strings.TrimPrefix(key, "k:")), &k) // another key has no name
	return k.Name
}

// reduced is the manager of an entry that Reduce made.
const reduced = "others"

// Reduce managedFields of a pod to one entry, which is what Overwritten says of them; nil:
// nothing is overwritten. Most pods of a cache need none.
func Reduce(pod *corev1.Pod) []metav1.ManagedFieldsEntry {
	names := Overwritten(pod)
	if len(names) == 0 {
		return nil
	}
	var m managedSpec
	m.Spec.Containers = map[string]map[string]json.RawMessage{}
	for _, name := range names {
		key, _ := json.Marshal(map[string]string{"name": name}) // strings always marshal
		m.Spec.Containers["k:"+string(key)] = map[string]json.RawMessage{"f:image": json.RawMessage("{}")}
	}
	text, _ := json.Marshal(m)
	return []metav1.ManagedFieldsEntry{{Manager: reduced, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(text))}}
}

// IsReduced says whether managedFields are what Reduce made.
func IsReduced(entries []metav1.ManagedFieldsEntry) bool {
	return len(entries) == 1 && entries[0].Manager == reduced && entries[0].Operation == ""
}

// mayBeOverwritten says, without reading them, whether several writers have images.
func mayBeOverwritten(entries []metav1.ManagedFieldsEntry) bool {
	writers := 0
	for i := range entries {
		if e := &entries[i]; e.Subresource != "status" && e.FieldsV1 != nil && bytes.Contains(e.FieldsV1.GetRawBytes(), []byte(`"f:image":`)) {
			writers++
			if e.Manager != writer && (e.Operation == metav1.ManagedFieldsOperationApply || !bytes.Contains(e.FieldsV1.GetRawBytes(), []byte(`"f:name":`))) {
				return true
			}
		}
	}
	return writers > 1
}

// Differences tells, in a sentence, which containers of a pod run an image that somebody
// wrote over the template's; empty: none. It stays until the instance is updated or
// recreated.
func Differences(pod *corev1.Pod, t *corev1.PodTemplateSpec) string {
	overwritten := Overwritten(pod)
	if len(overwritten) == 0 {
		return ""
	}
	var out []string
	for has, want := range SharedContainers(pod, t) {
		if slices.Contains(overwritten, want.Name) && !SameImage(has.Image, want.Image) {
			out = append(out, fmt.Sprintf("container %s runs %s, its template says %s", want.Name, has.Image, want.Image))
		}
	}
	return strings.Join(out, "; ")
}
