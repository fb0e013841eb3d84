package plugin

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/revision"
	plan "tkestack.io/tapp/plan/tapp"
	"tkestack.io/tapp/plan/view"
)

func TestIsName(t *testing.T) {
	for path, want := range map[string]bool{
		"kubectl-tapp": true, "/usr/local/bin/kubectl-tapp": true, "bin/kubectl_complete-tapp": true,
		"tapp": false, "tapp-controller": false, "kubectl": false, "/kubectl-tapp/tapp": false,
	} {
		if got := IsName(path); got != want {
			t.Errorf("%s: %t", path, got)
		}
	}
}

// TestMain's exit codes are those of kubectl: 0, and 1 with the error.
func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		args     []string
		code     int
		out, err string // the beginning
	}{
		{[]string{"kubectl-tapp"}, 0, "See and steer the instances of TApps.", ""},
		{[]string{"kubectl-tapp", "--version"}, 0, "kubectl tapp version v1.2.3\n", ""},
		{[]string{"kubectl-tapp", "completion"}, 0, "#!/bin/sh\n", ""},
		{[]string{"kubectl_complete-tapp", "comp"}, 0, "completion\tPrint the program that completes command lines\n:4\n", "Completion ended"},
		{[]string{"kubectl-tapp", "destroy"}, 1, "", "error: there is no command \"destroy\"\nSee 'kubectl tapp --help' for usage.\n"},
		{[]string{"kubectl-tapp", "pause"}, 1, "", "error: NAME is missing\nSee 'kubectl tapp pause --help' for usage.\n"},
		{[]string{"kubectl-tapp", "pause", "web", "--kubeconfig", "nowhere"}, 1, "", "error: reading the kubeconfig: stat nowhere: no such file or directory\n"},
	} {
		var out, errOut bytes.Buffer
		code := Main(t.Context(), "v1.2.3", c.args, Streams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut})
		if code != c.code || !strings.HasPrefix(out.String(), c.out) || !strings.HasPrefix(errOut.String(), c.err) || c.err == "" && errOut.Len() > 0 {
			t.Errorf("%v: exit code %d, printed %q, errors %q", c.args, code, out.String(), errOut.String())
		}
	}
}

func tappOf(replicas int32) *tappv1.TApp {
	return &tappv1.TApp{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "tapp"}, Spec: tappv1.TAppSpec{Replicas: &replicas}}
}

func TestParseIDs(t *testing.T) {
	for _, c := range []struct {
		args     []string
		replicas int32
		want     []int
		err      string
	}{
		{[]string{"0"}, 5, []int{0}, ""},
		{[]string{"0-3,7"}, 8, []int{0, 1, 2, 3, 7}, ""},
		{[]string{"7", "0-1", "1,0"}, 8, []int{0, 1, 7}, ""},
		{[]string{"2-2"}, 5, []int{2}, ""},
		{[]string{"5"}, 5, nil, "there is no instance 5 of web: its instances are 0-4"},
		{[]string{"0-99999999999999999999"}, 5, nil, `"0-99999999999999999999" is neither an instance id nor a range of ids; give for example 0-3,7`},
		{[]string{"0-2000000000"}, 5, nil, "there is no instance 2000000000 of web: its instances are 0-4"},
		{[]string{"0"}, 0, nil, "there is no instance 0 of web: spec.replicas is 0"},
		{[]string{"3-1"}, 5, nil, `"3-1" is no range of ids: it ends before it begins`},
		{[]string{"1-"}, 5, nil, `"1-" is neither an instance id nor a range of ids; give for example 0-3,7`},
		{[]string{"01"}, 5, nil, `"01" is neither an instance id nor a range of ids; give for example 0-3,7`},
		{[]string{"0,"}, 5, nil, `"" is neither an instance id nor a range of ids; give for example 0-3,7`},
		{[]string{"one"}, 5, nil, `"one" is neither an instance id nor a range of ids; give for example 0-3,7`},
	} {
		got, err := parseIDs(tappOf(c.replicas), c.args)
		if !slices.Equal(got, c.want) || fmt.Sprint(err) != c.err && (err != nil || c.err != "") {
			t.Errorf("%q: got %v, %v", c.args, got, err)
		}
	}
}

