package sim

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/sim/apiserver"
)

// namespace that all of it happens in.
const namespace = "shop"

// Resources of the API server.
const (
	pods      = apiserver.Pods
	claims    = apiserver.Claims
	revisions = apiserver.Revisions
	nodes     = apiserver.Nodes
	events    = apiserver.Events
	tapps     = "tapps"
)

// pathOfConditions is where the schema of TApps bounds what a controller writes.
const pathOfConditions = "status.conditions"

type (
	object = apiserver.Object
	change = apiserver.Change
)

func kinds() map[string]apiserver.Kind {
	out := apiserver.Core()
	tapp := apiserver.Custom(tappv1.GroupVersionKind(), func() object { return &tappv1.TApp{} }, func() runtime.Object { return &tappv1.TAppList{} })
	prepare := tapp.Prepare
	tapp.Prepare = func(o object) {
		prepare(o)
		o.(*tappv1.TApp).Status.ObservedGeneration = -1 // the CRD's default
	}
	restrict := tapp.Restrict
	tapp.Restrict = func(s *apiserver.Server, sub string, now, old object) error {
		if err := checkSchema(now.(*tappv1.TApp)); err != nil {
			return s.Invalid(tapps, now.GetName(), pathOfConditions, err.Error())
		}
		return restrict(s, sub, now, old)
	}
	out[tapps] = tapp
	rivalKinds(out)
	return out
}

func clone[T object](o T) T { return apiserver.Clone(o) }

func controllerOf(o object) types.UID { return apiserver.ControllerOf(o) }

func keyOf(o object) string { return apiserver.Key(o) }

// stem is a name or key without the number at its end, and the number.
func stem(name string) (string, string) {
	i := strings.LastIndexByte(name, '-')
	if i < 0 {
		return name, ""
	}
	return name[:i], name[i+1:]
}

// claimPrefix begins the names of claims.
const claimPrefix = "data-"

// claimOf an instance, and instanceOf a claim, by key.
func claimOf(instance string) string {
	namespace, name, _ := strings.Cut(instance, "/")
	return namespace + "/" + claimPrefix + name
}

func instanceOf(claim string) string {
	namespace, name, _ := strings.Cut(claim, "/")
	return namespace + "/" + strings.TrimPrefix(name, claimPrefix)
}

// isTApp says whether a reference is one to a TApp.
func isTApp(ref *metav1.OwnerReference) bool {
	return ref != nil && ref.Kind == tappv1.Kind && ref.APIVersion == tappv1.SchemeGroupVersion.String()
}
