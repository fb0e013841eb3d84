package tapp

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// TestServingSpendsTheBudget: a pod that is Ready serves, also before minReadySeconds made it
// available. What is not Ready goes on for nothing. (deckhouse/deckhouse#5039 and
// kubernetes/kubernetes#112307 are outages without this.)
func TestServingSpendsTheBudget(t *testing.T) {
	const fewServe = "of 4 instances are serving, those that follow their template once they are available, and at least"
	for name, c := range map[string]struct {
		pods []podStory
		// minReady and budget; 120 and 1 where they are 0.
		minReady, budget int32
		want             []string
		// waits is why the instance waits.
		waits map[int]string
	}{
		"all Ready, none available: kubelets were restarted, or the scale-up was just now": {
			pods:  []podStory{{IDs: "0-3", From: "image", Ready: "10s"}},
			want:  []string{"Drain 0"},
			waits: map[int]string{1: "3 " + fewServe + " 3 must be", 3: "3 " + fewServe + " 3 must be"}},
		"all Ready, none available, and they are recreated": {
			pods: []podStory{{IDs: "0-3", From: "env", Ready: "10s"}},
			want: []string{"Delete 0"}},
		"the new content is Ready and not available": {
			pods:  []podStory{{IDs: "0", Ready: "10s"}, {IDs: "1-3", From: "image", Ready: "10s"}},
			waits: map[int]string{1: "3 " + fewServe + " 3 must be"}},
		"a second push in the soak of the first goes on with the same instance": {
			pods: []podStory{{IDs: "0", From: "blue", Ready: "10s"}, {IDs: "1-3", From: "image"}},
			want: []string{"Drain 0"}},
		"some are available, some serve: both counts have room": {
			pods: []podStory{{IDs: "0-1", From: "image"}, {IDs: "2-3", From: "image", Ready: "10s"}}, budget: 2,
			// 4 serve and 2 are available: none of these two may go, and two others may.
			want:  []string{"Drain 2", "Drain 3"},
			waits: map[int]string{0: "2 of 4 instances are available, and at least 2 must be"}},
		"what flaps on its old content goes on for nothing": {
			pods: []podStory{{IDs: "0", From: "image", Ready: "not 1s"}, {IDs: "1-3", From: "image"}},
			want: []string{"Drain 0"}},
		"what flaps on its new content takes the room": {
			pods:  []podStory{{IDs: "0", Ready: "not 1s"}, {IDs: "1-3", From: "image"}},
			waits: map[int]string{1: "3 of 4 instances are available, and at least 3 must be"}},
		"a gate is closed, and the pod is still Ready: it takes the room, and goes on": {
			pods:  []podStory{{IDs: "0", From: "image", Gate: "closed 1s", Ready: "1h"}, {IDs: "1-3", From: "image", Ready: "10s"}},
			waits: map[int]string{0: "its pod is being taken out of its Services: its gate is closed, and Ready is still True", 1: "3 " + fewServe + " 3 must be"}},
		"a gate was opened again, and Ready is from before: others do not count it": {
			pods:  []podStory{{IDs: "0", Gate: "open 2s", Ready: "1h"}, {IDs: "1-3", From: "image"}},
			waits: map[int]string{0: "its gate was opened again, and the kubelet may still report that it was closed", 1: "3 of 4 instances are available, and at least 3 must be"}},
		"a gate was opened again, and Ready is from before: its own turn needs room": {
			pods:  []podStory{{IDs: "0", From: "image", Gate: "open 2s", Ready: "1h"}, {IDs: "1", From: "image", Ready: "not 1s"}, {IDs: "2-3"}},
			want:  []string{"Drain 1"},
			waits: map[int]string{0: "2 " + fewServe + " 3 must be"}},
		"a gate was opened again, and the kubelet has answered": {
			pods: []podStory{{IDs: "0", Gate: "open 130s", Ready: "130s"}, {IDs: "1-3", From: "image"}},
			want: []string{"Drain 1"}},
		"a gate was opened again long ago": {
			pods: []podStory{{IDs: "0", Gate: "open 20s", Ready: "1h"}, {IDs: "1-3", From: "image"}},
			want: []string{"Drain 1"}},
		"no gate, and patched: it takes the room until the kubelet has done it": {
			pods:  []podStory{{IDs: "0", From: "image", Patched: "default", Kubelet: "unseen", Gate: "none", Ready: "1h"}, {IDs: "1-3", From: "image", Gate: "none", Ready: "10s"}},
			waits: map[int]string{1: "3 " + fewServe + " 3 must be"}},
		"no gate, all Ready, none available": {
			pods: []podStory{{IDs: "0-3", From: "image", Gate: "none", Ready: "10s"}},
			want: []string{"UpdateInPlace 0"}},
		"a silent node: its pods may serve, and others do not count on them": {
			pods:  []podStory{{IDs: "0-1", From: "image", Silent: true}, {IDs: "2-3", From: "image"}},
			waits: map[int]string{0: "2 " + fewServe + " 3 must be", 2: "2 of 4 instances are available, and at least 3 must be"}},
		"a silent node, and room for its pods": {
			pods: []podStory{{IDs: "0", From: "image", Silent: true}, {IDs: "1-3", From: "image"}},
			want: []string{"Drain 0"}},
		"all are truly not Ready: the corrected template gets through": {
			pods: []podStory{{IDs: "0-3", From: "image", Ready: "not 5m"}},
			want: []string{"Drain 0", "Drain 1", "Drain 2", "Drain 3"}},
		"a restart is asked for in the soak: it is not among those that serve": {
			pods: []podStory{{IDs: "0", Ready: "10s", Restart: true}, {IDs: "1-3"}},
			want: []string{"Delete 0"}},
		"restarts are asked for in the soak of two": {
			pods:  []podStory{{IDs: "0-1", Ready: "10s", Restart: true}, {IDs: "2-3"}},
			waits: map[int]string{0: "2 " + fewServe + " 3 must be"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := story(4, c.pods...)
			s.TApp.Spec.MinReadySeconds = 120
			s.TApp.Spec.UpdateStrategy.MaxUnavailable = new(intstr.FromInt32(max(1, c.budget)))
			p := Compute(s.input(t))
			wantOps(t, p, c.want...)
			for id, why := range c.waits {
				if p.Instances[id].Why != why {
					t.Errorf("instance %d waits: %s\nwant: %s", id, p.Instances[id].Why, why)
				}
			}
		})
	}
}

