package tapp

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/effect"
)

// TestPreviewComesTrue: what is told ahead of a change is what has happened when the
// rollout is over, instance by instance.
func TestPreviewComesTrue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := drawSpec(t)
		spec.NeverMigrate, spec.Template.Spec.RestartPolicy = false, corev1.RestartPolicyAlways
		c := newCluster(t, &tappv1.TApp{Spec: spec})
		c.calm()
		before := map[string]*corev1.Pod{}
		for name, pod := range c.pods {
			before[name] = pod.DeepCopy()
		}
		c.edit(func(s *tappv1.TAppSpec) {
			for range rapid.IntRange(1, 3).Draw(t, "edits") {
				drawHarmless(t)(s)
			}
		})
		in, _ := c.plan()
		ahead := map[string]effect.Effect{}
		for _, change := range Preview(in) {
			for _, id := range change.IDs {
				ahead[strconv.Itoa(id)] = change.Effect
			}
		}
		c.calm()
		for id := range 9 {
			id := strconv.Itoa(id)
			if got := became(before["web-"+id], c.pods["web-"+id]); got != family(ahead[id]) {
				t.Fatalf("instance %s: %q was ahead, and it was %q\n%+v", id, ahead[id], got, Preview(in))
			}
		}
	})
}

// TestPreviewSaysWhatComputeSays: whatever there is, the sentence of an action or of a
// policy that holds an instance is the one that the preview has for it, and what the
// preview tells of is under way, or waits for a reason.
func TestPreviewSaysWhatComputeSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		ahead := map[string]effect.Change{}
		for _, change := range Preview(in) {
			for _, id := range change.IDs {
				ahead[strconv.Itoa(id)] = change
			}
		}
		p := Compute(in)
		acted := map[string]bool{}
		for _, a := range p.Actions {
			acted[a.ID] = true
			if effect := effectsOf(a); effect != nil {
				if c := ahead[a.ID]; !slices.Contains(effect, c.Effect) || c.Why != a.Why {
					t.Fatalf("instance %s: %s (%s: %s), and the preview says %+v", a.ID, a.Op, a.Reason, a.Why, c)
				}
			}
		}
		for _, i := range p.Instances {
			c, ok := ahead[i.ID]
			if i.Reason == ReasonInPlaceOnly && (c.Effect != effect.Hold || c.Why != i.Why) {
				t.Fatalf("instance %s waits: %s, and the preview says %+v", i.ID, i.Why, c)
			}
			// A pod waits for the status to record its node, or its claims.
			if ok && !acted[i.ID] && i.Reason == "" && p.Wait == 0 {
				t.Fatalf("instance %s: nothing is done and nothing is said of %+v", i.ID, c)
			}
		}
	})
}

// TestPreviewOfOrphans: pods that nobody controls are adopted, and then go the way of all
// others. What is not adopted has no future.
func TestPreviewOfOrphans(t *testing.T) {
	s := story(2, podStory{IDs: "0", Owner: "none"}, podStory{IDs: "1,3", From: "image", Owner: "none"}, podStory{IDs: "2", Owner: "other"})
	s.TApp.Spec.Replicas = new(int32(3))
	var told []string
	for _, change := range Preview(s.input(t)) {
		told = append(told, change.String())
	}
	want := []string{"1 instance is updated in place (1): image of app from web:1 to web:2", "1 instance is removed (3): spec.replicas is 3"}
	if !slices.Equal(told, want) {
		t.Errorf("told is %q, want %q", told, want)
	}
}

// TestPreviewOfEveryEffect: what is drawn for the test above has every effect.
func TestPreviewOfEveryEffect(t *testing.T) {
	inputs, seen := rapid.Custom(drawInput), map[effect.Effect]bool{}
	for seed := range 500 {
		for _, change := range Preview(inputs.Example(seed)) {
			seen[change.Effect] = true
		}
	}
	for _, e := range effect.All() {
		if !seen[e] && e != effect.Resize { // that is resize_test's
			t.Errorf("no preview has %s", e)
		}
	}
}

