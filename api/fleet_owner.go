package api

import (
	"context"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/fleet"
)

// ownerKinds are those through which a pod can belong to an AdvDeployment.
var ownerKinds = map[string]schema.GroupVersionResource{
	tappv1.GroupName + "/" + tappv1.Kind: tappv1.SchemeGroupVersion.WithResource("tapps"),
	"apps/ReplicaSet":                    appsv1.SchemeGroupVersion.WithResource("replicasets"),
	"apps/Deployment":                    appsv1.SchemeGroupVersion.WithResource("deployments"),
	"apps/StatefulSet":                   appsv1.SchemeGroupVersion.WithResource("statefulsets"),
	"apps/DaemonSet":                     appsv1.SchemeGroupVersion.WithResource("daemonsets"),
}

// annotationRelease is on what a chart's release made.
const annotationRelease = "meta.helm.sh/release-name"

// belonging is the part and the podSet that a pod of a member belongs to. The zero value is
// none.
type belonging struct {
	part   *v1beta1.AdvDeployment
	podSet string
}

// owners follows pods of one member to their AdvDeployments, by UIDs, since anybody can give a pod
// such a name or label. Objects of a chart have no owner. They are recognized by the marks of the
// release on the Deployment, StatefulSet or DaemonSet. So users who may write those marks can make
// their own pods appear as the release's.
type owners struct {
	reader *fleet.Reader
	known  map[types.UID]belonging
}

func newOwners(r *fleet.Reader) *owners { return &owners{reader: r, known: map[types.UID]belonging{}} }

// of an object in a namespace. An error says that the member could not be asked.
func (o *owners) of(ctx context.Context, namespace string, object metav1.Object) (belonging, error) {
	ref := metav1.GetControllerOf(object)
	if ref == nil {
		return belonging{}, nil
	}
	if known, ok := o.known[ref.UID]; ok {
		return known, nil
	}
	found, err := o.follow(ctx, namespace, ref)
	if err == nil {
		o.known[ref.UID] = found
	}
	return found, err
}

func (o *owners) follow(ctx context.Context, namespace string, ref *metav1.OwnerReference) (belonging, error) {
	resource, ok := ownerKinds[group(ref)+"/"+ref.Kind]
	if !ok {
		return belonging{}, nil
	}
	owner, err := o.reader.Owners.Resource(resource).Namespace(namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return belonging{}, nil
	case err != nil:
		return belonging{}, err
	case owner.UID != ref.UID:
		return belonging{}, nil
	}
	next := metav1.GetControllerOf(owner)
	switch {
	case next == nil:
		return o.released(owner), nil
	case group(next) == v1beta1.GroupName && next.Kind == v1beta1.KindAdvDeployment:
		if part := o.reader.Part(namespace, next.Name); part != nil && part.UID == next.UID {
			return belonging{part, owner.Name}, nil
		}
		return belonging{}, nil
	case resource.Resource != "replicasets": // nothing else has an owner in between
		return belonging{}, nil
	}
	return o.of(ctx, namespace, owner)
}

// released says whose release an object without owner is of.
func (o *owners) released(owner metav1.Object) belonging {
	release := owner.GetAnnotations()[annotationRelease]
	part := o.reader.Part(owner.GetNamespace(), owner.GetLabels()[v1beta1.LabelAdvDeployment])
	if release == "" || part == nil || !slices.ContainsFunc(part.Spec.Topology.PodSets, func(p v1beta1.PlacedPodSet) bool { return p.Name == release }) {
		return belonging{}
	}
	return belonging{part, release}
}

// appSetOf a part: its namespace, name and UID on the hub; empty names: it belongs to none.
func appSetOf(part *v1beta1.AdvDeployment) (namespace, name string, uid types.UID) {
	namespace, name, _ = strings.Cut(part.Annotations[v1beta1.AnnotationAppSet], "/")
	return namespace, name, types.UID(part.Labels[v1beta1.LabelAppSetUID])
}
