package tapp

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// TestRevisionsAreReadOnce: live, and again when there is one whose data is not known; one
// that somebody deleted since is not among them.
func TestRevisionsAreReadOnce(t *testing.T) {
	stored := []string{"a-1", "a-2"}
	api := &stub{answer: func(_, path, _ string) (int, any) {
		list := appsv1.ControllerRevisionList{TypeMeta: metav1.TypeMeta{Kind: "ControllerRevisionList", APIVersion: "apps/v1"}}
		for _, name := range stored {
			list.Items = append(list.Items, appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Data: runtime.RawExtension{Raw: []byte(`{"of":"` + name + `"}`)}})
		}
		if path != "/apis/apps/v1/namespaces/ns/controllerrevisions" {
			return apiError(404, metav1.StatusReasonNotFound, "nothing is at "+path)
		}
		return 200, list
	}}
	c := api.newController(t)
	o := &object{}
	for _, step := range []struct {
		about  string
		cached []string // of which the cache has no data
		want   []string
		reads  int
	}{
		{"at first", []string{"a-1"}, []string{"a-1", "a-2"}, 1},
		{"again", []string{"a-1", "a-2"}, []string{"a-1", "a-2"}, 1},
		{"one is deleted", []string{"a-2"}, []string{"a-2"}, 1},
		{"another one is new", []string{"a-2", "a-3"}, []string{"a-2", "a-3"}, 2},
	} {
		if step.reads == 2 {
			stored = []string{"a-2", "a-3"}
		}
		v := &view{tapp: someTApp("a")}
		for _, name := range step.cached {
			v.revisions = append(v.revisions, &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}})
		}
		read, err := c.readRevisions(t.Context(), v, o)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, r := range read {
			names = append(names, r.Name)
			if string(r.Data.Raw) != `{"of":"`+r.Name+`"}` {
				t.Errorf("%s: the data of %s is %s", step.about, r.Name, r.Data.Raw)
			}
		}
		if !slices.Equal(names, step.want) || len(api.asked()) != step.reads {
			t.Errorf("%s: got %q after %d reads, want %q after %d", step.about, names, len(api.asked()), step.want, step.reads)
		}
		for _, r := range v.revisions {
			if r.Data.Raw != nil {
				t.Errorf("%s: what is cached was changed", step.about)
			}
		}
	}
}
