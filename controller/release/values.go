package release

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"tkestack.io/tapp/plan/podset"
	plan "tkestack.io/tapp/plan/release"
)

func gvkOf(ref plan.Ref) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
}

// valuesOf a unit, for the keys that charts commonly have: the version as the tag, unless
// the user's values say otherwise, and above the user's values the number of instances
// and the image. Charts of the original systems have the image below container.
func valuesOf(u *podset.Unit) (defaults, overrides map[string]any) {
	defaults, overrides = map[string]any{}, map[string]any{"replicaCount": u.Replicas}
	if u.Content.Version != "" {
		defaults = imageValues(map[string]any{"tag": u.Content.Version})
	}
	if u.Content.Image != "" {
		image := map[string]any{"repository": u.Content.Image}
		if i := strings.LastIndexByte(u.Content.Image, ':'); i > strings.LastIndexByte(u.Content.Image, '/') && !strings.Contains(u.Content.Image, "@") {
			image = map[string]any{"repository": u.Content.Image[:i], "tag": u.Content.Image[i+1:]}
		}
		for key, value := range imageValues(image) {
			overrides[key] = value
		}
	}
	return defaults, overrides
}

func imageValues(image map[string]any) map[string]any {
	return map[string]any{"image": image, "container": map[string]any{"image": image}}
}
