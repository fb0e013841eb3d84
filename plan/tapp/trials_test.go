package tapp

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/trial"
	"tkestack.io/tapp/plan/unready"
)

// TestTrials: nothing that serves is interrupted before the API server said that it takes what
// follows. An answer is given to every question of the plan before; the pods are those of a
// template that changed an image, where nothing else is said.
func TestTrials(t *testing.T) {
	yes := trial.Answer{Verdict: trial.Admitted, At: now}
	no := trial.Answer{Verdict: trial.Refused, At: now, Times: 1, Words: "no"}
	earnest := trial.Refusal{At: now.Add(-4 * time.Second), Times: 1, Words: "no"}
	old := func(a trial.Answer, ago time.Duration) trial.Answer {
		a.At = a.At.Add(-ago)
		return a
	}
	const drained = "closed 5s"
	for name, c := range map[string]struct {
		pods   []podStory
		change func(*tappv1.TAppSpec)
		more   bool // the next pod asks for more
		answer map[trial.Kind]trial.Answer
		want   []string
		waits  map[int]string // reason
	}{
		"asked first": {pods: []podStory{{IDs: "0-3", From: "image"}}, want: []string{"Try 0"}, waits: map[int]string{1: "WaitsForTurn", 2: "WaitsForBudget"}},
		"admitted":    {answer: map[trial.Kind]trial.Answer{trial.Update: yes}, want: []string{"Drain 0", "Drain 1"}},
		"admitted a minute ago": {answer: map[trial.Kind]trial.Answer{trial.Update: old(yes, time.Minute)},
			want: []string{"Try 0"}},
		"refused": {answer: map[trial.Kind]trial.Answer{trial.Update: no},
			waits: map[int]string{0: "UpdateRefused", 1: "UpdateRefused", 2: "UpdateRefused"}},
		"refused ten seconds ago": {answer: map[trial.Kind]trial.Answer{trial.Update: old(no, 10*time.Second)},
			want: []string{"Try 0"}},
		"no answer": {answer: map[trial.Kind]trial.Answer{trial.Update: {Verdict: trial.NoAnswer, At: now, Times: 1, Words: "away"}},
			waits: map[int]string{0: "Unanswered"}},
		"no room in the budget": {pods: []podStory{{IDs: "0-1", From: "image", Ready: "not 5s", Gate: "open", Phase: corev1.PodPending}, {IDs: "2-3", From: "image"}},
			answer: map[trial.Kind]trial.Answer{trial.Update: no}, want: []string{"Drain 0", "Drain 1"}, waits: map[int]string{2: "WaitsForBudget"}},
		"down, and never asked": {pods: []podStory{{IDs: "0-3", From: "image", Ready: "not 5m"}},
			want: []string{"Drain 0", "Drain 1", "Drain 2", "Drain 3"}},
		"no gate": {pods: []podStory{{IDs: "0-3", From: "image", Gate: "none"}}, want: []string{"UpdateInPlace 0", "UpdateInPlace 1"}},
		"labels alone": {pods: []podStory{{IDs: "0-3", From: "labels"}},
			want: []string{"Relabel 0", "Relabel 1", "Relabel 2", "Relabel 3"}},
		"drained, and nothing known: the patch is the question": {pods: []podStory{{IDs: "0", From: "image", Gate: drained, Ready: "not 4s"}},
			want: []string{"UpdateInPlace 0"}},
		"drained, and refused in earnest since": {pods: []podStory{{IDs: "0-1", From: "image", Gate: drained, Ready: "not 4s"}, {IDs: "2-3", From: "image"}},
			answer: map[trial.Kind]trial.Answer{trial.Update: {Verdict: trial.Admitted, At: now.Add(-6 * time.Second), Refusal: earnest}},
			want:   []string{"Undrain 0", "Undrain 1"}, waits: map[int]string{2: "WaitsForBudget"}},
		"drained after a refusal in earnest: it tries": {pods: []podStory{{IDs: "0", From: "image", Gate: "closed 1s", Ready: "not 1s"}, {IDs: "1-3", From: "image"}},
			answer: map[trial.Kind]trial.Answer{trial.Update: {Verdict: trial.Admitted, At: now.Add(-2 * time.Second), Refusal: trial.Refusal{At: now.Add(-20 * time.Second), Times: 1, Words: "no"}}},
			want:   []string{"UpdateInPlace 0"}, waits: map[int]string{1: "WaitsForTurn"}},
		"patched already, and what follows is refused: the gate stays closed": {pods: []podStory{{IDs: "0", From: "blue", Patched: "image", Kubelet: "unseen", Gate: drained, Ready: "not 4s"}},
			answer: map[trial.Kind]trial.Answer{trial.Update: {Refusal: earnest}}, waits: map[int]string{0: "UpdateRefused"}},
		"refused in earnest, not drained": {answer: map[trial.Kind]trial.Answer{trial.Update: {Verdict: trial.Admitted, At: now.Add(-5 * time.Second), Refusal: earnest}},
			waits: map[int]string{0: "UpdateRefused", 3: "UpdateRefused"}},
		"refused in earnest, and down": {pods: []podStory{{IDs: "0-3", From: "image", Ready: "not 5m"}},
			answer: map[trial.Kind]trial.Answer{trial.Update: {Refusal: earnest}}, waits: map[int]string{0: "UpdateRefused", 3: "UpdateRefused"}},
		"one alone tries again": {answer: map[trial.Kind]trial.Answer{trial.Update: {Verdict: trial.Admitted, At: now, Refusal: trial.Refusal{At: now.Add(-20 * time.Second), Times: 1}}},
			want: []string{"Drain 0"}, waits: map[int]string{1: "WaitsForTurn"}},
		"immutable, and another pod not asked for": {answer: map[trial.Kind]trial.Answer{trial.Update: {Verdict: trial.Immutable, At: now, Words: "no"}},
			want: []string{"Try 0"}, waits: map[int]string{1: "WaitsForTurn", 2: "WaitsForBudget"}},
		"immutable, and another pod admitted": {answer: map[trial.Kind]trial.Answer{trial.Update: {Verdict: trial.Immutable, At: now, Words: "no"}, trial.Create: yes},
			want: []string{"Delete 0", "Delete 1"}},
		"immutable, and another pod refused": {answer: map[trial.Kind]trial.Answer{trial.Update: {Verdict: trial.Immutable, At: now, Words: "no"}, trial.Create: no},
			waits: map[int]string{0: "NextPodRefused", 1: "NextPodRefused"}},
		"immutable in earnest, drained, and another pod refused": {pods: []podStory{{IDs: "0", From: "image", Gate: drained, Ready: "not 4s"}},
			answer: map[trial.Kind]trial.Answer{trial.Update: {Verdict: trial.Immutable, At: now, Words: "no"}, trial.Create: no},
			want:   []string{"Undrain 0"}},
		"immutable, InPlaceOnly": {change: func(s *tappv1.TAppSpec) { s.UpdateStrategy.InPlaceUpdate.Policy = tappv1.InPlaceOnly },
			answer: map[trial.Kind]trial.Answer{trial.Update: {Verdict: trial.Immutable, At: now, Words: "no"}, trial.Create: yes},
			waits:  map[int]string{0: "UpdateImmutable", 3: "UpdateImmutable"}},
		"immutable in earnest, InPlaceOnly, drained": {pods: []podStory{{IDs: "0", From: "image", Gate: drained, Ready: "not 4s"}},
			change: func(s *tappv1.TAppSpec) { s.UpdateStrategy.InPlaceUpdate.Policy = tappv1.InPlaceOnly },
			answer: map[trial.Kind]trial.Answer{trial.Update: {Verdict: trial.Immutable, At: now, Words: "no"}},
			want:   []string{"Undrain 0"}},
		"recreate: asked first": {pods: []podStory{{IDs: "0-3", From: "env"}}, want: []string{"Try 0"}, waits: map[int]string{1: "WaitsForTurn", 2: "WaitsForBudget"}},
		"recreate: admitted":    {pods: []podStory{{IDs: "0-3", From: "env"}}, answer: map[trial.Kind]trial.Answer{trial.Create: yes}, want: []string{"Delete 0", "Delete 1"}},
		"recreate: refused":     {pods: []podStory{{IDs: "0-3", From: "env"}}, answer: map[trial.Kind]trial.Answer{trial.Create: no}, waits: map[int]string{0: "NextPodRefused", 3: "NextPodRefused"}},
		"recreate: refused by force": {pods: []podStory{{IDs: "0-3", From: "env"}}, change: func(s *tappv1.TAppSpec) { s.UpdateStrategy.Template = "blue" },
			answer: map[trial.Kind]trial.Answer{trial.Create: no}, waits: map[int]string{0: "NextPodRefused", 3: "NextPodRefused"}},
		"recreate: down": {pods: []podStory{{IDs: "0-3", From: "env", Ready: "not 5m"}}, answer: map[trial.Kind]trial.Answer{trial.Create: no}, want: []string{"Delete 0", "Delete 1", "Delete 2", "Delete 3"}},
		"recreate, drained for an update in place": {pods: []podStory{{IDs: "0", From: "env", Gate: drained, Ready: "not 4s"}}, answer: map[trial.Kind]trial.Answer{trial.Create: no}, want: []string{"Undrain 0"}},
		"restart: refused":                         {pods: []podStory{{IDs: "0-3", Restart: true}}, answer: map[trial.Kind]trial.Answer{trial.Create: no}, waits: map[int]string{0: "NextPodRefused"}},
		"killed: nobody is asked": {pods: []podStory{{IDs: "0-3", From: "image"}}, change: func(s *tappv1.TAppSpec) { s.Statuses = map[string]tappv1.InstanceStatus{"0": tappv1.InstanceKilled} },
			answer: map[trial.Kind]trial.Answer{trial.Create: no, trial.Update: no}, want: []string{"Delete 0"}, waits: map[int]string{1: "UpdateRefused"}},
		"a quota is full, and the next pod asks for no more": {pods: []podStory{{IDs: "0-3", From: "env"}},
			answer: map[trial.Kind]trial.Answer{trial.Create: {Verdict: trial.NoRoom, At: now}}, want: []string{"Delete 0", "Delete 1"}},
		"a quota is full, and the next pod asks for more": {pods: []podStory{{IDs: "0-3", From: "env"}}, more: true,
			answer: map[trial.Kind]trial.Answer{trial.Create: {Verdict: trial.NoRoom, At: now}}, want: []string{"Delete 0"}, waits: map[int]string{1: "WaitsForTurn"}},
		"a quota is full, the next pod asks for more, and one is on its way": {pods: []podStory{{IDs: "0", From: "env", Dying: "in 20s"}, {IDs: "1-3", From: "env"}}, more: true,
			answer: map[trial.Kind]trial.Answer{trial.Create: {Verdict: trial.NoRoom, At: now}}, waits: map[int]string{1: "WaitsForTurn"}},
		"refused in earnest, a dry run passed since, and the refused one is missing": {pods: []podStory{{IDs: "1-3", From: "env"}},
			answer: map[trial.Kind]trial.Answer{trial.Create: {Verdict: trial.Admitted, At: now, Refusal: trial.Refusal{At: now.Add(-time.Minute), Times: 1, Pod: "web-0"}}},
			want:   []string{"Create 0", "Delete 1"}, waits: map[int]string{2: "WaitsForBudget"}},
	} {
		t.Run(name, func(t *testing.T) {
			pods := c.pods
			if pods == nil {
				pods = []podStory{{IDs: "0-3", From: "image"}}
			}
			s := story(4, pods...)
			if len(pods) == 1 && pods[0].IDs == "0" {
				s = story(1, pods...)
			}
			s.TApp.Spec.UpdateStrategy.MaxUnavailable = new(intstr.FromInt32(2))
			if c.change != nil {
				c.change(&s.TApp.Spec)
			}
			if c.more {
				s.TApp.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
			}
			in := s.input(t)
			for _, pod := range in.Pods {
				pod.Spec.Containers[0].Resources.Requests = nil
			}
			in.Policy.Try = true
			in.Trials = answersTo(in, c.answer)
			p := Compute(in)
			wantOps(t, p, c.want...)
			for id, reason := range c.waits {
				if p.Instances[id].Reason != reason || p.Instances[id].Why == "" {
					t.Errorf("instance %d waits for %q (%s), want %s", id, p.Instances[id].Reason, p.Instances[id].Why, reason)
				}
			}
		})
	}
}