func TestFieldChanges(t *testing.T) {
	containers := func(c ...corev1.Container) corev1.PodSpec { return corev1.PodSpec{Containers: c} }
	for _, c := range []struct {
		name     string
		from, to any
		want     []string
	}{
		{"nothing", containers(corev1.Container{Name: "a"}), containers(corev1.Container{Name: "a"}), nil},
		{"absent, null and empty are one", map[string]any{"a": nil, "b": map[string]any{}}, map[string]any{"c": []any{}}, nil},
		{"by name, not by position", containers(corev1.Container{Name: "a", Image: "a:1"}, corev1.Container{Name: "b"}),
			containers(corev1.Container{Name: "b"}, corev1.Container{Name: "a", Image: "a:2"}), []string{"x.containers[a].image: a:1 -> a:2"}},
		{"a new entry is one change", containers(corev1.Container{Name: "a"}), containers(corev1.Container{Name: "a"}, corev1.Container{Name: "b", Image: "b:1"}),
			[]string{`x.containers[b]: <none> -> {"image":"b:1","name":"b","resources":{}}`}},
		{"plain values of a new map are one each", map[string]any{}, map[string]any{"templates": map[string]any{"1": "blue", "0": ""}},
			[]string{`x.templates[0]: <none> -> ""`, "x.templates[1]: <none> -> blue"}},
		{"lists without names go by position", map[string]any{"args": []any{"a", "b"}}, map[string]any{"args": []any{"a", "c", 3}},
			[]string{"x.args[1]: b -> c", "x.args[2]: <none> -> 3"}},
		{"a name that is there twice", map[string]any{"l": []any{map[string]any{"name": "a"}, map[string]any{"name": "a"}}}, map[string]any{"l": []any{map[string]any{"name": "a"}}},
			[]string{`x.l: [{"name":"a"},{"name":"a"}] -> [{"name":"a"}]`}},
		{"another kind of value", map[string]any{"a": 1}, map[string]any{"a": map[string]any{"b": true}}, []string{`x.a: 1 -> {"b":true}`}},
		{"claim templates", []any{map[string]any{"metadata": map[string]any{"name": "data"}, "size": 1}}, []any{map[string]any{"metadata": map[string]any{"name": "data"}, "size": 2}},
			[]string{"x[data].size: 1 -> 2"}},
	} {
		changes, err := view.Changes("x", c.from, c.to)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, change := range changes {
			got = append(got, change.String())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// The hashes that admission stamps into templates are no change of their own.
func TestPreviewLeavesStampsOut(t *testing.T) {
	o := observed{Observed: view.Observe(plan.Input{TApp: &tappv1.TApp{}})}
	o.TApp.Spec.Template.Labels = map[string]string{"app": "web", tappv1.LabelTemplateHash: "v1-2", tappv1.LabelUniqHash: "v1-2"}
	before := o.TApp.DeepCopy()
	before.Spec.Template.Labels = map[string]string{"app": "shop", tappv1.LabelTemplateHash: "v1-1", tappv1.LabelUniqHash: "v1-1"}
	f, err := newPreview(&o, before)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Changes) != 1 || f.Changes[0].Path != "spec.template.metadata.labels[app]" {
		t.Errorf("changes %v", f.Changes)
	}
}

func TestSummary(t *testing.T) {
	version := func(image string, templates map[string]string) revision.Version {
		var v revision.Version
		v.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: image}}
		v.Templates = templates
		return v
	}
	long := version("web:1", nil)
	long.Template.Spec.Containers = append(long.Template.Spec.Containers, corev1.Container{Name: "log", Image: "a.registry.example/with/a/long/name:v1.2.3-alpha.4"})
	for _, c := range []struct {
		from, to revision.Version
		want     string
	}{
		{version("web:1", nil), version("web:1", nil), "nothing"},
		{version("web:1", nil), version("web:2", nil), "template.spec.containers[web].image: web:1 -> web:2"},
		{version("web:1", nil), long, "template.spec.containers[log] is new"},
		{long, version("web:1", nil), "template.spec.containers[log] is gone"},
		{version("web:1", nil), version("web:1", map[string]string{"0": "a", "1": "a", "2": "a", "3": "a", "4": "a"}),
			"templates[0]: <none> -> a; templates[1]: <none> -> a; templates[2]: <none> -> a; 2 more"},
	} {
		if got, err := view.Summary(c.from, c.to); err != nil || got != c.want {
			t.Errorf("got %q, %v, want %q", got, err, c.want)
		}
	}
}
