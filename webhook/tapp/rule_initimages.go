package tapp

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// adviseInitImages warns of new images of init containers: the pods get them in
// place, but init containers do not run again. Sidecars restart.
func adviseInitImages(now, was *tappv1.TApp) []string {
	if was == nil {
		return nil
	}
	var out []string
	for template := range templatesOf(now) {
		before := templateOf(was, template.name)
		if before == nil {
			continue
		}
		images := make(map[string]string, len(before.Spec.InitContainers))
		for _, c := range before.Spec.InitContainers {
			images[c.Name] = c.Image
		}
		for _, c := range template.Spec.InitContainers {
			if image, ok := images[c.Name]; !ok || image == c.Image || c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
				continue
			}
			out = append(out, fmt.Sprintf("%s: an init container's new image takes effect when an instance's pod starts next; updating in place does not start it",
				template.path.Child("spec", "initContainers").Key(c.Name).Child("image")))
		}
	}
	return out
}