// effectsOf an action, of which the preview tells one; nil: it tells of none.
func effectsOf(a Action) []effect.Effect {
	switch {
	case a.Op == OpCreate:
		return []effect.Effect{effect.Create}
	case a.Op == OpReplace:
		return []effect.Effect{effect.Recreate}
	case a.Op == OpDrain, a.Op == OpUpdateInPlace:
		return []effect.Effect{effect.UpdateInPlace}
	case a.Op == OpResize:
		return []effect.Effect{effect.Resize, effect.UpdateInPlace}
	case a.Op == OpRelabel && a.Reason == "HashAdopted":
		return nil // it changes nothing but what we know of the pod
	case a.Op == OpRelabel:
		return []effect.Effect{effect.Relabel, effect.Resize}
	case a.Op == OpDelete && a.Reason == "ScaledDown":
		return []effect.Effect{effect.ScaleDown}
	case a.Op == OpDelete && a.Reason == "Killed":
		return []effect.Effect{effect.Kill}
	case a.Op == OpDelete && a.Reason != "Finished" && a.Reason != "NodeGone" && a.Reason != "RemovalUnfinished":
		return []effect.Effect{effect.Recreate}
	}
	return nil
}

// drawHarmless draws an edit after which all pods get well.
func drawHarmless(t *rapid.T) func(*tappv1.TAppSpec) {
	id := strconv.Itoa(rapid.IntRange(0, 6).Draw(t, "id"))
	image := pick(t, "image", "web:1", "web:2", "web:3")
	return pick(t, "edit",
		func(s *tappv1.TAppSpec) { s.Template.Spec.Containers[0].Image = image },
		func(s *tappv1.TAppSpec) {
			s.TemplatePool = map[string]corev1.PodTemplateSpec{"blue": templateOf(image)}
		},
		func(s *tappv1.TAppSpec) {
			s.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: image}}
		},
		func(s *tappv1.TAppSpec) { s.Template.Annotations = map[string]string{"team": image} },
		func(s *tappv1.TAppSpec) { put(s.Templates, id, "blue") },
		func(s *tappv1.TAppSpec) { s.Statuses[id] = tappv1.InstanceKilled },
		func(s *tappv1.TAppSpec) { s.Replicas = new(int32(rapid.IntRange(0, 6).Draw(t, "to"))) },
		func(s *tappv1.TAppSpec) { s.Ordinals = drawOrdinals(t) },
		func(s *tappv1.TAppSpec) {
			s.UpdateStrategy.InPlaceUpdate.Policy = pick(t, "policy", tappv1.InPlaceOnly, tappv1.ReCreate, "")
		},
	)
}

// family of effects that pods cannot be told apart by.
func family(e effect.Effect) effect.Effect {
	switch e {
	case effect.Kill, effect.ScaleDown:
		return effect.Kill
	case effect.Hold:
		return ""
	}
	return e
}

// became tells what happened to a pod.
func became(before, after *corev1.Pod) effect.Effect {
	images := func(p *corev1.Pod) (out []string) {
		for _, c := range p.Spec.Containers {
			out = append(out, c.Image)
		}
		return out
	}
	switch {
	case before == nil && after == nil:
		return ""
	case before == nil:
		return effect.Create
	case after == nil:
		return effect.Kill
	case before.UID != after.UID:
		return effect.Recreate
	case !slices.Equal(images(before), images(after)):
		return effect.UpdateInPlace
	case !maps.Equal(before.Labels, after.Labels) || !maps.Equal(before.Annotations, after.Annotations):
		return effect.Relabel
	}
	return ""
}

// TestPreviewOrder: by what matters most, then by instance; and it changes nothing
// of what it gets.
func TestPreviewOrder(t *testing.T) {
	s := tappv1.TAppSpec{Replicas: new(int32(4)), Template: templateOf("web:1"), TemplatePool: map[string]corev1.PodTemplateSpec{"blue": templateOf("web:2")}}
	tapp := &tappv1.TApp{Spec: s}
	tapp.Name, tapp.UID = "web", "tapp"
	in := Input{TApp: tapp}
	for id := range 3 {
		pod := PodOf(tapp, tappv1.DefaultTemplateName, id)
		pod.UID = types.UID(fmt.Sprint(id))
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(tapp, tappv1.GroupVersionKind())}
		in.Pods = append(in.Pods, pod)
	}
	tapp.Spec.Templates = map[string]string{"2": "blue"}
	tapp.Spec.Statuses = map[string]tappv1.InstanceStatus{"0": tappv1.InstanceKilled}
	tapp.Spec.Paused = true // which decides when, not whether
	before := copyInput(in)
	var got []string
	for _, change := range Preview(in) {
		got = append(got, change.String())
	}
	want := []string{
		"1 instance is updated in place (2): image of app from web:1 to web:2",
		"1 instance is killed (0): spec.statuses says Killed",
		"1 instance is created (3): the instance has no pod",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if !reflect.DeepEqual(before, in) {
		t.Error("the input has changed")
	}
	if PodOf(tapp, "gone", 0) != nil {
		t.Error("there is a pod of a template that is not there")
	}
}
