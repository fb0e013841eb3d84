package restart

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/template"
)

// TestPatterns: which annotations ask for a restart, by restartOn.
func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		restartOn string // entries
		asks      string // keys that ask for a restart
	}{
		{"", "checksum/config config/checksum kubectl.kubernetes.io/restartedAt"},
		{"None", ""},
		{"None team", "team"}, // which admission refuses
		{"team", "team"},
		{"*", "team"},
		{"*/*", "checksum/config config/checksum kubectl.kubernetes.io/restartedAt my.org/checksum-config"},
		{"*/checksum*", "config/checksum my.org/checksum-config"},
		{"kubectl.*/restarted*", "kubectl.kubernetes.io/restartedAt"},
		{"[", ""}, // malformed
	} {
		t.Run(c.restartOn, func(t *testing.T) {
			was, is := &corev1.PodTemplateSpec{}, &corev1.PodTemplateSpec{}
			was.Labels, was.Annotations, is.Annotations = map[string]string{"app": "web"}, map[string]string{}, map[string]string{}
			for _, key := range []string{"team", "checksum/config", "config/checksum", "kubectl.kubernetes.io/restartedAt", "my.org/checksum-config"} {
				was.Annotations[key], is.Annotations[key] = "1", "2"
			}
			got := Annotations(Patterns(strings.Fields(c.restartOn)), template.NewRecord(was), is)
			if !slices.Equal(got, strings.Fields(c.asks)) {
				t.Errorf("these ask for a restart: %v", got)
			}
		})
	}
}

// TestAnnotations: what counts as a change, by what the pod's record has.
func TestAnnotations(t *testing.T) {
	const key = "checksum/config"
	of := func(value string) *corev1.PodTemplateSpec {
		out := &corev1.PodTemplateSpec{}
		out.Labels = map[string]string{"app": "web"}
		if value != "" {
			out.Annotations = map[string]string{key: value}
		}
		return out
	}
	for _, c := range []struct {
		name    string
		record  string
		is      string
		changed bool
	}{
		{"same", template.MarshalRecord(of("1")), "1", false},
		{"changed", template.MarshalRecord(of("1")), "2", true},
		{"added", template.MarshalRecord(of("")), "1", true},
		{"removed", template.MarshalRecord(of("1")), "", true},
		{"in neither", template.MarshalRecord(of("")), "", false},
		{"nothing recorded", "", "1", false},
		{"malformed record", "{", "1", false},
		{"the key alone recorded", `{"labels":["app"],"annotations":["checksum/config"]}`, "1", false},
		{"the key alone recorded, removed", `{"labels":["app"],"annotations":["checksum/config"]}`, "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Annotations(Patterns(nil), template.ReadRecord(c.record), of(c.is)); slices.Contains(got, key) != c.changed {
				t.Errorf("changed: %v", got)
			}
		})
	}
	t.Run("another program's", func(t *testing.T) {
		pod := &corev1.Pod{}
		pod.Labels = map[string]string{tappv1.LabelTemplateHash: "1234567890"}
		pod.Annotations = map[string]string{tappv1.AnnotationTemplateKeys: template.MarshalRecord(of("1"))}
		if got := Annotations(Patterns(nil), template.RecordOf(pod), of("2")); len(got) > 0 {
			t.Errorf("changed: %v", got)
		}
	})
	t.Run("ours, and the node's", func(t *testing.T) {
		was, is := of(""), of("")
		is.Annotations = map[string]string{tappv1.AnnotationShapeHash: "1", tappv1.AnnotationPortMapping: "{}"}
		if got := Annotations([]string{"*/*"}, template.NewRecord(was), is); len(got) > 0 {
			t.Errorf("changed: %v", got)
		}
	})
}

// TestInitImages: which images run in new pods only.
func TestInitImages(t *testing.T) {
	of := func(setup, sidecar string) *corev1.PodTemplateSpec {
		out := &corev1.PodTemplateSpec{}
		out.Spec.InitContainers = []corev1.Container{{Name: "setup", Image: setup}, {Name: "proxy", Image: sidecar, RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}
		out.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:" + setup}}
		return out
	}
	was := template.NewRecord(of("setup:1", "proxy:1"))
	for _, c := range []struct {
		name string
		last *template.Record
		is   *corev1.PodTemplateSpec
		want string
	}{
		{"same", was, of("setup:1", "proxy:1"), ""},
		{"sidecar", was, of("setup:1", "proxy:2"), ""},
		{"another image", was, of("setup:2", "proxy:2"), "image of init container setup from setup:1 to setup:2"},
		{"another name of the image", was, of("docker.io/library/setup:1", "proxy:1"), ""},
		{"nothing recorded", template.ReadRecord(""), of("setup:2", "proxy:1"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := strings.Join(InitImages(c.last, c.is), "; "); got != c.want {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestTell(t *testing.T) {
	for _, c := range []struct {
		annotations, images []string
		want                string
	}{
		{[]string{"checksum/config"}, nil, "annotation checksum/config changed, which asks for a restart"},
		{[]string{"checksum/config", "checksum/secret"}, nil, "annotations checksum/config, checksum/secret changed, which ask for a restart"},
		{nil, []string{"image of init container setup from a to b"}, "image of init container setup from a to b, which runs in new pods only"},
		{[]string{"checksum/config"}, []string{"image of init container setup from a to b"},
			"annotation checksum/config changed, which asks for a restart; image of init container setup from a to b, which runs in new pods only"},
	} {
		if got := tell(c.annotations, c.images); got != c.want {
			t.Errorf("got %s", got)
		}
	}
}
