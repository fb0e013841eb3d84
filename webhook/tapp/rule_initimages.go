package tapp

import (
	"fmt"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/template"
)

// adviseInitImages warns of new images of init containers where the pods get them in
// place: init containers do not run again. Sidecars restart.
func adviseInitImages(now, was *tappv1.TApp) []string {
	u := &now.Spec.UpdateStrategy.InPlaceUpdate
	if was == nil || u.Policy == tappv1.ReCreate || u.Policy != tappv1.InPlaceOnly && u.InitImages != tappv1.InitImagesNextStart {
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
			if image, ok := images[c.Name]; !ok || image == c.Image || plan.IsSidecar(&c) {
				continue
			}
			out = append(out, fmt.Sprintf("%s: an init container's new image takes effect when an instance's pod starts next; updating in place does not start it",
				template.path.Child("spec", "initContainers").Key(c.Name).Child("image")))
		}
	}
	return out
}
