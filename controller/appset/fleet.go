package appset

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// Fleet are the clusters, as far as they are registered.
type Fleet interface {
	// HasSynced says whether the registrations are known, and the caches of all clusters
	// that answer are filled.
	HasSynced() bool
	// Members are all of them, and Member is the one with this folded name.
	Members() []Member
	Member(name string) (Member, bool)
	// Parts that the clusters have under this name, or had when they were last seen.
	Parts(namespace, name string) []Part
	// Subscribe calls onMember at each change of a member, and onPart at each of a part.
	Subscribe(onMember func(name string), onPart func(cluster, namespace, name string))
	// Carrier writes to a member.
	Carrier(name string) (Carrier, error)
}

// Member is what is known of a cluster.
type Member struct {
	// Name is folded.
	Name string
	// UID is that of the namespace kube-system; empty before the first contact.
	UID             types.UID
	Meta            map[string]string
	State           v1beta1.ClusterState
	Reason, Message string
	// AsOf is the time up to which the parts are known.
	AsOf time.Time
	// Fresh: the parts are known up to now.
	Fresh bool
}

// Part is an AdvDeployment in a cluster.
type Part struct {
	Cluster string
	// Read makes the object. What it holds is shared.
	Read func() *v1beta1.AdvDeployment
}

// Apply of a part. An empty version only creates; otherwise the part has to have that UID
// and that resourceVersion.
type Apply struct {
	Namespace, Name string
	Manifest        map[string]any
	UID             types.UID
	Version         string
}

// Carrier reads and writes the parts of one cluster. Errors are the API server's.
type Carrier interface {
	Apply(ctx context.Context, a Apply) (*v1beta1.AdvDeployment, error)
	// Patch by a JSON patch.
	Patch(ctx context.Context, namespace, name string, patch []byte) (*v1beta1.AdvDeployment, error)
	Delete(ctx context.Context, namespace, name string, uid types.UID) error
	// KeepChart makes sure that the cluster has the archive of a chart, an immutable Secret, and
	// that its labels and annotations are these.
	KeepChart(ctx context.Context, chart *corev1.Secret) error
	// Charts that the cluster keeps for this fleet. DropChart deletes one of them, unless it has
	// been kept anew since it was listed, which is a conflict.
	Charts(ctx context.Context) ([]metav1.PartialObjectMetadata, error)
	DropChart(ctx context.Context, chart *metav1.PartialObjectMetadata) error
	// Observe reads live.
	Observe(ctx context.Context, namespace, name string) (*v1beta1.AdvDeployment, error)
}
