package api

import (
	"context"
	"slices"
	"sort"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"tkestack.io/tapp/api/access"
	"tkestack.io/tapp/api/answer"
	"tkestack.io/tapp/api/live"
	apiv1 "tkestack.io/tapp/api/v1"
)

// kindList is the list of a kind.
type kindList struct {
	resource live.Resource
	// access that the caller needs; without a namespace in all, or in some.
	access access.Access
	// item makes a line of an object.
	item func(object any) (any, bool)
}

// listKind answers with the objects of a kind in a namespace, or in all.
func (a *API) listKind(q *request, k kindList) error {
	if err := q.checkQuery(); err != nil {
		return err
	}
	namespace := q.namespace
	if a.Namespace != "" && namespace == "" {
		namespace = a.Namespace
	}
	k.access.Namespace = namespace
	t, release, err := a.topics.Acquire(string(k.resource)+" of "+namespace, nil, func(_ context.Context, t *live.Topic, before *live.Shown) (*live.Shown, time.Duration, error) {
		store, err := t.Feed(k.resource, namespace)
		if err != nil {
			return nil, 0, err
		}
		var items []live.Item
		for _, object := range store.List() {
			m, err := meta.Accessor(object)
			if err != nil {
				continue
			}
			if value, ok := k.item(object); ok {
				items = append(items, live.Item{Key: m.GetNamespace() + "/" + m.GetName(), Value: value})
			}
		}
		s, err := live.NewList(items, nil, strings.Compare, before)
		return s, 0, err
	})
	if err != nil {
		return err
	}
	defer release()
	v, err := a.visible(q, t, k.access)
	if err != nil {
		return err
	}
	v.again = func() (visibility, error) { return a.visible(q, t, k.access) }
	return a.show(q, t, v)
}

// visible says which objects of a list the caller may see. Who may not list all namespaces
// sees those of the namespaces that he may list.
func (a *API) visible(q *request, t *live.Topic, what access.Access) (visibility, error) {
	all := a.may(q, what)
	if all == nil || what.Namespace != "" || !apierrors.IsForbidden(all) {
		return visibility{}, all
	}
	now, _, err := t.Current(q.ctx())
	if err != nil {
		return visibility{}, err
	}
	sees := map[string]bool{}
	var names []string
	for _, key := range now.Keys {
		namespace, _, _ := strings.Cut(key, "/")
		if _, known := sees[namespace]; known {
			continue
		}
		one := what
		one.Namespace = namespace
		err := a.may(q, one)
		if err != nil && !apierrors.IsForbidden(err) {
			return visibility{}, err
		}
		if sees[namespace] = err == nil; err == nil {
			names = append(names, namespace)
		}
	}
	if len(names) == 0 {
		return visibility{}, all
	}
	slices.Sort(names)
	return visibility{tag: answer.TagOf(names...), sees: func(key string) bool {
		namespace, _, _ := strings.Cut(key, "/")
		return sees[namespace]
	}}, nil
}

// pageOf a list that is sorted by key, as the query says.
func pageOf[T any](q *request, all apiv1.List[T], key func(*T) string) (apiv1.List[T], error) {
	limit, err := q.number("limit", defaultLimit, 1, maxLimit)
	if err != nil {
		return all, err
	}
	page, from := all, 0
	if after := q.r.URL.Query().Get("continue"); after != "" {
		from = sort.Search(len(all.Items), func(i int) bool { return key(&all.Items[i]) > after })
	}
	page.Items = all.Items[from:min(from+limit, len(all.Items))]
	if from+limit < len(all.Items) {
		page.Continue = key(&page.Items[len(page.Items)-1])
	}
	return page, nil
}
