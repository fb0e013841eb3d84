package api

import (
	_ "embed"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"tkestack.io/tapp/api/answer"
	apiv1 "tkestack.io/tapp/api/v1"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
)

// document is made of the table of routes and of the types (make generate).
//
//go:embed openapi.json
var document []byte

func (a *API) health(q *request) error {
	q.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = q.w.Write([]byte("ok\n")) // whoever asked has gone if this fails
	return nil
}

func (a *API) openAPI(q *request) error {
	return q.write(answer.TagOf(string(document)), document)
}

func (a *API) whoAmI(q *request) error {
	return q.writeValue(apiv1.User{User: q.caller.Name, Groups: q.caller.Groups})
}

// policyOf decodes what the controller published.
func policyOf(object *corev1.ConfigMap) (plan.Policy, error) {
	var p tappv1.PublishedPolicy
	if err := json.Unmarshal([]byte(object.Data[tappv1.PolicyKey]), &p); err != nil {
		return plan.Policy{}, fmt.Errorf("configmaps %q, key %q: %w", object.Name, tappv1.PolicyKey, err)
	}
	return plan.Policy{DeletePodAfterAppFinish: p.DeletePodAfterAppFinish, NodeLostAfter: p.NodeLostAfter.Duration, Resize: p.Resize, Tracking: p.TrackingLabel}, nil
}
