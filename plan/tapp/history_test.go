package tapp

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/revision"
)

// remember is an API server that stores what the plan says of revisions.
func (c *cluster) remember(a Action) {
	if a.Op == OpPruneTemplates {
		c.prune(a)
		return
	}
	has := c.history[a.Revision.Name]
	switch a.Op {
	case OpCreateRevision:
		if has != nil {
			return
		}
		r := a.Revision.DeepCopy()
		c.uids++
		r.UID = types.UID(fmt.Sprintf("revision-%d", c.uids))
		c.history[r.Name] = r
	case OpUpdateRevision:
		if has != nil && has.UID == a.UID() {
			data := has.Data
			merge(c.t, has, a.Patch)
			has.Data = data
		}
	case OpDeleteRevision:
		if has != nil && has.UID == a.UID() {
			delete(c.history, a.Revision.Name)
		}
	default:
		c.t.Fatalf("%s of a revision", a.Op)
	}
	c.writes++
}

// assertHistory: the newest revision is what runs, and holds it; none is there
// twice, and no more than allowed.
func (c *cluster) assertHistory() {
	c.t.Helper()
	spec := &defaulted(c.tapp).Spec
	var newest *appsv1.ControllerRevision
	numbers := map[int64]bool{}
	for _, r := range c.history {
		if numbers[r.Revision] {
			c.t.Fatalf("two revisions have the number %d", r.Revision)
		}
		numbers[r.Revision] = true
		if newest == nil || r.Revision > newest.Revision {
			newest = r
		}
	}
	if s := c.tapp.Status; newest == nil || s.CurrentRevision != newest.Name || s.UpdateRevision != newest.Name {
		c.t.Fatalf("current revision %s, update revision %s, and the newest is %v", s.CurrentRevision, s.UpdateRevision, newest)
	}
	if most := int(*spec.RevisionHistoryLimit) + 1; len(c.history) > most {
		c.t.Fatalf("%d revisions, and at most %d are allowed", len(c.history), most)
	}
	held, err := revision.Read(newest)
	if err != nil {
		c.t.Fatal(err)
	}
	is, _ := held.Hash()
	want, _ := revision.Of(c.tapp).Hash()
	if is != want || newest.Name != "web-"+want {
		c.t.Fatalf("revision %s holds the version %s, and the spec is %s", newest.Name, is, want)
	}
}

