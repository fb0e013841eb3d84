package api

import (
	"tkestack.io/tapp/plan/view"
)

func (a *API) listInstances(q *request) error {
	v, err := q.granted(func() error { return a.may(q, tappAccess("get", q.namespace, q.name)) },
		func() error { return a.may(q, Access{Verb: "get", Resource: "pods", Namespace: q.namespace}) })
	if err != nil {
		return err
	}
	t, release, err := a.tappTopic(q, "instances", func(o *view.Observed, before *shown) (*shown, error) {
		items := make([]item, len(o.Plan.Instances))
		for k := range o.Plan.Instances {
			i := &o.Plan.Instances[k]
			items[k] = item{key: i.ID, value: instanceOf(o, i)}
		}
		return newList(items, sumsOf(o), byNumber, before)
	})
	if err != nil {
		return err
	}
	defer release()
	return a.show(q, t, v)
}
