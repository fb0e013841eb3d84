package template

import (
	"maps"
	"slices"
)

// What the hashes leave out, left out of trees: the plain way to compute what the
// product cuts out of what it rendered, or leaves out of the Kubernetes types.

// shapeOfTree is ShapeHash of a template as it is stored.
func shapeOfTree(template map[string]any) (string, error) {
	spec, _ := template["spec"].(map[string]any)
	shape, err := canonicalJSON("PodSpec", fromTree(withoutResources(withoutImages(spec))))
	return hashOf(shape), err
}

// withoutImages leaves out what an in-place update can change in a spec.
func withoutImages(spec map[string]any) map[string]any {
	return withContainers(spec, func(_ string, c map[string]any) { delete(c, "image") })
}

// withoutResources leaves out what a resize can change.
func withoutResources(spec map[string]any) map[string]any {
	return withContainers(spec, func(field string, c map[string]any) {
		resources, ok := c["resources"].(map[string]any)
		if !ok || field == "initContainers" && c["restartPolicy"] != "Always" {
			return
		}
		resources = maps.Clone(resources)
		for _, what := range []string{"requests", "limits"} {
			if list, ok := resources[what].(map[string]any); ok {
				list = maps.Clone(list)
				for _, name := range Resizable() {
					delete(list, string(name))
				}
				resources[what] = list
			}
		}
		c["resources"] = resources
	})
}

// withContainers returns the spec with copies of its containers that change has
// seen.
func withContainers(spec map[string]any, change func(field string, c map[string]any)) map[string]any {
	spec = maps.Clone(spec)
	for _, field := range []string{"containers", "initContainers"} {
		containers, ok := spec[field].([]any)
		if !ok {
			continue
		}
		containers = slices.Clone(containers)
		for i := range containers {
			if c, ok := containers[i].(map[string]any); ok {
				c = maps.Clone(c)
				change(field, c)
				containers[i] = c
			}
		}
		spec[field] = containers
	}
	return spec
}
