package podset

import (
	"strings"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
)

// annotationDefaultContainer names the main container of a pod, for kubectl.
const annotationDefaultContainer = "kubectl.kubernetes.io/default-container"

// MainContainer is the index of a template's main container: the one that its
// annotation names, the one named as the application, one whose name begins so, or the
// first. -1: the template has none.
func MainContainer(t *corev1.PodTemplateSpec, app string) int {
	begins := -1
	for _, want := range []string{t.Annotations[annotationDefaultContainer], app} {
		for i := range t.Spec.Containers {
			name := t.Spec.Containers[i].Name
			if want != "" && name == want {
				return i
			}
			if begins < 0 && strings.HasPrefix(name, app) {
				begins = i
			}
		}
	}
	switch {
	case begins >= 0:
		return begins
	case len(t.Spec.Containers) > 0:
		return 0
	}
	return -1
}

// ImageOf the main container. labelOnly says that the version is no tag of it.
//
// | image of the podSet, or else of the template | version | image | version is |
// |---|---|---|---|
// | has a tag or digest | any | as it is | a label |
// | has none | given | with the version as its tag | a label, and the tag |
// | has none | absent | as it is | absent |
func ImageOf(podSet, template, version string) (image string, labelOnly bool) {
	image = podSet
	if image == "" {
		image = template
	}
	if version == "" || image == "" {
		return image, false
	}
	if tagOf(image) != "" {
		return image, true
	}
	return image + ":" + version, false
}

// tagOf an image: its tag, or else its digest; empty: it has neither.
func tagOf(image string) string {
	name, digest, _ := strings.Cut(image, "@")
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		return name[i+1:]
	}
	return digest
}

// isImage says whether a text is a reference to an image.
func isImage(image string) bool {
	_, err := reference.ParseNormalizedNamed(image)
	return err == nil
}

// VersionOf an image for people.
func VersionOf(image string) string {
	const digits = 12
	tag := tagOf(image)
	switch algorithm, digest, pinned := strings.Cut(tag, ":"); {
	case pinned && len(digest) > digits:
		return algorithm + "-" + digest[:digits]
	case tag == "":
		return "latest"
	}
	return tag
}
