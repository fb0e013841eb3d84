package plugin

import (
	"encoding/json"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/revision"
	plan "tkestack.io/tapp/plan/tapp"
	"tkestack.io/tapp/plan/view"
	"tkestack.io/tapp/plugin/migrate"
	"tkestack.io/tapp/test/gen"
)

// TestClean: what others wrote cannot steer a terminal.
func TestClean(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "",
		"back-off, 1 of 2 (ü, 日本, 🙂)":     "back-off, 1 of 2 (ü, 日本, 🙂)",
		"a\tb":                            "a\tb",
		"\x1b[2J\x1b]0;title\a":           `\x1b[2J\x1b]0;title\a`,
		"a\r\nb":                          `a\r\nb`,
		"del\x7f, c1 \u009b31m":           `del\x7f, c1 \u009b31m`,
		"evil \u202egnp.exe\u2069 \u200b": `evil \u202egnp.exe\u2069 \u200b`,
		"broken \xff":                     "broken \ufffd",
	} {
		if got := clean(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	var grid table
	grid.add("NAME\x1b[1m", "AGE")
	var b strings.Builder
	if err := grid.print(&b, true); err != nil || b.String() != "NAME\\x1b[1m   AGE\n" {
		t.Errorf("%q, %v", b.String(), err)
	}
	if got := painter(true).paint(red, "a\x1b[0m"); got != "\x1b[31ma\\x1b[0m\x1b[0m" {
		t.Errorf("%q", got)
	}
	if got := string(colouredDiff([]byte("+a\x1b[1m\n b\n"), false)); got != "+a\\x1b[1m\n b\n" {
		t.Errorf("%q", got)
	}
}

// TestCleanMessages: a container's message in a plan and in an explanation.
func TestCleanMessages(t *testing.T) {
	var b strings.Builder
	v := preview{Preview: &view.Preview{Name: "web", Problems: []string{"\x1b[2Jproblem"}, First: []view.FirstAction{{Op: plan.OpDelete, IDs: []int{0}, Reason: "Because", Why: "\x1b[2Jwhy"}}}}
	v.print(&b, false)
	if strings.Contains(b.String(), "\x1b") || !strings.Contains(b.String(), `\x1b[2Jwhy`) || !strings.Contains(b.String(), `\x1b[2Jproblem`) {
		t.Errorf("%q", b.String())
	}
}

// TestVerify: undo runs only what the controller recorded.
func TestVerify(t *testing.T) {
	version := revision.Of(webTApp(1))
	hash, err := version.Hash()
	if err != nil {
		t.Fatal(err)
	}
	r := func(name string, v revision.Version) *view.Stored {
		return &view.Stored{ControllerRevision: &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: name}, Revision: 3}, Version: v}
	}
	if err := verify(r("web-"+hash, version)); err != nil {
		t.Error(err)
	}
	other := revision.Of(webTApp(1, withImage("evil:1")))
	otherHash, _ := other.Hash()
	want := "revision 3 (web-" + hash + ") does not hold what its name says: its content has the hash " + otherHash + ", so that it was not written by the controller, or was changed"
	if err := verify(r("web-"+hash, other)); err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
	if err := verify(r(hash, version)); err == nil {
		t.Error("a name that no TApp gives")
	}
}

// TestBack prints the StatefulSet that a TApp was made from, and nothing else.
func TestBack(t *testing.T) {
	for _, c := range []struct {
		about, args, err string
		code             int
		edit             func(*appsv1.StatefulSet)
	}{
		{about: "good", args: "tapp/web"},
		{about: "another kind", args: "tapp/web", code: 1, edit: func(s *appsv1.StatefulSet) {
			s.Kind, s.APIVersion = "ClusterRoleBinding", "rbac.authorization.k8s.io/v1"
		},
			err: `error: the annotation tkestack.io/migrated-statefulset of TApp web is not what the migration wrote: it holds a ClusterRoleBinding "web" of rbac.authorization.k8s.io/v1 in namespace "shop", and not StatefulSet "web" in namespace "shop"` + "\n"},
		{about: "another namespace", args: "tapp/web", code: 1, edit: func(s *appsv1.StatefulSet) { s.Namespace = "kube-system" },
			err: `error: the annotation tkestack.io/migrated-statefulset of TApp web is not what the migration wrote: it holds a StatefulSet "web" of apps/v1 in namespace "kube-system", and not StatefulSet "web" in namespace "shop"` + "\n"},
		{about: "another name", args: "tapp/web", code: 1, edit: func(s *appsv1.StatefulSet) { s.Name = "db" },
			err: `error: the annotation tkestack.io/migrated-statefulset of TApp web is not what the migration wrote: it holds a StatefulSet "db" of apps/v1 in namespace "shop", and not StatefulSet "web" in namespace "shop"` + "\n"},
		{about: "no TApp", args: "sts/web", code: 1, err: `error: "sts/web" names no TApp; give tapp/NAME with --back` + "\nSee 'kubectl tapp migrate --help' for usage.\n"},
	} {
		tapp, err := migrate.Convert(gen.RolledOut())
		if err != nil {
			t.Fatal(err)
		}
		if c.edit != nil {
			set := migrate.ManifestOf(gen.RolledOut())
			c.edit(set)
			text, _ := json.Marshal(set)
			tapp.Annotations[migrate.AnnotationManifest] = string(text)
		}
		serve(t, map[string]any{tappsPath + "/web": tapp})
		code, out, errOut := run(t, program, "migrate", c.args, "--back")
		if code != c.code || errOut != c.err {
			t.Errorf("%s: exit code %d\n%s", c.about, code, errOut)
		}
		var set appsv1.StatefulSet
		if c.code == 0 {
			if err := json.Unmarshal([]byte(out), &set); err != nil || set.Kind != "StatefulSet" || set.Name != "web" || set.Namespace != tapp.Namespace {
				t.Errorf("%s: %v\n%s", c.about, err, out)
			}
		} else if out != "" {
			t.Errorf("%s: printed %s", c.about, out)
		}
	}
	plain := webTApp(1)
	plain.SetGroupVersionKind(tappv1.GroupVersionKind())
	serve(t, map[string]any{tappsPath + "/web": runtime.Object(plain)})
	if code, _, errOut := run(t, program, "migrate", "tapp/web", "--back"); code != 1 || errOut != "error: TApp web was not made from a StatefulSet\n" {
		t.Errorf("%d, %s", code, errOut)
	}
}
