package tapp

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	plan "tkestack.io/tapp/plan/tapp"
)

// noQuotaLasts is for how long a namespace that had no quota is not asked for one again.
const noQuotaLasts = 10 * time.Second

// createsInOrder says whether the creations have to follow one another, because a quota of
// the namespace may not let all of them. Beside each other any of them could get the last
// place; in order the lowest ids get the places. Quotas that cannot be read are none.
func (c *Controller) createsInOrder(ctx context.Context, namespace string, o *object, actions []plan.Action) bool {
	var pods, claims []plan.Action
	for _, a := range actions {
		switch a.Op {
		case plan.OpCreateClaim:
			claims = append(claims, a)
		case plan.OpCreate, plan.OpReplace:
			pods = append(pods, a)
		}
	}
	if len(pods) < 2 && len(claims) < 2 || c.Clock.Now().Before(o.noQuotaUntil) {
		return false
	}
	// Any version of the API server's cache will do: numbers change while they are read.
	list, err := c.Core.ResourceQuotas(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		klog.FromContext(ctx).V(3).Info("Quotas cannot be read: creations are made beside each other", "err", err)
		list = &corev1.ResourceQuotaList{}
	}
	if len(list.Items) == 0 {
		o.noQuotaUntil = c.Clock.Now().Add(noQuotaLasts)
	}
	for i := range list.Items {
		if isTight(&list.Items[i], pods, claims) {
			return true
		}
	}
	return false
}

// isTight says whether a quota may refuse some of the creations. Scopes are not looked at, and
// containers of all kinds count as if they ran together: it may say so of a quota that lets all.
func isTight(q *corev1.ResourceQuota, pods, claims []plan.Action) bool {
	for name, hard := range q.Status.Hard {
		used := q.Status.Used[name]
		needed, known := neededOf(name, pods, claims)
		if !known {
			return true
		}
		needed.Add(used)
		if needed.Cmp(hard) > 0 {
			return true
		}
	}
	return false
}

// neededOf a quota's resource is how much of it the creations need: nothing of what pods and
// claims do not use. It is unknown where a LimitRange or a class decides.
func neededOf(name corev1.ResourceName, pods, claims []plan.Action) (resource.Quantity, bool) {
	text := string(name)
	switch {
	case text == "pods" || text == "count/pods":
		return *resource.NewQuantity(int64(len(pods)), resource.DecimalSI), true
	case text == "persistentvolumeclaims" || text == "count/persistentvolumeclaims":
		return *resource.NewQuantity(int64(len(claims)), resource.DecimalSI), true
	case strings.Contains(text, "requests.storage") || strings.HasSuffix(text, ".storageclass.storage.k8s.io/persistentvolumeclaims"):
		return resource.Quantity{}, len(claims) == 0
	case strings.HasPrefix(text, "count/") || strings.HasPrefix(text, "services") || isCounted[name]:
		return resource.Quantity{}, true
	}
	limits := strings.HasPrefix(text, "limits.")
	of := corev1.ResourceName(strings.TrimPrefix(strings.TrimPrefix(text, "limits."), "requests."))
	var sum resource.Quantity
	for i := range pods {
		spec := &pods[i].Pod.Spec
		for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
			for j := range containers {
				one, known := usedBy(&containers[j], of, limits)
				if !known {
					return resource.Quantity{}, false
				}
				sum.Add(one)
			}
		}
	}
	return sum, true
}

// isCounted has the resources of quotas that pods and claims do not use.
var isCounted = map[corev1.ResourceName]bool{
	corev1.ResourceSecrets: true, corev1.ResourceConfigMaps: true, corev1.ResourceQuotas: true, corev1.ResourceReplicationControllers: true,
}

// usedBy a container of a resource; a request that is left out is the limit.
func usedBy(c *corev1.Container, name corev1.ResourceName, limits bool) (resource.Quantity, bool) {
	limit, limited := c.Resources.Limits[name]
	if limits {
		return limit, limited
	}
	if request, ok := c.Resources.Requests[name]; ok {
		return request, true
	}
	return limit, limited
}
