package template

import (
	"strings"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
)

// SameImage says whether two image references name the same thing by their
// text: nginx is docker.io/library/nginx:latest. Beside a digest a tag says
// nothing. A tag and a digest are never the same by their text, nor are an image
// id and a name.
func SameImage(a, b string) bool {
	if a == b {
		return true
	}
	if a == "" || b == "" {
		return false
	}
	x, y := parseImage(a), parseImage(b)
	if x == nil || y == nil {
		return false
	}
	xDigest, xPinned := x.(reference.Digested)
	yDigest, yPinned := y.(reference.Digested)
	switch {
	case x.Name() != y.Name() || xPinned != yPinned:
		return false
	case xPinned:
		return xDigest.Digest() == yDigest.Digest()
	}
	return reference.TagNameOnly(x).String() == reference.TagNameOnly(y).String()
}

// isPulledAlways says whether a new container with this image, and without an
// imagePullPolicy, gets the policy Always: the tag is latest, or there is none. Otherwise
// it gets IfNotPresent (SetDefaults_Container in k8s.io/kubernetes/pkg/apis/core/v1).
func isPulledAlways(image string) bool {
	name := image[strings.LastIndexByte(image, '/')+1:]
	if name == "" || strings.Contains(name, "@") {
		return false
	}
	_, tag, tagged := strings.Cut(name, ":")
	return !tagged || tag == "latest"
}

// IsCopy says whether an image is the other one by its text, or a mirror's copy of it,
// as admission makes of a reference: the same tag or digest, under the same path below
// another registry or project; also with a digest behind the tag.
func IsCopy(image, of string) bool {
	if SameImage(image, of) {
		return true
	}
	if image == "" || of == "" {
		return false
	}
	x, y := parseImage(image), parseImage(of)
	if x == nil || y == nil || !isCopyOfPath(x, y) {
		return false
	}
	if pinned, ok := y.(reference.Digested); ok {
		has, ok := x.(reference.Digested)
		return ok && has.Digest() == pinned.Digest()
	}
	has, ok := reference.TagNameOnly(x).(reference.Tagged)
	return ok && has.Tag() == reference.TagNameOnly(y).(reference.Tagged).Tag()
}

// isCopyOfPath knows that Docker Hub's own images go by nginx and library/nginx.
func isCopyOfPath(x, y reference.Named) bool {
	if x.Name() == y.Name() {
		return true
	}
	has, path := reference.Path(x), reference.Path(y)
	if reference.Domain(y) == "docker.io" {
		path = strings.TrimPrefix(path, "library/")
	}
	return has == path || strings.HasSuffix(has, "/"+path)
}

// parseImage reads a reference to an image by name; nil when it is none.
func parseImage(image string) reference.Named {
	// A status may carry the scheme under which a docker shim reported images.
	if _, after, ok := strings.Cut(image, "://"); ok {
		image = after
	}
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return nil
	}
	return named
}

// imageDigest is the digest in a reference, "" when it has none:
// docker-pullable://nginx@sha256:12.. and sha256:12.. both have one.
func imageDigest(image string) string {
	if i := strings.LastIndexByte(image, '@'); i >= 0 {
		return image[i+1:]
	}
	if strings.HasPrefix(image, "sha256:") {
		return image
	}
	return ""
}

// RunsImage says whether a container status proves that the container runs the
// image that a spec names. The runtime names one of the image's tags, not
// necessarily the spec's, so that false proves nothing.
func RunsImage(status *corev1.ContainerStatus, image string) bool {
	if SameImage(status.Image, image) {
		return true
	}
	digest := imageDigest(image)
	return digest != "" && (digest == imageDigest(status.ImageID) || digest == imageDigest(status.Image))
}