func TestVersionHash(t *testing.T) {
	base := func() *tappv1.TApp {
		return &tappv1.TApp{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: tappv1.TAppSpec{
			Template:     templateOf("web:1"),
			TemplatePool: map[string]corev1.PodTemplateSpec{"blue": templateOf("blue:1")},
			Templates:    map[string]string{"1": "blue"},
		}}
	}
	hash := func(change func(*tappv1.TAppSpec)) string {
		t.Helper()
		tapp := base()
		change(&tapp.Spec)
		h, err := revision.Of(tapp).Hash()
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	golden := hash(func(*tappv1.TAppSpec) {})
	if want := "97146c84be2d34f9"; golden != want {
		t.Errorf("the hash is %s, and was %s: revisions that are stored would no longer be found", golden, want)
	}
	for name, change := range map[string]func(*tappv1.TAppSpec){
		"replicas":  func(s *tappv1.TAppSpec) { s.Replicas = new(int32(9)) },
		"ordinals":  func(s *tappv1.TAppSpec) { s.Ordinals = &tappv1.Ordinals{Start: 5} },
		"killed":    func(s *tappv1.TAppSpec) { s.Statuses = map[string]tappv1.InstanceStatus{"0": tappv1.InstanceKilled} },
		"default":   func(s *tappv1.TAppSpec) { s.DefaultTemplateName = "default" },
		"stamped":   func(s *tappv1.TAppSpec) { s.Template.Labels[tappv1.LabelTemplateHash] = "v1-0123456789abcdef" },
		"no entry":  func(s *tappv1.TAppSpec) { s.Templates["3"] = "" },
		"empty env": func(s *tappv1.TAppSpec) { s.Template.Spec.Containers[0].Env = []corev1.EnvVar{} },
	} {
		if h := hash(change); h != golden {
			t.Errorf("%s: another version, %s", name, h)
		}
	}
	for name, change := range map[string]func(*tappv1.TAppSpec){
		"image":        func(s *tappv1.TAppSpec) { s.Template.Spec.Containers[0].Image = "web:2" },
		"label":        func(s *tappv1.TAppSpec) { s.Template.Labels["tier"] = "front" },
		"pool":         func(s *tappv1.TAppSpec) { s.TemplatePool["blue"] = templateOf("blue:2") },
		"assignment":   func(s *tappv1.TAppSpec) { s.Templates["2"] = "blue" },
		"default name": func(s *tappv1.TAppSpec) { s.DefaultTemplateName = "blue" },
	} {
		if h := hash(change); h == golden {
			t.Errorf("%s: the same version", name)
		}
	}
}

func TestHistory(t *testing.T) {
	hash, err := revision.Of(historic(nil)).Hash()
	if err != nil {
		t.Fatal(err)
	}
	now := "web-" + hash
	revision := func(name string, number int64, owner types.UID) *appsv1.ControllerRevision {
		r := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)}, Revision: number}
		if owner != "" {
			r.OwnerReferences = []metav1.OwnerReference{{UID: owner, Controller: new(true)}}
		}
		return r
	}
	for name, c := range map[string]struct {
		limit     *int32
		stored    string // status.updateRevision of the current generation
		revisions []*appsv1.ControllerRevision
		want      []string
	}{
		"first":                 {want: []string{"CreateRevision " + now + " 1"}},
		"next":                  {revisions: []*appsv1.ControllerRevision{revision("web-a", 4, "tapp")}, want: []string{"CreateRevision " + now + " 5"}},
		"recorded":              {revisions: []*appsv1.ControllerRevision{revision(now, 4, "tapp")}},
		"known by the status":   {stored: now, revisions: []*appsv1.ControllerRevision{revision(now, 4, "tapp")}},
		"deleted by somebody":   {stored: now, want: []string{"CreateRevision " + now + " 1"}},
		"rolled back":           {revisions: []*appsv1.ControllerRevision{revision("web-a", 4, "tapp"), revision(now, 2, "tapp")}, want: []string{"UpdateRevision " + now + ` {"metadata":{"ownerReferences":[{"apiVersion":"apps.tkestack.io/v1","kind":"TApp","name":"web","uid":"tapp","controller":true,"blockOwnerDeletion":true}],"uid":"uid-` + now + `"},"revision":5}`}},
		"of an earlier TApp":    {revisions: []*appsv1.ControllerRevision{revision(now, 2, "")}, want: []string{"UpdateRevision " + now + ` {"metadata":{"ownerReferences":[{"apiVersion":"apps.tkestack.io/v1","kind":"TApp","name":"web","uid":"tapp","controller":true,"blockOwnerDeletion":true}],"uid":"uid-` + now + `"},"revision":2}`}},
		"of another owner":      {revisions: []*appsv1.ControllerRevision{revision("web-x", 9, "other")}, want: []string{"CreateRevision " + now + " 1"}},
		"too many":              {limit: new(int32(1)), revisions: []*appsv1.ControllerRevision{revision(now, 4, "tapp"), revision("web-c", 3, "tapp"), revision("web-a", 1, "tapp"), revision("web-b", 2, "tapp")}, want: []string{"DeleteRevision web-a 1", "DeleteRevision web-b 2"}},
		"none but what is used": {limit: new(int32(0)), stored: now, revisions: []*appsv1.ControllerRevision{revision(now, 4, "tapp"), revision("web-current", 3, "tapp"), revision("web-a", 1, "tapp")}, want: []string{"DeleteRevision web-a 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := Input{TApp: historic(c.limit), Revisions: c.revisions, Now: ago(0).Time}
			if c.stored != "" {
				in.TApp.Status = tappv1.TAppStatus{ObservedGeneration: in.TApp.Generation, UpdateRevision: c.stored, CurrentRevision: "web-current"}
			}
			p := Compute(in)
			var got []string
			for _, a := range p.History {
				tail := fmt.Sprint(a.Revision.Revision)
				if a.Patch != nil {
					tail = string(a.Patch)
				}
				got = append(got, fmt.Sprintf("%s %s %s", a.Op, a.Revision.Name, tail))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
			if p.Status.UpdateRevision != now {
				t.Errorf("update revision %s, not %s", p.Status.UpdateRevision, now)
			}
		})
	}
}

func historic(limit *int32) *tappv1.TApp {
	return &tappv1.TApp{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "tapp", Generation: 3},
		Spec: tappv1.TAppSpec{Template: templateOf("web:1"), RevisionHistoryLimit: limit}}
}

// A revision holds all that it takes to roll back, and nothing that admission or
// the API server would refuse.
func TestRevisionHoldsTheVersion(t *testing.T) {
	tapp := historic(nil)
	tapp.Spec.TemplatePool = map[string]corev1.PodTemplateSpec{"blue": templateOf("blue:1")}
	tapp.Spec.Templates = map[string]string{"0": "blue"}
	tapp.Spec.Template.Labels[tappv1.LabelUniqHash] = "stamped"
	p := Compute(Input{TApp: tapp, Now: ago(0).Time})
	r := p.History[0].Revision
	if want := map[string]string{tappv1.LabelTApp: "web", appsv1.ControllerRevisionHashLabelKey: strings.TrimPrefix(r.Name, "web-")}; !reflect.DeepEqual(r.Labels, want) {
		t.Errorf("labels %v, not %v", r.Labels, want)
	}
	v, err := revision.Read(r)
	if err != nil {
		t.Fatal(err)
	}
	if want := revision.Of(tapp); !reflect.DeepEqual(v, want) {
		t.Errorf("it holds %+v, not %+v", v, want)
	}
	if _, stamped := v.Template.Labels[tappv1.LabelUniqHash]; stamped {
		t.Error("it holds stamped hashes")
	}
	_, err = revision.Read(&appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: "web-1"}, Data: runtime.RawExtension{Raw: []byte("no")}})
	if want := "revision web-1 cannot be read: invalid character 'o' in literal null (expecting 'u')"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// TestRevisionDataIsOrdered: a patch by the API server brings JSON into the order of a
// map, and the data of a revision may not change by that.
func TestRevisionDataIsOrdered(t *testing.T) {
	v := revision.Version{DefaultTemplateName: "default", Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "a<b"}}}}}
	got, err := v.Data()
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"spec":{"defaultTemplateName":"default","template":{"metadata":{},"spec":{"containers":[{"image":"a\u003cb","name":"web","resources":{}}]}}}}`
	if string(got) != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
