package api

import (
	"tkestack.io/tapp/api/access"
	"tkestack.io/tapp/api/describe"
	"tkestack.io/tapp/api/live"
	"tkestack.io/tapp/plan/view"
)

func (a *API) listInstances(q *request) error {
	v, err := q.granted(func() error { return a.may(q, tappAccess("get", q.namespace, q.name)) },
		func() error { return a.may(q, access.Access{Verb: "get", Resource: "pods", Namespace: q.namespace}) })
	if err != nil {
		return err
	}
	t, release, err := a.tappTopic(q, "instances", func(o *view.Observed, before *live.Shown) (*live.Shown, error) {
		items := make([]live.Item, len(o.Plan.Instances))
		for k := range o.Plan.Instances {
			i := &o.Plan.Instances[k]
			items[k] = live.Item{Key: i.ID, Value: describe.Instance(o, i)}
		}
		return live.NewList(items, describe.Sums(o), live.ByNumber, before)
	})
	if err != nil {
		return err
	}
	defer release()
	return a.show(q, t, v)
}
