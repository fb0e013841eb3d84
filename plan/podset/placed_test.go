package podset

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

func readPlaced(t *testing.T, spec string) *v1beta1.AdvDeployment {
	t.Helper()
	d := &v1beta1.AdvDeployment{}
	d.Namespace, d.Name = "ns", "a"
	if err := yaml.UnmarshalStrict([]byte(spec), &d.Spec); err != nil {
		t.Fatal(err)
	}
	return d
}

const placedTemplate = `podSpec: {template: {spec: {containers: [{name: a, image: a}]}}}`

// TestPlaced: an AdvDeployment that a user wrote has the units of an AppSet with one
// cluster that has no name.
func TestPlaced(t *testing.T) {
	d := readPlaced(t, `{replicas: 4, labels: {team: x}, `+placedTemplate+`, topology: {podSets: [{name: p-gz01-blue, replicas: 25%, version: v1}, {name: q, meta: {tier: web}}]}}`)
	units, _, problems := Placed(d)
	if len(problems) > 0 || len(units) != 2 {
		t.Fatalf("%d units, %v", len(units), problems)
	}
	blue, q := units[0], units[1]
	if blue.Replicas != 1 || q.Replicas != 3 || blue.Group != "blue" || blue.Version != "v1" || blue.Content.Template.Spec.Containers[0].Image != "a:v1" || q.Version != "latest" {
		t.Errorf("%+v\n%+v", blue, q)
	}
	if want := map[string]string{"app": "a", "release": "q", "team": "x", "tier": "web"}; !reflect.DeepEqual(q.Content.Labels, want) {
		t.Errorf("labels %v", q.Content.Labels)
	}
}

// TestHeldBack: a podSet that names a revision has that content, whatever podSpec says.
func TestHeldBack(t *testing.T) {
	old, _, _ := Placed(readPlaced(t, `{`+placedTemplate+`, topology: {podSets: [{name: p, replicas: 1, version: v1}]}}`))
	content, err := json.Marshal(old[0].Content)
	if err != nil {
		t.Fatal(err)
	}
	d := readPlaced(t, `{`+placedTemplate+`, topology: {podSets: [{name: p, replicas: 2, version: v2, revision: r}]}}`)
	d.Spec.Revisions = []v1beta1.Revision{{Name: "r", Content: runtime.RawExtension{Raw: content}}}
	units, _, problems := Placed(d)
	if len(problems) > 0 || units[0].Hash != old[0].Hash || units[0].Version != "v1" || units[0].Replicas != 2 {
		t.Errorf("%+v, %v", units, problems)
	}
	d.Spec.Revisions[0].Content.Raw = []byte("[]")
	for _, c := range []struct{ name, want string }{
		{"r", "spec.topology.podSets[p].revision: the content of revision r cannot be read: json: cannot unmarshal array"},
		{"s", "spec.topology.podSets[p].revision: spec.revisions has no revision s"},
	} {
		d.Spec.Topology.PodSets[0].Revision = c.name
		if units, _, problems := Placed(d); len(units) > 0 || len(problems) != 1 || !strings.HasPrefix(problems[0].Field+": "+problems[0].Why, c.want) {
			t.Errorf("%v", problems)
		}
	}
}
