package tapp

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	plan "tkestack.io/tapp/plan/tapp"
)

// someQuota has of each resource what is hard and what is used.
func someQuota(of map[corev1.ResourceName][2]string) corev1.ResourceQuota {
	q := corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "q"}}
	q.Status.Hard, q.Status.Used = corev1.ResourceList{}, corev1.ResourceList{}
	for name, numbers := range of {
		q.Status.Hard[name], q.Status.Used[name] = resource.MustParse(numbers[0]), resource.MustParse(numbers[1])
	}
	return q
}

func quotaList(items ...corev1.ResourceQuota) *corev1.ResourceQuotaList {
	return &corev1.ResourceQuotaList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ResourceQuotaList"}, Items: items}
}

// TestCreatesInOrder: creations are made in order where a quota may refuse one of them.
func TestCreatesInOrder(t *testing.T) {
	type quota = map[corev1.ResourceName][2]string
	sized := corev1.Container{Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"cpu": resource.MustParse("500m")},
		Limits:   corev1.ResourceList{"memory": resource.MustParse("1Gi")},
	}}
	for _, c := range []struct {
		name         string
		quota        quota
		pods, claims int
		container    corev1.Container
		want, asked  bool
	}{
		{name: "room for one", quota: quota{"pods": {"4", "3"}}, pods: 2, want: true, asked: true},
		{name: "room for all", quota: quota{"pods": {"4", "2"}}, pods: 2, asked: true},
		{name: "as a count", quota: quota{"count/pods": {"4", "3"}}, pods: 2, want: true, asked: true},
		{name: "one pod follows nothing", quota: quota{"pods": {"4", "4"}}, pods: 1},
		{name: "one pod and its claim", quota: quota{"pods": {"4", "4"}}, pods: 1, claims: 1},
		{name: "no quota", pods: 9, asked: true},
		{name: "of others", quota: quota{"secrets": {"1", "1"}, "services.nodeports": {"0", "0"}, "count/jobs.batch": {"0", "0"}}, pods: 9, asked: true},
		{name: "claims", quota: quota{"persistentvolumeclaims": {"5", "4"}}, claims: 2, want: true, asked: true},
		{name: "claims of others", quota: quota{"persistentvolumeclaims": {"5", "5"}}, pods: 2, asked: true},
		{name: "storage", quota: quota{"requests.storage": {"5Gi", "1Gi"}}, claims: 2, want: true, asked: true},
		{name: "cpu for all", quota: quota{"requests.cpu": {"2", "1"}}, pods: 2, container: sized, asked: true},
		{name: "cpu for one", quota: quota{"cpu": {"2", "1.5"}}, pods: 2, container: sized, want: true, asked: true},
		{name: "a request is the limit", quota: quota{"requests.memory": {"2Gi", "0"}}, pods: 3, container: sized, want: true, asked: true},
		{name: "limits", quota: quota{"limits.memory": {"3Gi", "0"}}, pods: 3, container: sized, asked: true},
		{name: "a LimitRange decides", quota: quota{"limits.cpu": {"100", "0"}}, pods: 2, container: sized, want: true, asked: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &stub{answer: func(string, string, string) (int, any) { return http.StatusOK, quotaList(someQuota(c.quota)) }}
			var actions []plan.Action
			for n := range c.pods {
				pod := somePod(fmt.Sprint("a-", n), "u", "1")
				pod.Spec.Containers = []corev1.Container{c.container}
				actions = append(actions, plan.Action{Op: plan.OpCreate, Pod: pod})
			}
			for range c.claims {
				actions = append(actions, plan.Action{Op: plan.OpCreateClaim, Claim: &corev1.PersistentVolumeClaim{}})
			}
			if got := s.newController(t).createsInOrder(t.Context(), "ns", &object{}, actions); got != c.want {
				t.Errorf("in order: %v, want %v", got, c.want)
			}
			if asked := slices.Contains(s.asked(), "GET /api/v1/namespaces/ns/resourcequotas"); asked != c.asked {
				t.Errorf("quotas were asked for: %v, want %v", asked, c.asked)
			}
		})
	}
}

// TestUnknownQuotas: where quotas may not be read, creations are made as if there were none.
func TestUnknownQuotas(t *testing.T) {
	s := &stub{answer: func(string, string, string) (int, any) {
		return apiError(http.StatusForbidden, metav1.StatusReasonForbidden, "no")
	}}
	actions := []plan.Action{{Op: plan.OpCreate, Pod: somePod("a-0", "u", "1")}, {Op: plan.OpCreate, Pod: somePod("a-1", "u", "1")}}
	c, o := s.newController(t), &object{}
	for range 2 {
		if c.createsInOrder(t.Context(), "ns", o, actions) {
			t.Error("creations wait for one another")
		}
	}
	if n := len(s.asked()); n != 1 {
		t.Errorf("asked %d times in %s", n, noQuotaLasts)
	}
}
