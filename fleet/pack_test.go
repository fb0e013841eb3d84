package fleet

import (
	"fmt"
	"reflect"
	"runtime"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// partOf an AppSet in a cluster, decoded anew each time.
func partOf(name, cluster, image string, revisions ...string) *v1beta1.AdvDeployment {
	o := &v1beta1.AdvDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "uid-1", Labels: map[string]string{"app": name}}}
	o.Spec.PodSpec.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: image}}}}
	for _, r := range revisions {
		o.Spec.Revisions = append(o.Spec.Revisions, v1beta1.Revision{Name: r, Content: apiruntime.RawExtension{Raw: []byte(`"` + r + `"`)}})
	}
	o.Spec.Topology.PodSets = []v1beta1.PlacedPodSet{{PodSetSpec: v1beta1.PodSetSpec{Name: "a", Meta: map[string]string{"cluster": cluster}}}}
	return o
}

// TestPack: what parts of one name have in common is there once, and each says what it said before.
func TestPack(t *testing.T) {
	const name = "web"
	for _, c := range []struct {
		name string
		// parts as they come, and for the last of them the index of the part whose template it
		// has, and of the one whose revisions have its first; -1: none.
		parts              []*v1beta1.AdvDeployment
		template, revision int
	}{
		{"the same in two clusters", []*v1beta1.AdvDeployment{partOf(name, "one", "a", "r1"), partOf(name, "two", "a", "r1")}, 0, 0},
		{"another content", []*v1beta1.AdvDeployment{partOf(name, "one", "a", "r1"), partOf(name, "two", "b", "r2")}, -1, -1},
		{"another template, a revision that stands elsewhere", []*v1beta1.AdvDeployment{partOf(name, "one", "a", "r2", "r1"), partOf(name, "two", "b", "r1")}, -1, 0},
		{"in the midst of a rollout", []*v1beta1.AdvDeployment{partOf(name, "one", "a"), partOf(name, "two", "b", "r1"), partOf(name, "three", "a"), partOf(name, "four", "b", "r1")}, 1, 1},
		{"another name", []*v1beta1.AdvDeployment{partOf("db", "one", "a", "r1"), partOf(name, "two", "a", "r1")}, -1, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &packer{}
			var all []*packed
			for i, p := range c.parts {
				was := p.DeepCopy()
				all = append(all, s.pack(p))
				if p = all[i].unpack(); !reflect.DeepEqual(p, was) {
					t.Errorf("part %d was changed to %+v", i, p)
				}
				c.parts[i] = p
			}
			last := c.parts[len(c.parts)-1]
			template, revision := -1, -1
			for i, p := range c.parts[:len(c.parts)-1] {
				if p.Spec.PodSpec.Template == last.Spec.PodSpec.Template {
					template = i
				}
				for k := range p.Spec.Revisions {
					if len(last.Spec.Revisions) > 0 && &p.Spec.Revisions[k].Content.Raw[0] == &last.Spec.Revisions[0].Content.Raw[0] {
						revision = i
					}
				}
			}
			if template != c.template || revision != c.revision {
				t.Errorf("it has the template of part %d, want %d, and the revision of part %d, want %d", template, c.template, revision, c.revision)
			}
			runtime.KeepAlive(all) // the packer does not
		})
	}
}

// TestPackForgets names of which there is no part any more.
func TestPackForgets(t *testing.T) {
	s := &packer{}
	for i := range sweepFirst - 1 {
		s.pack(partOf(fmt.Sprint("gone-", i), "one", "a"))
	}
	runtime.GC()
	stays := s.pack(partOf("stays", "one", "a"))
	if len(s.models) != 1 || s.sweepAt != sweepFirst {
		t.Errorf("%d names are kept, and are looked through at %d", len(s.models), s.sweepAt)
	}
	runtime.KeepAlive(stays)
}

// TestSharedIsNotWritten: members whose parts share pieces list them at a time, and others read them. The race
// detector, with which the unit tests run, tells of a write to what is shared.
func TestSharedIsNotWritten(t *testing.T) {
	shared, lists := &packer{}, map[*parts][]any{}
	for i := range 4 {
		o := partOf("web", fmt.Sprint("members-", i/2), "a", "r1") // two share all, and the other two some of it
		o.Annotations = map[string]string{v1beta1.AnnotationAppSet: "shop/web", corev1.LastAppliedConfigAnnotation: "{}", "pair": fmt.Sprint(i / 2)}
		p := newParts(clock.RealClock{}, shared, func(types.NamespacedName) {}, func() {})
		slim, err := p.Transformer()(o) // as a reflector does while it gathers a list
		if err != nil {
			t.Fatal(err)
		}
		lists[p] = []any{slim}
	}
	var all sync.WaitGroup
	for p, list := range lists {
		all.Go(func() {
			if slim, ok := list[0].(*packed); ok {
				slim.unpack().DeepCopy()
			}
		})
		all.Go(func() {
			if err := p.Replace(list, "1"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for p := range lists {
		got := p.all()[0].Annotations
		if got[v1beta1.AnnotationAppSet] != "shop/web" || len(got) != 2 {
			t.Errorf("annotations are %v", got)
		}
	}
}
