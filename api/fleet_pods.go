package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/api/answer"
	"tkestack.io/tapp/api/describe"
	apiv1 "tkestack.io/tapp/api/v1"
	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/fleet"
)

// memberTimeout bounds what a member is asked for one answer.
const memberTimeout = 5 * time.Second

// The subresources of AppSets that callers need rights to for pods and for logs in the clusters.
// The API server has no such subresources: only this server asks for the rights.
const (
	subresourceInstances = "instances"
	subresourceLog       = "log"
)

// errHidden is the answer for pods that are of no AppSet that the caller may see.
func errHidden(cluster, pod string) error {
	return answer.NotFound("pods %q in cluster %s is not of an AppSet that you may get", pod, cluster)
}

// memberPod reads a pod of a cluster, and returns it if the caller may see the AppSet that it is of, and
// what the subresource stands for.
func (a *API) memberPod(q *request, subresource string) (*fleet.Reader, *corev1.Pod, belonging, error) {
	none := belonging{}
	if err := q.checkQuery(); err != nil {
		return nil, nil, none, err
	}
	reader, err := a.Members.reader(q.cluster)
	if err != nil {
		return nil, nil, none, err
	}
	ctx, cancel := context.WithTimeout(q.ctx(), memberTimeout)
	defer cancel()
	pod, err := reader.Core.Pods(q.namespace).Get(ctx, q.name, metav1.GetOptions{})
	if err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil, none, errHidden(q.cluster, q.name)
		}
		return nil, nil, none, memberError(q.cluster, err)
	}
	of, err := newOwners(reader).of(ctx, q.namespace, pod)
	switch {
	case err != nil:
		return nil, nil, none, memberError(q.cluster, err)
	case of.part == nil:
		return nil, nil, none, errHidden(q.cluster, q.name)
	}
	if err := a.mayOfPart(q, of.part, subresource); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil, none, errHidden(q.cluster, q.name)
		}
		return nil, nil, none, err
	}
	return reader, pod, of, nil
}

// mayOfPart returns an error unless the caller may get the AppSet of a part, and its subresource
// if one is named. A caller who may not get the AppSet is told that it does not exist.
func (a *API) mayOfPart(q *request, part *v1beta1.AdvDeployment, subresource string) error {
	namespace, name, uid := appSetOf(part)
	none := answer.NotFound("the part is not of an AppSet that you may get")
	if name == "" {
		return none
	}
	what := appSetAccess("get", namespace, name)
	if err := a.may(q, what); err != nil {
		if apierrors.IsForbidden(err) {
			return none
		}
		return err
	}
	s, err := a.clients.appSets.AppSets(namespace).Get(q.ctx(), name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return none
	case err != nil:
		return err
	case s.UID != uid:
		return none
	case subresource == "":
		return nil
	}
	what.Subresource = subresource
	return a.may(q, what)
}

// memberError tells that a cluster could not be asked. Statuses of the cluster are not passed on:
// they are about the hub's account there, not about the caller.
func memberError(cluster string, err error) error {
	text := "cluster " + cluster + " could not be asked: " + answer.Words(err)
	if errors.Is(err, context.DeadlineExceeded) {
		text = fmt.Sprintf("cluster %s did not answer in %s", cluster, memberTimeout)
	}
	if apierrors.IsForbidden(err) {
		text += "; kubectl tapp fleet join --pods gives the hub's account the rights"
	}
	return apierrors.NewServiceUnavailable(text)
}

func (a *API) getMemberPod(q *request) error {
	_, pod, of, err := a.memberPod(q, subresourceInstances)
	if err != nil {
		return err
	}
	return q.writeValue(memberPodOf(q.cluster, pod, of))
}

func memberPodOf(cluster string, pod *corev1.Pod, of belonging) apiv1.Pod {
	_, name, _ := appSetOf(of.part)
	out := describe.Pod(pod, v1beta1.KindAppSet+"/"+cmp.Or(name, of.part.Name))
	out.Cluster = v1beta1.FoldClusterName(cluster)
	return out
}

func (a *API) listMemberPodEvents(q *request) error {
	reader, pod, _, err := a.memberPod(q, subresourceInstances)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(q.ctx(), memberTimeout)
	defer cancel()
	q.r = q.r.WithContext(ctx)
	if err := a.writeEvents(q, reader.Core, pod.UID); err != nil {
		return memberError(q.cluster, err)
	}
	return nil
}

func (a *API) memberPodLog(q *request) error {
	reader, pod, _, err := a.memberPod(q, subresourceLog)
	if err != nil {
		return err
	}
	err = a.writeLog(q, reader.Core, pod, func() error {
		_, _, _, err := a.memberPod(q, subresourceLog)
		return err
	})
	// What is wrong with the request the caller is to know; what is wrong between the hub, the cluster
	// and its nodes has addresses in it.
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsInternalError(err) || apierrors.ReasonForError(err) == metav1.StatusReasonUnknown && err != nil && !errors.Is(err, errSent) {
		return memberError(q.cluster, err)
	}
	return err
}
