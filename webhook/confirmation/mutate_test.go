package confirmation

import (
	"context"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/webhook/review"
)

func waiting() *v1beta1.AppSet {
	a := &v1beta1.AppSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "u"}}
	a.Status.Rollout = &v1beta1.RolloutStatus{ID: "0123456789-2", Stages: []v1beta1.StageStatus{
		{Name: "canary", State: "Waiting", Token: "abc"}, {Name: "blue", State: "Pending"},
	}}
	return a
}

func request(edit func(*v1beta1.Confirmation)) *review.Request[*v1beta1.Confirmation] {
	c := &v1beta1.Confirmation{ObjectMeta: metav1.ObjectMeta{Name: "web-abc"}}
	c.Spec = v1beta1.ConfirmationSpec{AppSet: "web", Rollout: "0123456789-2", Stage: "canary", Token: "abc", ConfirmedBy: "somebody else"}
	edit(c)
	kind := v1beta1.SchemeGroupVersion.WithKind(v1beta1.KindConfirmation)
	return &review.Request[*v1beta1.Confirmation]{Object: c, AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Name: c.Name, Namespace: "shop", UserInfo: authenticationv1.UserInfo{Username: "ann"},
		Resource: metav1.GroupVersionResource(v1beta1.Confirmations()), Kind: metav1.GroupVersionKind(kind),
	}}
}

// TestGate: what a Confirmation has to say, by the whole message.
func TestGate(t *testing.T) {
	reads := Webhook{AppSet: func(_ context.Context, namespace, name string) (*v1beta1.AppSet, error) {
		if namespace != "shop" || name != "web" {
			return nil, apierrors.NewNotFound(v1beta1.AppSets().GroupResource(), name)
		}
		return waiting(), nil
	}, AdvDeployment: func(_ context.Context, _, name string) (*v1beta1.AdvDeployment, error) {
		d := &v1beta1.AdvDeployment{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "d"}}
		switch name {
		case "lone":
			d.Status.Rollout = waiting().Status.Rollout
		case "part":
			d.Labels = map[string]string{v1beta1.LabelAppSetUID: "u"}
		case "still":
		default:
			return nil, apierrors.NewNotFound(v1beta1.AdvDeployments().GroupResource(), name)
		}
		return d, nil
	}}
	lone, err := reads.Mutate(t.Context(), request(func(c *v1beta1.Confirmation) { c.Spec.AppSet = "lone" }))
	if owner := `"kind":"AdvDeployment","name":"lone","uid":"d"`; err != nil || !lone.Allowed || !strings.Contains(string(lone.Patch), owner) {
		t.Errorf("one that no AppSet made: %+v %s, %v", lone, lone.Patch, err)
	}
	for name, c := range map[string]struct {
		edit func(*v1beta1.Confirmation)
		want string
	}{
		"good":          {func(*v1beta1.Confirmation) {}, ""},
		"no AppSet":     {func(c *v1beta1.Confirmation) { c.Spec.AppSet = "other" }, "spec.appSet: Invalid value: there is no AppSet other in this namespace, and no AdvDeployment other that has a rollout of its own"},
		"a part":        {func(c *v1beta1.Confirmation) { c.Spec.AppSet = "part" }, "spec.appSet: Invalid value: there is no AppSet part in this namespace, and no AdvDeployment part that has a rollout of its own"},
		"no rollout":    {func(c *v1beta1.Confirmation) { c.Spec.AppSet = "still" }, "spec.rollout: Invalid value: AdvDeployment still has no rollout"},
		"later, alone":  {func(c *v1beta1.Confirmation) { c.Spec.AppSet, c.Spec.Stage = "lone", "blue" }, "spec.stage: Invalid value: no gate waits after stage blue, which is: Pending"},
		"older rollout": {func(c *v1beta1.Confirmation) { c.Spec.Rollout = "0123456789-1" }, "spec.rollout: Invalid value: the rollout of AppSet web is 0123456789-2; a confirmation of another one opens nothing"},
		"later stage":   {func(c *v1beta1.Confirmation) { c.Spec.Stage = "blue" }, "spec.stage: Invalid value: no gate waits after stage blue, which is: Pending"},
		"no stage":      {func(c *v1beta1.Confirmation) { c.Spec.Stage = "red" }, "spec.stage: Invalid value: rollout 0123456789-2 has no stage red that waits"},
		"other token":   {func(c *v1beta1.Confirmation) { c.Spec.Token = "abd" }, "spec.token: Invalid value: the gate after stage canary has another token: see status.rollout.stages[canary].token"},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := reads.Mutate(t.Context(), request(c.edit))
			if err != nil {
				t.Fatal(err)
			}
			if c.want == "" {
				const patch = `[{"op":"add","path":"/spec/confirmedBy","value":"ann"},{"op":"add","path":"/metadata/ownerReferences","value":[{"apiVersion":"workload.dmall.com/v1beta1","kind":"AppSet","name":"web","uid":"u"}]}]`
				if !a.Allowed || string(a.Patch) != patch {
					t.Errorf("%+v: %s", a, a.Patch)
				}
				return
			}
			if a.Allowed || !strings.HasSuffix(a.Result.Message, c.want) {
				t.Errorf("got  %s\nwant %s", a.Result.Message, c.want)
			}
		})
	}
}
