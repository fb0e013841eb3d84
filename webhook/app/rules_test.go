package app

import (
	"reflect"
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
