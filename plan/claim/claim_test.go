package claim

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

func templates(names ...string) (out []corev1.PersistentVolumeClaim) {
	for _, name := range names {
		out = append(out, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return out
}

// db makes data-eu-db-<id>, and so do TApp eu-db, and StatefulSet db in "a set of our name".
func db() *tappv1.TApp {
	return &tappv1.TApp{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "new"}, Spec: tappv1.TAppSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}, VolumeClaimTemplates: templates("data-eu")}}
}

func other(name, app string, names ...string) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("set-" + name)}, Spec: appsv1.StatefulSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}, VolumeClaimTemplates: templates(names...)}}
}

// The rows are those of "Names prove nothing": an upgrade from a version without marks,
// claims that were retained, restored or made by hand, and two workloads with one name.
func TestJudge(t *testing.T) {
	const instance = tappv1.LabelInstanceID
	ours, theirs := map[string]string{instance: "1", "app": "db"}, map[string]string{instance: "1", "app": "eu-db"}
	alone := map[string][]Workload{"db": {OfTApp(db())}, "eu-db": {}}
	eu := db()
	eu.Name, eu.UID, eu.Spec.Selector.MatchLabels, eu.Spec.VolumeClaimTemplates = "eu-db", "eu", map[string]string{"app": "eu-db"}, templates("data")
	both := map[string][]Workload{"db": {OfTApp(db())}, "eu-db": {OfTApp(eu)}}
	sets := func(s *appsv1.StatefulSet) map[string][]Workload {
		return map[string][]Workload{"db": {}, "eu-db": {}, s.Name: {OfStatefulSet(s)}}
	}
	found := Verdict{Use: Ours, Found: true}
	taken := func(why string) Verdict {
		return Verdict{Use: Taken, Why: "there is a claim data-eu-db-1 " + why}
	}
	for name, c := range map[string]struct {
		mark   string
		found  bool
		owner  string
		labels map[string]string
		others map[string][]Workload
		want   Verdict
	}{
		"marked as ours":                              {mark: "TApp/db/new", labels: ours, want: Verdict{Use: Ours, Marked: true, Proven: true}},
		"marked as ours, without labels":              {mark: "TApp/db/new", want: Verdict{Use: Ours, Marked: true, Proven: true}},
		"marked as ours, labels of another":           {mark: "TApp/db/new", labels: theirs, others: both, want: Verdict{Use: Ours, Marked: true, Proven: true}},
		"found":                                       {mark: "TApp/db/new", found: true, want: Verdict{Use: Ours, Marked: true, Found: true}},
		"found, and ours to control":                  {mark: "TApp/db/new", found: true, owner: "new", want: Verdict{Use: Ours, Marked: true, Proven: true}},
		"found by a dead namesake":                    {mark: "TApp/db/old", found: true, want: found},
		"retained by a dead namesake":                 {mark: "TApp/db/old", labels: ours, want: Verdict{Use: Ours}},
		"restored with the mark, no labels":           {mark: "TApp/db/old", want: Verdict{Use: Ours}},
		"marked as another's":                         {mark: "TApp/eu-db/eu", labels: ours, want: taken("of TApp eu-db, and not of TApp db, as its annotation tkestack.io/claim-of says")},
		"marked as another kind's":                    {mark: "StatefulSet/db/new", want: taken("of StatefulSet db, and not of TApp db, as its annotation tkestack.io/claim-of says")},
		"controlled by another":                       {mark: "TApp/db/new", labels: ours, owner: "old", want: taken("that TApp db controls (UID old), and not TApp db (UID new)")},
		"controlled by us":                            {owner: "new", want: Verdict{Use: Ours, Proven: true}},
		"controlled by us, marked as theirs":          {owner: "new", mark: "TApp/eu-db/eu", want: taken("of TApp eu-db, and not of TApp db, as its annotation tkestack.io/claim-of says")},
		"of an earlier version":                       {labels: ours, want: Verdict{Use: Ours}},
		"restored without labels":                     {others: both, want: found},
		"with the instance's label alone":             {labels: map[string]string{instance: "1"}, others: both, want: found},
		"with labels, and not the instance's":         {labels: map[string]string{"app": "db"}, want: Verdict{Use: Ours}},
		"of another instance":                         {labels: map[string]string{instance: "7", "app": "db"}, want: found},
		"nobody was asked yet":                        {labels: theirs, want: Verdict{Use: Unclear, Unread: []string{"eu-db", "db"}}},
		"one was not asked yet":                       {labels: theirs, others: map[string][]Workload{"db": {}}, want: Verdict{Use: Unclear, Unread: []string{"eu-db"}}},
		"one was not asked, another has it":           {labels: theirs, others: map[string][]Workload{"eu-db": {OfTApp(eu)}}, want: byLabels()},
		"labels of another, which is gone":            {labels: theirs, others: alone, want: found},
		"labels of another TApp":                      {labels: theirs, others: both, want: byLabels()},
		"labels of another TApp, not the instance's":  {labels: map[string]string{"app": "eu-db"}, others: both, want: byLabels()},
		"labels of another TApp, and we control it":   {labels: theirs, owner: "new", others: both, want: byLabels()},
		"labels that nobody selects":                  {labels: map[string]string{instance: "1", "team": "blue"}, others: both, want: found},
		"labels of a StatefulSet":                     {labels: map[string]string{"app": "eu-db"}, others: sets(other("eu-db", "eu-db", "data")), want: taken("with the labels of StatefulSet eu-db, and not of TApp db, and both make that name")},
		"labels of a set of our name":                 {labels: map[string]string{"app": "set"}, others: sets(other("db", "set", "data-eu")), want: taken("with the labels of StatefulSet db, and not of TApp db, and both make that name")},
		"labels of a set that makes other names":      {labels: map[string]string{"app": "eu-db"}, others: sets(other("eu-db", "eu-db", "logs")), want: found},
		"a mark that is none, and labels of the TApp": {mark: "db", labels: ours, want: Verdict{Use: Ours}},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-eu-db-1", Labels: c.labels, Annotations: map[string]string{}}}
			if c.mark != "" {
				claim.Annotations[tappv1.AnnotationClaimOf] = c.mark
			}
			if c.found {
				claim.Annotations[tappv1.AnnotationClaimFound] = "true"
			}
			if c.owner != "" {
				claim.OwnerReferences = []metav1.OwnerReference{{Kind: "TApp", Name: "db", UID: types.UID(c.owner), Controller: new(true)}}
			}
			us := OfTApp(db())
			got := us.Judge(claim, "1", c.others)
			if got.Use != c.want.Use || got.Why != c.want.Why || got.Marked != c.want.Marked || got.Proven != c.want.Proven || got.Found != c.want.Found || !slices.Equal(got.Unread, c.want.Unread) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func byLabels() Verdict {
	return Verdict{Use: Taken, Why: "there is a claim data-eu-db-1 with the labels of TApp eu-db, and not of TApp db, and both make that name"}
}

// TestSelectorWithoutLabels: a TApp whose selector has expressions only gives its claims no
// labels, so that none is the TApp's by them.
func TestSelectorWithoutLabels(t *testing.T) {
	tapp := db()
	tapp.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"db"}}}}
	us := OfTApp(tapp)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-eu-db-1", Labels: map[string]string{tappv1.LabelInstanceID: "1"}}}
	if v := us.Judge(claim, "1", nil); v.Use != Ours || !v.Found {
		t.Errorf("%+v", v)
	}
	if v := us.Judge(us.New(&templates("data-eu")[0], "shop", "data-eu-db-1", "1"), "1", nil); !v.Proven {
		t.Errorf("one that it makes: %+v", v)
	}
}

