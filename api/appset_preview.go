package api

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/api/access"
	apiv1 "tkestack.io/tapp/api/v1"
	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/foresight"
	"tkestack.io/tapp/plan/view"
)

// previewAppSet tells what applying a manifest would do in all clusters, by the planners that
// would do it. Nothing is written, and no other cluster is asked.
func (a *API) previewAppSet(q *request) error {
	before, after, err := previewed(a, q, previewedKind[*v1beta1.AppSet]{
		apiVersion: v1beta1.SchemeGroupVersion.String(), kind: v1beta1.KindAppSet, access: appSetAccess,
		empty: func() *v1beta1.AppSet { return &v1beta1.AppSet{} },
		get: func(name string) (*v1beta1.AppSet, error) {
			return a.clients.appSets.AppSets(q.namespace).Get(q.ctx(), name, metav1.GetOptions{})
		},
	})
	if err != nil {
		return err
	}
	v1beta1.DefaultAppSet(after)
	foreseen := foresight.Of(before, after, time.Now())
	out := apiv1.AppSetPreview{Namespace: q.namespace, Name: after.Name, Created: foreseen.Created, State: string(foreseen.State),
		AtOnce: foreseen.AtOnce, Stages: foreseen.Stages, Last: foreseen.Last, Notes: foreseen.Notes, Paused: after.Spec.UpdateStrategy.Paused, Sentences: []string{}}
	for _, p := range foreseen.Problems {
		out.Problems = append(out.Problems, p.Field+": "+p.Why)
	}
	if len(out.Problems) == 0 {
		out.Sentences = append(out.Sentences, foreseen.Lines()...)
	}
	if before != nil {
		was := before.DeepCopy()
		v1beta1.DefaultAppSet(was)
		if out.Changes, err = view.Changes("spec", was.Spec, after.Spec); err != nil {
			return err
		}
	}
	return q.writeValue(out)
}

// previewedKind is a kind of which manifests are previewed.
type previewedKind[T metav1.Object] struct {
	apiVersion, kind string
	access           func(verb, namespace, name string) access.Access
	empty            func() T
	get              func(name string) (T, error)
}

// previewed reads the manifest of a request, and returns the object as it is and as it would
// be. What there is not yet is the zero value before.
func previewed[T metav1.Object](a *API, q *request, k previewedKind[T]) (before, after T, err error) {
	object, err := q.manifestOf(k.apiVersion, k.kind)
	if err != nil {
		return before, after, err
	}
	after = k.empty()
	if err := strict(object, k.kind, after); err != nil {
		return before, after, err
	}
	if err := q.named(after); err != nil {
		return before, after, err
	}
	if err := a.may(q, k.access("get", q.namespace, q.name)); err != nil {
		return before, after, err
	}
	stored, err := k.get(q.name)
	switch {
	case apierrors.IsNotFound(err):
		after.SetNamespace(q.namespace)
		return before, after, nil
	case err != nil:
		return before, after, err
	}
	after = k.empty()
	return stored, after, merge(stored, object, k.kind, after)
}
