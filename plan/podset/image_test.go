package podset

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestImageOf(t *testing.T) {
	for _, c := range []struct {
		podSet, template, version, want string
		labelOnly                       bool
	}{
		{"", "nginx", "v4", "nginx:v4", false},
		{"", "nginx", "", "nginx", false},
		{"", "nginx:1.25", "v4", "nginx:1.25", true},
		{"", "r.example:5000/nginx", "v4", "r.example:5000/nginx:v4", false},
		{"", "nginx@sha256:1234", "v4", "nginx@sha256:1234", true},
		{"httpd", "nginx:1.25", "v4", "httpd:v4", false},
		{"httpd:2", "nginx", "v4", "httpd:2", true},
		{"httpd", "nginx:1.25", "", "httpd", false},
		{"", "", "v4", "", false},
	} {
		if got, labelOnly := ImageOf(c.podSet, c.template, c.version); got != c.want || labelOnly != c.labelOnly {
			t.Errorf("%+v: %s, %t", c, got, labelOnly)
		}
	}
}

func TestVersionOf(t *testing.T) {
	for image, want := range map[string]string{
		"nginx": "latest", "nginx:1.25": "1.25", "r.example:5000/nginx": "latest", "r.example:5000/nginx:2": "2",
		"nginx@sha256:0123456789abcdef": "sha256-0123456789ab", "nginx:3@sha256:0123456789abcdef": "3",
	} {
		if got := VersionOf(image); got != want {
			t.Errorf("%s: %s, want %s", image, got, want)
		}
	}
}

func TestMainContainer(t *testing.T) {
	pod := func(annotation string, names ...string) *corev1.PodTemplateSpec {
		t := &corev1.PodTemplateSpec{}
		if annotation != "" {
			t.Annotations = map[string]string{annotationDefaultContainer: annotation}
		}
		for _, name := range names {
			t.Spec.Containers = append(t.Spec.Containers, corev1.Container{Name: name})
		}
		return t
	}
	for _, c := range []struct {
		pod  *corev1.PodTemplateSpec
		want int
	}{
		{pod(""), -1},
		{pod("", "a", "b"), 0},
		{pod("", "a", "web-main", "web"), 2},
		{pod("", "a", "web-main"), 1},
		{pod("a", "web", "a"), 1},
		{pod("none", "b", "web"), 1},
	} {
		if got := MainContainer(c.pod, "web"); got != c.want {
			t.Errorf("%v: %d, want %d", c.pod, got, c.want)
		}
	}
}