// TestMakers: the workloads that can make a claim of a name.
func TestMakers(t *testing.T) {
	for claim, want := range map[string][]string{
		"data-web-0": {"web"}, "data-eu-db-12": {"eu-db", "db"}, "a-b-c-d-3": {"b-c-d", "c-d", "d"}, "web-0": nil, "web": nil, "data--0": nil, "": nil,
	} {
		if got := makers(claim); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", claim, got, want)
		}
	}
}

// TestWrites: what is new is marked by its creation; what is there by one write.
func TestWrites(t *testing.T) {
	us := OfTApp(db())
	template := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-eu", Labels: map[string]string{"app": "x", "tier": "gold"},
		Annotations: map[string]string{"a": "b", tappv1.AnnotationClaimOf: "TApp/x/y", tappv1.AnnotationClaimFound: "true"}}}
	made := us.New(&template, "shop", "data-eu-db-1", "1")
	if len(made.Annotations) != 2 || made.Annotations[tappv1.AnnotationClaimOf] != "TApp/db/new" || made.Annotations["a"] != "b" {
		t.Errorf("annotations %v", made.Annotations)
	}
	if len(made.Labels) != 3 || made.Labels["app"] != "db" || made.Labels["tier"] != "gold" || made.Labels[tappv1.LabelInstanceID] != "1" {
		t.Errorf("labels %v", made.Labels)
	}
	has := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{UID: "u1", ResourceVersion: "7"}}
	const marks = `"annotations":{"tkestack.io/claim-of":"TApp/db/new"}`
	for name, c := range map[string]struct {
		labels map[string]string
		v      Verdict
		patch  string
	}{
		"labelled":   {map[string]string{tappv1.LabelInstanceID: "1"}, Verdict{}, `{"metadata":{` + marks + `,"resourceVersion":"7","uid":"u1"}}`},
		"unlabelled": {nil, Verdict{}, `{"metadata":{` + marks + `,"labels":{"tapp_instance_key":"1"},"resourceVersion":"7","uid":"u1"}}`},
		"found": {nil, Verdict{Found: true}, `{"metadata":{"annotations":{"tkestack.io/claim-found":"true","tkestack.io/claim-of":"TApp/db/new"},` +
			`"labels":{"tapp_instance_key":"1"},"resourceVersion":"7","uid":"u1"}}`},
	} {
		has.Labels = c.labels
		if got, _ := us.Take(has, "1", c.v); string(got) != c.patch {
			t.Errorf("%s: %s, want %s", name, got, c.patch)
		}
	}
}

func TestKept(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  string
	}{
		{nil, ""},
		{[]string{"a", "b"}, "; claims that were there before the TApp are kept, though whenScaled is Delete: a, b"},
		{[]string{"a", "b", "c", "d", "e"}, "; claims that were there before the TApp are kept, though whenScaled is Delete: a, b, c and 2 more"},
	} {
		if got := Kept(c.names); got != c.want {
			t.Errorf("%q: %q", c.names, got)
		}
	}
}

// TestCollisions: db with template data-eu, and eu-db with template data.
func TestCollisions(t *testing.T) {
	us, other := Workload{Name: "db", Templates: []string{"logs", "data-eu"}}, Workload{Name: "eu-db", Templates: []string{"data", "logs"}}
	if got := us.Collisions(&other); !slices.Equal(got, []Collision{{"data-eu", "data", "data-eu-db"}}) {
		t.Errorf("%+v", got)
	}
	if got := other.Collisions(&us); !slices.Equal(got, []Collision{{"data", "data-eu", "data-eu-db"}}) {
		t.Errorf("the other way: %+v", got)
	}
	if got := us.Collisions(&us); got != nil {
		t.Errorf("with itself: %+v", got)
	}
}
