package app

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	appv1 "tkestack.io/tapp/crd/app/v1"
)

// read an App with this spec, with its defaults.
func read(t *testing.T, spec string) *appv1.App {
	t.Helper()
	a := &appv1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
	if err := yaml.UnmarshalStrict([]byte(spec), &a.Spec); err != nil {
		t.Fatal(err)
	}
	appv1.Default(a)
	return a
}

type ruleCase struct{ name, spec, want string }

// testRule checks all that a rule has to say, whole.
func testRule(t *testing.T, rule string, cases []ruleCase) {
	t.Helper()
	r := Rules().Named(rule)[0]
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a := read(t, c.spec)
			before := a.DeepCopy()
			var got []string
			for _, err := range r.Judge(a) {
				got = append(got, err.Error())
			}
			if r.Advise != nil {
				for _, text := range r.Advise(a, nil) {
					got = append(got, "warning: "+text)
				}
			}
			if text := strings.Join(got, "\n"); text != c.want {
				t.Errorf("got\n%s\nwant\n%s", text, c.want)
			}
			if !reflect.DeepEqual(before, a) {
				t.Error("the rule changed the App")
			}
		})
	}
}

func TestNames(t *testing.T) {
	const advice = ": it is no DNS label; give lower case letters, digits and dashes, at most 63, with a letter or a digit at either end"
	long := strings.Repeat("a", 64)
	testRule(t, "Names", []ruleCase{
		{"nothing wanted", `{}`, ""},
		{"labels", `{deploymentTemplate: {name: app-deploy}, serviceTemplate: {name: app-service}}`, ""},
		{"one name for both, which are of two kinds", `{deploymentTemplate: {name: web}, serviceTemplate: {name: web}}`, ""},
		{"the longest", `{serviceTemplate: {name: ` + long[1:] + `}}`, ""},
		{"too long", `{deploymentTemplate: {name: ` + long + `}}`, `spec.deploymentTemplate.name: Invalid value: "` + long + `"` + advice},
		{"a domain", `{deploymentTemplate: {name: web.shop}}`, `spec.deploymentTemplate.name: Invalid value: "web.shop"` + advice},
		{"both wrong", `{deploymentTemplate: {name: Web}, serviceTemplate: {name: web-}}`,
			`spec.deploymentTemplate.name: Invalid value: "Web"` + advice + "\n" + `spec.serviceTemplate.name: Invalid value: "web-"` + advice},
	})
}

func TestImage(t *testing.T) {
	const missing = "spec.deploymentTemplate.image: Required value: the Deployment has a name and no image; give the image of its container, or leave the name out"
	testRule(t, "Image", []ruleCase{
		{"there", `{deploymentTemplate: {name: a, image: nginx}}`, ""},
		{"no Deployment", `{}`, ""},
		{"missing", `{deploymentTemplate: {name: a}}`, missing},
		{"blank", `{deploymentTemplate: {name: a, image: " "}}`, missing},
		{"of nothing", `{deploymentTemplate: {image: nginx}}`,
			"warning: spec.deploymentTemplate.image: nothing runs this image, since deploymentTemplate.name is empty; give the Deployment a name"},
	})
}

func TestReplicas(t *testing.T) {
	testRule(t, "Replicas", []ruleCase{
		{"absent", `{}`, ""},
		{"none", `{deploymentTemplate: {replicas: 0}}`, ""},
		{"negative", `{deploymentTemplate: {replicas: -1}}`, "spec.deploymentTemplate.replicas: Invalid value: -1: it is negative; give 0 or more"},
	})
}

func TestDuplicates(t *testing.T) {
	testRule(t, "Duplicates", []ruleCase{
		{"none", `{deploymentTemplate: {ports: [{containerPort: 80}, {containerPort: 81}], env: [{name: A}, {name: a}]}}`, ""},
		{"one port by two protocols", `{deploymentTemplate: {ports: [{containerPort: 53}, {containerPort: 53, protocol: UDP}]}}`, ""},
		{"one port twice", `{deploymentTemplate: {ports: [{containerPort: 80}, {containerPort: 80, name: b, protocol: TCP}]}}`,
			`spec.deploymentTemplate.ports[1]: Duplicate value: "80/TCP"`},
		{"one variable twice", `{deploymentTemplate: {env: [{name: A, value: a}, {name: A, value: b}]}}`,
			`spec.deploymentTemplate.env[1].name: Duplicate value: "A"`},
	})
}

// TestChildren: another App that names a child is told of; an App is not its own
// rival.
func TestChildren(t *testing.T) {
	rival := read(t, `{serviceTemplate: {name: web}}`)
	rival.Name = "rival"
	mine := read(t, `{deploymentTemplate: {name: web}, serviceTemplate: {name: web}}`)
	naming := func(_ context.Context, kind, namespace, name string) ([]*appv1.App, error) {
		switch kind + "/" + namespace + "/" + name {
		case "Deployment/ns/web":
			return []*appv1.App{mine}, nil
		case "Service/ns/web":
			return []*appv1.App{mine, rival}, nil
		}
		return nil, errors.New("another child")
	}
	got, err := adviseChildren(t.Context(), mine, naming)
	const want = `spec.serviceTemplate.name: the App "rival" names the Service "web" too; only one of them can have it, and the other one is Stalled until the name is free`
	if err != nil || !slices.Equal(got, []string{want}) {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := adviseChildren(t.Context(), read(t, `{deploymentTemplate: {name: x}}`), naming); err == nil || err.Error() != `look for other Apps that name Deployment "x": another child` {
		t.Errorf("got %v", err)
	}
	if got, err := adviseChildren(t.Context(), read(t, `{}`), nil); len(got) > 0 || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}
