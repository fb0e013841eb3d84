package api

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"tkestack.io/tapp/api/describe"
	apiv1 "tkestack.io/tapp/api/v1"
)

// maxEvents is how many events about an object are told.
const maxEvents = 500

func (a *API) listTAppEvents(q *request) error {
	if err := firstError(q.checkQuery, func() error { return a.may(q, tappAccess("get", q.namespace, q.name)) }); err != nil {
		return err
	}
	t, err := a.clients.tapps.TApps(q.namespace).Get(q.ctx(), q.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	return a.writeEvents(q, a.clients.core, t.UID)
}

// writeEvents about the object with this UID: one of its name that was there before had
// others.
func (a *API) writeEvents(q *request, core corev1client.EventsGetter, uid types.UID) error {
	list, err := core.Events(q.namespace).List(q.ctx(), metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(uid), Limit: maxEvents})
	if err != nil {
		return fmt.Errorf("listing events: %w", err)
	}
	out := apiv1.List[apiv1.Event]{Items: make([]apiv1.Event, len(list.Items)), Total: len(list.Items)}
	for i := range list.Items {
		out.Items[i] = describe.Event(&list.Items[i])
	}
	slices.SortStableFunc(out.Items, func(a, b apiv1.Event) int {
		switch {
		case a.Last == nil && b.Last == nil:
			return 0
		case b.Last == nil || a.Last != nil && b.Last.Before(a.Last):
			return -1
		case a.Last == nil || a.Last.Before(b.Last):
			return 1
		}
		return strings.Compare(a.Reason, b.Reason)
	})
	return q.writeValue(out)
}