// TestForcedThenRolling: what forced updates take of those that serve is not there for
// rolling ones.
func TestForcedThenRolling(t *testing.T) {
	s := story(4, podStory{IDs: "0-3", From: "image", Ready: "10s"})
	s.TApp.Spec.MinReadySeconds = 120
	s.TApp.Spec.Templates = map[string]string{"2": "blue", "3": "blue"}
	for _, c := range []struct {
		forced, rolling int32
		want            []string
	}{
		{1, 1, []string{"Drain 2"}},
		{1, 2, []string{"Drain 0", "Drain 2"}},
		{4, 1, []string{"Drain 2", "Drain 3"}},
		{4, 4, []string{"Drain 0", "Drain 1", "Drain 2", "Drain 3"}},
	} {
		s.TApp.Spec.UpdateStrategy.MaxUnavailable = new(intstr.FromInt32(c.rolling))
		s.TApp.Spec.UpdateStrategy.ForceUpdate.MaxUnavailable = new(intstr.FromInt32(c.forced))
		wantOps(t, Compute(s.input(t)), c.want...)
	}
}

// TestReadyForLongIsLookedAtAgain: the soak of the new content ends by time alone.
func TestReadyForLongIsLookedAtAgain(t *testing.T) {
	s := story(2, podStory{IDs: "0", Ready: "10s"}, podStory{IDs: "1", From: "image"})
	s.TApp.Spec.MinReadySeconds = 120
	in := s.input(t)
	p := Compute(in)
	wantOps(t, p)
	if p.Wait != 110*time.Second {
		t.Errorf("it looks again after %s", p.Wait)
	}
	in.Now = in.Now.Add(p.Wait)
	wantOps(t, Compute(in), "Drain 1")
}
