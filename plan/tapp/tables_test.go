package tapp

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/ending"
	"tkestack.io/tapp/plan/ids"
	"tkestack.io/tapp/plan/tally"
)

func TestIDs(t *testing.T) {
	for id, want := range map[string]int{"0": 0, "1": 1, "10": 10, "49999": 49999} {
		if num, ok := ids.Parse(id); !ok || num != want {
			t.Errorf("ids.Parse(%q) is %d, %t", id, num, ok)
		}
	}
	for _, id := range []string{"", "-1", "-0", "+1", "01", "00", " 1", "1 ", "1.0", "0x1", "one", "1_000", "٣", "99999999999999999999"} {
		if num, ok := ids.Parse(id); ok {
			t.Errorf("ids.Parse(%q) is %d", id, num)
		}
	}
	for _, test := range []struct {
		tapp, pod string
		want      int
		ok        bool
	}{
		{"web", "web-0", 0, true},
		{"web", "web-12", 12, true},
		{"web-1", "web-1-2", 2, true},
		{"web", "web-1-2", 0, false}, // of the TApp web-1
		{"web", "web-01", 0, false},
		{"web", "web", 0, false},
		{"web", "web-", 0, false},
		{"web", "web--1", 0, false},
		{"web", "web0", 0, false},
		{"web", "other-0", 0, false},
		{"web", "web-7bd5f-x2x4z", 0, false}, // of a Deployment
	} {
		num, ok := ids.InName(test.tapp, test.pod)
		if ok != test.ok || num != test.want {
			t.Errorf("ids.InName(%q, %q) is %d, %t", test.tapp, test.pod, num, ok)
		}
	}
}

func TestRanges(t *testing.T) {
	odd := make([]int, 25)
	for i := range odd {
		odd[i] = 2*i + 1
	}
	for want, in := range map[string][]int{
		"":        nil,
		"0":       {0},
		"7":       {7},
		"0-1":     {0, 1},
		"0-3,7":   {0, 1, 2, 3, 7},
		"1,3,5-6": {1, 3, 5, 6},
		"9-11":    {9, 10, 11},
		"1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31,33,35,37,39":              odd[:20],
		"1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31,33,35,37,39,... (5 more)": odd,
	} {
		if got := ids.Ranges(in); got != want {
			t.Errorf("ids.Ranges(%v) is %q, want %q", in, got, want)
		}
	}
}

func TestDelayAfter(t *testing.T) {
	for failures, want := range []time.Duration{
		10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 5 * time.Minute, 5 * time.Minute,
	} {
		if got := ending.Delay(failures); got != want {
			t.Errorf("after %d failures the delay is %s, want %s", failures, got, want)
		}
	}
	for _, failures := range []int{64, 1 << 40} { // whatever an annotation says
		if got := ending.Delay(failures); got != 5*time.Minute {
			t.Errorf("after %d failures the delay is %s", failures, got)
		}
	}
}

func TestEndTime(t *testing.T) {
	ended := func(at ...time.Duration) corev1.PodStatus {
		var s corev1.PodStatus
		for _, a := range at {
			s.ContainerStatuses = append(s.ContainerStatuses, corev1.ContainerStatus{
				State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: ago(a)}},
			})
		}
		return s
	}
	with := func(s corev1.PodStatus, change func(*corev1.PodStatus)) corev1.PodStatus {
		change(&s)
		return s
	}
	condition := func(kind corev1.PodConditionType, at time.Duration) func(*corev1.PodStatus) {
		return func(s *corev1.PodStatus) {
			s.Conditions = append(s.Conditions, corev1.PodCondition{Type: kind, LastTransitionTime: ago(at)})
		}
	}
	for name, test := range map[string]struct {
		status corev1.PodStatus
		want   time.Duration
	}{
		"the last container that ended":      {ended(3*time.Minute, time.Minute, 2*time.Minute), time.Minute},
		"containers tell better than Ready":  {with(ended(time.Minute), condition(corev1.PodReady, time.Second)), time.Minute},
		"no container, but Ready":            {with(ended(), condition(corev1.PodReady, time.Minute)), time.Minute},
		"no container, but DisruptionTarget": {with(ended(), condition(corev1.DisruptionTarget, time.Minute)), time.Minute},
		"a condition that tells nothing":     {with(ended(), condition(corev1.PodScheduled, time.Minute)), time.Hour},
		"only the start":                     {with(ended(), func(s *corev1.PodStatus) { s.StartTime = new(ago(time.Minute)) }), time.Minute},
		"only the creation":                  {ended(), time.Hour},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: ago(time.Hour)}, Status: test.status}
		if got := now.Sub(ending.TimeOf(pod)); got != test.want {
			t.Errorf("%s: %s ago, want %s", name, got, test.want)
		}
	}
}

func TestAppStatus(t *testing.T) {
	const (
		failed  = tappv1.InstanceFailed
		succ    = tappv1.InstanceSucc
		killed  = tappv1.InstanceKilled
		running = tappv1.InstanceRunning
	)
	type list = []tappv1.InstanceStatus
	for _, test := range []struct {
		in   list
		want tappv1.AppStatus
	}{
		{list{}, tappv1.AppPending},
		{list{running, failed, succ, killed}, tappv1.AppRunning},
		{list{killed, tappv1.InstanceNotCreated}, tappv1.AppRunning},
		{list{killed, tappv1.InstancePending}, tappv1.AppRunning},
		{list{killed, tappv1.InstanceUpdating}, tappv1.AppRunning},
		{list{killed, tappv1.InstanceKilling}, tappv1.AppRunning},
		{list{killed, tappv1.InstanceUnknown}, tappv1.AppRunning},
		{list{killed, tappv1.InstancePodFailed}, tappv1.AppRunning},
		{list{killed, tappv1.InstancePodSucc}, tappv1.AppRunning},
		{list{failed, succ, killed}, tappv1.AppFailed},
		{list{failed}, tappv1.AppFailed},
		{list{succ, killed}, tappv1.AppSucc},
		{list{killed, killed}, tappv1.AppKilled},
	} {
		statuses := map[string]tappv1.InstanceStatus{}
		for i, s := range test.in {
			statuses[string(rune('0'+i))] = s
		}
		if got := tally.AppStatus(statuses); got != test.want {
			t.Errorf("%v: %s, want %s", test.in, got, test.want)
		}
	}
}
