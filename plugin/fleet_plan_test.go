package plugin

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// TestFleetPlan: what applying a manifest would do, in order, and the exit code.
func TestFleetPlan(t *testing.T) {
	a := fleetApp(t, settled)
	for name, c := range map[string]struct {
		edit func(*v1beta1.AppSet)
		args []string
		code int
		out  string
		err  string
	}{
		"nothing": {func(*v1beta1.AppSet) {}, nil, 0, "appset.workload.dmall.com/web: nothing would change\n", ""},
		"an update": {func(a *v1beta1.AppSet) {
			a.Spec.PodSpec.Template.Spec.Containers[0].Image = "nginx:v3"
			a.Spec.ClusterTopology.Clusters[0].PodSets[1].Replicas = new(intstr.FromInt32(4))
		}, nil, 2, lines("appset.workload.dmall.com/web would change, in this order:",
			"  1. at once: 1 instance is created: replicas from 3 to 4",
			"       one/web-gz01-blue: 1 instance is created (3)",
			"  2. stage canary (one): 1 instance is updated in place: image of web from nginx:v2 to nginx:v3; then it waits for a confirmation",
			"       one/web-gz01-canary: 1 instance is updated in place (0)",
			"  3. stage blue (one, two; 1 at a time): 5 instances are updated in place: image of web from nginx:v2 to nginx:v3",
			"       one/web-gz01-blue: 4 instances are updated in place (0-3)",
			"       two/web-gz02-blue: 1 instance is updated in place (0)"), ""},
		"a bad output": {func(*v1beta1.AppSet) {}, []string{"-o", "wide"}, 1, "", "error: --output is \"wide\"; give json or yaml\nSee 'kubectl tapp fleet plan --help' for usage.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			after := a.DeepCopy()
			c.edit(after)
			after.Status = v1beta1.AppSetStatus{}
			text, err := yaml.Marshal(after)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "appset.yaml")
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
			serveFleet(t, a, nil)
			code, out, errOut := run(t, append([]string{program, "fleet", "plan", "-f", file}, c.args...)...)
			if code != c.code || out != c.out || errOut != c.err {
				t.Errorf("exit code %d, errors %q, printed\n%s\nwant %d, %q,\n%s", code, errOut, out, c.code, c.err, c.out)
			}
		})
	}
}

// TestFleetPlanUnregistered: clusters that a plan names and nobody registered are told of, to
// those who may read registrations.
func TestFleetPlanUnregistered(t *testing.T) {
	const secrets, configMaps = "/api/v1/namespaces/tapp-system/secrets", "/api/v1/namespaces/tapp-system/configmaps"
	one := corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "ONE", UID: "one"}}
	a := fleetApp(t, settled, func(a *v1beta1.AppSet) {
		a.Spec.ClusterTopology.Clusters[1].Name = "Three"
		a.Status = v1beta1.AppSetStatus{}
	})
	text, err := yaml.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "appset.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	const note = "Note: namespace tapp-system has no registration of cluster three: unless it is the hub itself, what is to be done there waits until it is registered (kubectl tapp fleet join)\n"
	for want, more := range map[string]map[string]any{
		note: {secrets: &corev1.SecretList{Items: []corev1.Secret{one}}, configMaps: &corev1.ConfigMapList{}},
		"":   nil, // registrations cannot be read
	} {
		more = maps.Clone(more)
		serve(t, more) // there is no AppSet: it would be created
		code, out, errOut := run(t, program, "fleet", "plan", "-f", file)
		if before, told, _ := strings.Cut(out, "Note: namespace"); code != 2 || errOut != "" || before == "" || (told != "") != (want != "") || !strings.HasSuffix(out, want) {
			t.Errorf("exit code %d, errors %q, printed\n%s\nwant the note %q", code, errOut, out, want)
		}
	}
}
