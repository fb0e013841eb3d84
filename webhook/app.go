package webhook

import (
	"context"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	appv1 "tkestack.io/tapp/crd/app/v1"
	"tkestack.io/tapp/crd/client"
	"tkestack.io/tapp/webhook/app"
)

// appValidator answers reviews of /validate/app.
type appValidator struct {
	naming app.Naming
}

func (v *appValidator) validate(ctx context.Context, r *request[*appv1.App]) (answer, error) {
	if r.Operation != admissionv1.Create && r.Operation != admissionv1.Update || r.SubResource != "" {
		return allowed(), nil // a Scale has nothing that the schema does not check
	}
	if r.Resource != metav1.GroupVersionResource(appv1.Resource()) || r.Kind != metav1.GroupVersionKind(appv1.GroupVersionKind()) {
		return answer{}, fmt.Errorf("this webhook judges apps of %s, and got %s %s/%s of kind %s: correct the rules of the webhook configuration",
			appv1.SchemeGroupVersion, r.Resource.Resource, r.Resource.Group, r.Resource.Version, r.Kind.Kind)
	}
	now, was := r.Object, r.OldObject
	switch {
	case now == nil:
		return answer{}, errors.New("the request has no object")
	case r.Operation == admissionv1.Update && was == nil:
		return answer{}, errors.New("the request has no old object")
	}
	now.Namespace = r.Namespace
	appv1.Default(now)
	if was != nil {
		appv1.Default(was)
		if equality.Semantic.DeepEqual(now.Spec, was.Spec) {
			return allowed(), nil // labels, finalizers
		}
	}
	return v.decide(ctx, now, was), nil
}

// decide judges an App by the rules. What was wrong in the same way before does not
// block an update.
func (v *appValidator) decide(ctx context.Context, now, was *appv1.App) answer {
	var fresh []finding
	var notes advice
	for _, r := range app.Rules() {
		found := findings(r.Name, r.Judge(now))
		if was != nil && len(found) > 0 {
			var old []finding
			found, old = ratchet(found, findings(r.Name, r.Judge(was)))
			for _, f := range old {
				notes.add(f.rule, fmt.Sprintf("%s (this was so before, and does not block the update)", f))
			}
		}
		fresh = append(fresh, found...)
		if r.Advise != nil {
			notes.add(r.Name, r.Advise(now)...)
		}
	}
	if len(fresh) > 0 {
		a := denial(invalidOf(appv1.GroupVersionKind().GroupKind(), now.Name, fresh))
		a.denied = rulesOf(fresh)
		return a
	}
	taken, err := app.AdviseChildren(ctx, now, v.naming)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Advice left out")
	}
	notes.add("Children", taken...)
	a := allowed(notes.texts...)
	a.warned = notes.rules
	return a
}

// liveNaming lists the Apps of the namespace.
func liveNaming(apps client.AppsGetter) app.Naming {
	return func(ctx context.Context, kind, namespace, name string) ([]*appv1.App, error) {
		list, err := apps.Apps(namespace).List(ctx, metav1.ListOptions{ResourceVersion: fromCache})
		if err != nil {
			return nil, fmt.Errorf("list the Apps of namespace %s: %w", namespace, err)
		}
		var out []*appv1.App
		for i := range list.Items {
			s := &list.Items[i].Spec
			if kind == "Deployment" && s.DeploymentTemplate.Name == name || kind == "Service" && s.ServiceTemplate.Name == name {
				out = append(out, &list.Items[i])
			}
		}
		return out, nil
	}
}