// answersTo all questions that there can be about the pods of an input.
func answersTo(in Input, answers map[trial.Kind]trial.Answer) trial.Answers {
	s := readSpec(in)
	out, b := trial.Answers{}, trial.NewBench(nil, in.Now)
	for _, i := range observe(s, &clock{now: in.Now}, in, readClaims(s, &in)) {
		if i.template == nil {
			continue
		}
		for kind, a := range answers {
			if i.pod != nil || kind == trial.Create {
				out[b.Of(kind, i.pod, i.template.Hashes.Template)] = a
			}
		}
	}
	return out
}

// TestRefusedByWhatGatesTell: a leader that knows nothing reads of refusals in the gates of the
// pods, holds those that are alike for the back-off, and then lets one try, which was not
// refused itself.
func TestRefusedByWhatGatesTell(t *testing.T) {
	for _, c := range []struct {
		about   string
		ago     time.Duration
		refused []int
		of      string // template that was refused; empty: the present one
		asked   []string
		begun   []string
	}{
		{"in the back-off", 5 * time.Second, []int{0}, "", nil, nil},
		{"after the back-off", 11 * time.Second, []int{0}, "", []string{"Try 0"}, []string{"Drain 1"}},
		{"all were refused", 11 * time.Second, []int{0, 1, 2}, "", []string{"Try 0"}, []string{"Drain 0"}},
		{"another template was refused", time.Second, []int{0}, "ta1-other", []string{"Try 0"}, []string{"Drain 0", "Drain 1"}},
	} {
		s := story(3, podStory{IDs: "0-2", From: "image"})
		s.TApp.Spec.UpdateStrategy.MaxUnavailable = new(intstr.FromInt32(2))
		in := s.input(t)
		in.Policy.Try = true
		hash := c.of
		if hash == "" {
			hash = s.hash(t, "default")
		}
		for _, id := range c.refused {
			conditions := in.Pods[id].Status.Conditions
			at := slices.IndexFunc(conditions, func(x corev1.PodCondition) bool { return x.Type == tappv1.GateInPlaceUpdate })
			conditions[at].Reason, conditions[at].Message = trial.ReasonUpdateRefused, trial.Message(hash, trial.Refusal{Times: 1, Words: "no"})
			conditions[at].LastTransitionTime.Time = in.Now.Add(-c.ago)
			unready.Ready(in.Pods[id]).LastTransitionTime.Time = in.Now.Add(-c.ago) // its kubelet has answered
		}
		p := Compute(in)
		if got := ops(p); !slices.Equal(got, c.asked) && len(got)+len(c.asked) > 0 {
			t.Errorf("%s: %q, want %q", c.about, got, c.asked)
		}
		if c.asked == nil {
			if p.Wait != 10*time.Second-c.ago || p.Instances[1].Reason != trial.ReasonUpdateRefused || !strings.HasSuffix(p.Instances[1].Why, ": no") {
				t.Errorf("%s: wait %s, instance 1 waits for %s: %s", c.about, p.Wait, p.Instances[1].Reason, p.Instances[1].Why)
			}
			continue
		}
		in.Trials = answersTo(in, map[trial.Kind]trial.Answer{trial.Update: {Verdict: trial.Admitted, At: in.Now}})
		wantOps(t, Compute(in), c.begun...)
	}
}

