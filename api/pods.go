package api

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tkestack.io/tapp/api/access"
	"tkestack.io/tapp/api/describe"
	appv1 "tkestack.io/tapp/crd/app/v1"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// ownedPod reads a pod, and returns it if the caller may: by his rights on pods, or on their
// subresource, and on the TApp or App whose pod it is. Owners are followed by their UIDs,
// since names and labels can be had by anybody.
func (a *API) ownedPod(q *request, subresource string) (*corev1.Pod, string, error) {
	what := access.Access{Verb: "get", Resource: "pods", Subresource: subresource, Namespace: q.namespace, Name: q.name}
	if err := firstError(q.checkQuery, func() error { return a.may(q, what) }); err != nil {
		return nil, "", err
	}
	pod, err := a.clients.core.Pods(q.namespace).Get(q.ctx(), q.name, metav1.GetOptions{})
	if err != nil {
		return nil, "", err
	}
	owner, access, err := a.clients.ownerOf(q.ctx(), pod)
	if err != nil {
		return nil, "", err
	}
	return pod, owner, a.may(q, access)
}

// errNobodys is the answer for pods that belong to no TApp or App.
func errNobodys(pod string) error {
	err := apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, pod)
	err.ErrStatus.Message = fmt.Sprintf("pods %q is not of a TApp or an App", pod)
	return err
}

// ownerOf a pod: whose it is, and the right to see that.
func (c *clients) ownerOf(ctx context.Context, pod *corev1.Pod) (string, access.Access, error) {
	nobodys := errNobodys(pod.Name)
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return "", access.Access{}, nobodys
	}
	ns := pod.Namespace
	switch group(owner) + "/" + owner.Kind {
	case tappv1.GroupName + "/" + tappv1.Kind:
		t, err := c.tapps.TApps(ns).Get(ctx, owner.Name, metav1.GetOptions{})
		if err != nil || t.UID != owner.UID {
			return "", access.Access{}, unless(err, nobodys)
		}
		return tappv1.Kind + "/" + t.Name, tappAccess("get", ns, t.Name), nil
	case "apps/ReplicaSet":
		set, err := c.kube.ReplicaSets(ns).Get(ctx, owner.Name, metav1.GetOptions{})
		if err != nil || set.UID != owner.UID {
			return "", access.Access{}, unless(err, nobodys)
		}
		if owner = metav1.GetControllerOf(set); owner == nil || owner.Kind != "Deployment" {
			return "", access.Access{}, nobodys
		}
		deployment, err := c.kube.Deployments(ns).Get(ctx, owner.Name, metav1.GetOptions{})
		if err != nil || deployment.UID != owner.UID {
			return "", access.Access{}, unless(err, nobodys)
		}
		if owner = metav1.GetControllerOf(deployment); owner == nil || group(owner) != appv1.GroupName || owner.Kind != appv1.Kind {
			return "", access.Access{}, nobodys
		}
		app, err := c.apps.Apps(ns).Get(ctx, owner.Name, metav1.GetOptions{})
		if err != nil || app.UID != owner.UID {
			return "", access.Access{}, unless(err, nobodys)
		}
		return appv1.Kind + "/" + app.Name, appAccess("get", ns, app.Name), nil
	}
	return "", access.Access{}, nobodys
}

// unless the error is one that the caller is to know, it is that the pod is nobody's.
func unless(err, nobodys error) error {
	if err == nil || apierrors.IsNotFound(err) {
		return nobodys
	}
	return err
}

func group(owner *metav1.OwnerReference) string {
	version, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil {
		return ""
	}
	return version.Group
}

func (a *API) getPod(q *request) error {
	pod, owner, err := a.ownedPod(q, "")
	if err != nil {
		return err
	}
	return q.writeValue(describe.Pod(pod, owner))
}

func (a *API) listPodEvents(q *request) error {
	pod, _, err := a.ownedPod(q, "")
	if err != nil {
		return err
	}
	return a.writeEvents(q, a.clients.core, pod.UID)
}
