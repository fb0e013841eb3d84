package trial

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"tkestack.io/tapp/plan/template"
)

// keys of pods in one plan. To render a spec takes long, and most pods of a template have
// the same one: it is rendered once for those.
type keys struct {
	// models are, by the pods' template, specs that were rendered.
	models map[string][]model
}

type model struct {
	bare corev1.PodSpec
	key  string
}

// maxModels is with how many specs one is compared before it is rendered.
const maxModels = 16

// specKey of a pod: equal for those whose specs differ in what is one instance's alone.
func (k *keys) specKey(pod *corev1.Pod, hash string) string {
	bare := bareSpec(&pod.Spec)
	models := k.models[hash]
	for i := range models {
		if reflect.DeepEqual(&bare, &models[i].bare) {
			return models[i].key
		}
	}
	text, err := json.Marshal(bare)
	if err != nil {
		text = []byte(pod.Name) // specs always marshal
	}
	key := template.Digest(text)
	if len(models) < maxModels {
		if k.models == nil {
			k.models = map[string][]model{}
		}
		k.models[hash] = append(models, model{bare, key})
	}
	return key
}

// bareSpec is a spec without its node and what ties it to one, its hostname, the names of
// its claims, and the token of its service account. It shares all else with the spec.
func bareSpec(spec *corev1.PodSpec) corev1.PodSpec {
	bare := *spec
	bare.NodeName, bare.Hostname = "", ""
	if template.RequiresNode(spec) {
		bare.Affinity = nil
	}
	isToken := func(v corev1.Volume) bool { return strings.HasPrefix(v.Name, "kube-api-access-") && v.Projected != nil }
	token := slices.IndexFunc(spec.Volumes, isToken)
	hasClaim := func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil }
	if token < 0 && !slices.ContainsFunc(spec.Volumes, hasClaim) {
		return bare
	}
	bare.Volumes = nil
	for i := range spec.Volumes {
		v := spec.Volumes[i]
		switch {
		case isToken(v):
			continue
		case hasClaim(v):
			claim := *v.PersistentVolumeClaim
			claim.ClaimName = ""
			v.PersistentVolumeClaim = &claim
		}
		bare.Volumes = append(bare.Volumes, v)
	}
	if token >= 0 {
		name := spec.Volumes[token].Name
		bare.InitContainers, bare.Containers = withoutMounts(spec.InitContainers, name), withoutMounts(spec.Containers, name)
	}
	return bare
}

func withoutMounts(containers []corev1.Container, volume string) []corev1.Container {
	out := slices.Clone(containers)
	for i := range out {
		mounts := slices.DeleteFunc(slices.Clone(out[i].VolumeMounts), func(m corev1.VolumeMount) bool { return m.Name == volume })
		if out[i].VolumeMounts = mounts; len(mounts) == 0 {
			out[i].VolumeMounts = nil
		}
	}
	return out
}
