package api

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/api/describe"
	apiv1 "tkestack.io/tapp/api/v1"
	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/podset"
)

// listAppSetRevisions lists what an AppSet asked for.
func (a *API) listAppSetRevisions(q *request) error {
	if err := firstError(q.checkQuery, func() error { return a.may(q, appSetAccess("get", q.namespace, q.name)) }); err != nil {
		return err
	}
	s, err := a.appSet(q)
	if err != nil {
		return err
	}
	list, err := a.clients.kube.ControllerRevisions(q.namespace).List(q.ctx(), metav1.ListOptions{LabelSelector: v1beta1.LabelAppSetUID + "=" + string(s.UID)})
	if err != nil {
		return fmt.Errorf("listing revisions: %w", err)
	}
	versions, err := podset.VersionsOf(s, list.Items)
	if err != nil {
		return err
	}
	slices.Reverse(versions)
	out, err := describe.AppSetRevisions(s, versions)
	if err != nil {
		return err
	}
	return q.writeValue(apiv1.List[apiv1.AppSetRevision]{Items: out, Total: len(out)})
}
