package tapp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
)

// TestFreePlaceGoesToTheLowest: a quota lets 9 pods of 10. A pod that goes uses none of it
// when its containers have ended, which is before it is gone. Its place is for the next pod
// of its instance, and not for instance 9, which waited for one.
func TestFreePlaceGoesToTheLowest(t *testing.T) {
	const quota = 9
	pods := map[string]*corev1.Pod{}
	s := &stub{}
	s.answer = func(method, path, body string) (int, any) {
		s.mu.Lock()
		defer s.mu.Unlock()
		used := 0
		for _, p := range pods {
			if p.Status.Phase != corev1.PodFailed {
				used++
			}
		}
		if strings.HasSuffix(path, "/resourcequotas") {
			return 200, quotaList(someQuota(map[corev1.ResourceName][2]string{"pods": {fmt.Sprint(quota), fmt.Sprint(used)}}))
		}
		var pod corev1.Pod
		if err := json.Unmarshal([]byte(body), &pod); err != nil || method != "POST" {
			return 200, &corev1.Pod{}
		}
		if used >= quota {
			return apiError(403, metav1.StatusReasonForbidden, fmt.Sprintf(`pods %q is forbidden: exceeded quota`, pod.Name))
		}
		pod.UID, pod.ResourceVersion = "u", fmt.Sprint(len(pods)+20)
		pods[pod.Name] = &pod
		return 201, &pod
	}
	c := s.newController(t)
	app := someTApp("a")
	app.Spec = tappv1.TAppSpec{Replicas: new(int32(10)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}}
	app.Spec.Template.Labels = map[string]string{"app": "a"}
	app.Spec.Template.Spec.Containers = []corev1.Container{{Name: "a", Image: "a:1"}}
	_ = c.tapps.GetStore().Add(app)
	o := &object{}
	at := time.Unix(1_000_000, 0)
	step := func() (created []string) {
		in := plan.Input{TApp: app, Now: at, Refused: o.refused}
		before := map[string]bool{}
		for name, p := range pods {
			in.Pods = append(in.Pods, p)
			before[name] = true
		}
		p := plan.Compute(in)
		o.refused = p.Refused
		app = app.DeepCopy()
		app.Status = p.Status
		c.apply(t.Context(), app, o, p.Actions)
		for name := range pods {
			if !before[name] {
				created = append(created, name)
			}
		}
		slices.Sort(created)
		return created
	}
	for range 3 { // as many as there is room for, and the refusal is told
		step()
	}
	if len(pods) != quota || !meta.IsStatusConditionTrue(app.Status.Conditions, tappv1.ConditionReplicaFailure) {
		t.Fatalf("%d pods, %v", len(pods), app.Status.Conditions)
	}
	missing := ""
	for n := range 10 {
		if name := fmt.Sprint("a-", n); pods[name] == nil {
			missing = name
		}
	}
	if missing != "a-9" {
		t.Fatalf("%s was refused, want the highest", missing)
	}

	pods["a-3"].DeletionTimestamp, pods["a-3"].DeletionGracePeriodSeconds = new(metav1.NewTime(at.Add(30*time.Second))), new(int64(30))
	pods["a-3"].Status.Phase = corev1.PodFailed // its containers have ended
	for range 3 {
		if got := step(); len(got) > 0 {
			t.Fatalf("%q were made while a-3 goes", got)
		}
		if !meta.IsStatusConditionTrue(app.Status.Conditions, tappv1.ConditionReplicaFailure) {
			t.Error("nobody tells any more that creations are refused")
		}
	}
	delete(pods, "a-3")
	if got := strings.Join(step(), " "); got != "a-3" {
		t.Errorf("%q got the place, want a-3", got)
	}
	if len(o.refused) == 0 {
		t.Error("a-9 was not tried after it")
	}
}
