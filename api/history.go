package api

import (
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/api/describe"
	apiv1 "tkestack.io/tapp/api/v1"
	"tkestack.io/tapp/plan/view"
)

func (a *API) listRevisions(q *request) error {
	if err := firstError(q.checkQuery, func() error { return a.may(q, tappAccess("get", q.namespace, q.name)) }); err != nil {
		return err
	}
	t, err := a.clients.tapps.TApps(q.namespace).Get(q.ctx(), q.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	all, err := a.clients.revisionsOf(q.ctx(), t)
	if err != nil {
		return err
	}
	stored, err := view.StoredOf(t, all)
	if err != nil {
		return err
	}
	history, err := view.History(t, stored)
	if err != nil {
		return err
	}
	out := apiv1.List[apiv1.Revision]{Items: make([]apiv1.Revision, len(history)), Total: len(history)}
	summary := apiv1.Summary{Namespace: t.Namespace, Name: t.Name}
	for i, r := range history {
		out.Items[i] = apiv1.Revision{Revision: r, Changes: []view.FieldChange{}}
		if i > 0 {
			changes, err := view.Changes("", stored[i-1].Version, stored[i].Version)
			if err != nil {
				return fmt.Errorf("comparing revisions: %w", err)
			}
			out.Items[i].Changes = append(out.Items[i].Changes, changes...)
		}
		if !r.Update {
			out.Items[i].Command = describe.Command(&summary, "undo", "--to-revision "+strconv.FormatInt(r.Revision, 10))
		}
	}
	return q.writeValue(out)
}