// TestAskedForOne: pods that differ in more than what is one instance's alone ask for
// themselves, a plan asks at most so much, and a refusal holds those that are alike.
func TestAskedForOne(t *testing.T) {
	s := story(8, podStory{IDs: "0-7", From: "image"})
	s.TApp.Spec.UpdateStrategy.MaxUnavailable = new(intstr.FromString("100%"))
	in := s.input(t)
	in.Policy.Try = true
	for id := range 6 {
		in.Pods[id].Spec.Containers = append(in.Pods[id].Spec.Containers, corev1.Container{Name: "proxy", Image: "mesh:" + in.Pods[id].Name})
	}
	p := Compute(in)
	wantOps(t, p, "Try 0", "Try 1", "Try 2", "Try 3")
	in.Trials = trial.Answers{}
	for _, a := range p.Actions {
		in.Trials[a.Question] = trial.Answer{Verdict: trial.Refused, At: in.Now, Times: 1}
	}
	p = Compute(in)
	wantOps(t, p, "Try 4", "Try 5", "Try 6")
	for _, a := range p.Actions {
		in.Trials[a.Question] = trial.Answer{Verdict: trial.Admitted, At: in.Now}
	}
	wantOps(t, Compute(in), "Drain 4", "Drain 5", "Drain 6", "Drain 7")
}
