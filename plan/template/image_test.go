package template

import (
	"strings"
	"testing"
)

func TestSameImage(t *testing.T) {
	const digest = "@sha256:9ae97d36d26566ff84e8893c64a6dc4fe8ca6d1144bf5b87b2b85a32def253c7"
	const other = "@sha256:0ae97d36d26566ff84e8893c64a6dc4fe8ca6d1144bf5b87b2b85a32def253c7"
	for _, test := range []struct {
		a, b string
		want bool
	}{
		// The original's fault 6: prefixes left pods NotReady for ever.
		{"nginx", "docker.io/library/nginx:latest", true},
		{"nginx:1.7.9", "docker.io/library/nginx:1.7.9", true},
		{"nginx:1.7.9", "library/nginx:1.7.9", true},
		{"nginx:1.7.9", "index.docker.io/library/nginx:1.7.9", true},
		{"team/app", "docker.io/team/app:latest", true},
		{"registry.example.com:5000/app", "registry.example.com:5000/app:latest", true},
		{"docker://nginx:1", "nginx:1", true},
		{"nginx:1.7.9", "nginx:1.8", false},
		{"nginx:1", "example.com/library/nginx:1", false},
		{"nginx:1", "mirror/nginx:1", false},
		{"nginx" + digest, "docker.io/library/nginx" + digest, true},
		{"nginx:1" + digest, "nginx" + digest, true},
		{"nginx:1" + digest, "nginx:2" + digest, true},
		{"nginx" + digest, "nginx" + other, false},
		{"nginx:1" + digest, "nginx:1", false},
		{"nginx", "sha256:9ae97d36d26566ff84e8893c64a6dc4fe8ca6d1144bf5b87b2b85a32def253c7", false},
		{"Not An Image", "Not An Image", true},
		{"Not An Image", "nginx", false},
		{"", "", true},
		{"", "nginx", false},
	} {
		if SameImage(test.a, test.b) != test.want || SameImage(test.b, test.a) != test.want {
			t.Errorf("SameImage(%q, %q) is %t", test.a, test.b, !test.want)
		}
	}
}

func TestImageDigest(t *testing.T) {
	for image, want := range map[string]string{
		"nginx:1":                           "",
		"nginx@sha256:12":                   "sha256:12",
		"docker-pullable://nginx@sha256:12": "sha256:12",
		"sha256:12":                         "sha256:12",
		"docker.io/library/nginx:1.7.9@sha512:abcd": "sha512:abcd",
	} {
		if got := imageDigest(image); got != want {
			t.Errorf("imageDigest(%q) is %q", image, got)
		}
	}
}

func TestIsPulledAlways(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("1", 64)
	for image, want := range map[string]bool{"web": true, "web:latest": true, "registry:5000/web": true, "web:1": false, "web" + digest: false, "web:latest" + digest: false, "registry:5000/web:1": false, "": false} {
		if got := isPulledAlways(image); got != want {
			t.Errorf("%s: %t", image, got)
		}
	}
}
