package plan

import (
	"slices"
	"testing"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// A pod that lacks a container of its template, although its hash says otherwise,
// cannot be patched into it: it is recreated. Where that is forbidden it is not
// drained either, over and over.
func TestPodLacksContainer(t *testing.T) {
	for _, test := range []struct {
		policy tappv1.InPlaceUpdatePolicy
		gate   string
		want   []string
	}{
		{tappv1.InPlaceIfPossible, "", []string{"Delete 0"}},
		{tappv1.InPlaceIfPossible, "closed 5s", []string{"Delete 0"}},
		{tappv1.InPlaceOnly, "", nil},
		{tappv1.InPlaceOnly, "closed 5s", []string{"Undrain 0"}},
	} {
		s := story(1, podStory{IDs: "0", From: "image", Gate: test.gate})
		s.TApp.Spec.UpdateStrategy.InPlaceUpdate.Policy = test.policy
		in := s.input(t)
		in.Pods[0].Spec.Containers[0].Name = "other"
		sidecar := *in.Pods[0].Spec.Containers[0].DeepCopy()
		in.TApp.Spec.Template.Spec.Containers = append(in.TApp.Spec.Template.Spec.Containers, sidecar)
		h, err := HashTemplate(&in.TApp.Spec.Template)
		if err != nil {
			t.Fatal(err)
		}
		in.Pods[0].Labels[tappv1.LabelUniqHash] = h.Uniq
		in.TApp.Spec.Template.Spec.Containers[1].Image = "web:2"
		p := Compute(in)
		wantOps(t, p, test.want...)
		if test.policy == tappv1.InPlaceOnly && !slices.ContainsFunc(p.Problems, func(x Problem) bool { return x.Reason == ReasonInPlaceOnly }) {
			t.Errorf("problems %v", p.Problems)
		}
	}
}
