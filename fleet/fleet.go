// Package fleet knows the clusters of a fleet: which are registered, whether they can be
// reached, whether what is known of them is current, and how to write to them. It knows
// AdvDeployments only as what is carried, and no controller.
//
//	registration.go  what a Secret or ConfigMap of the hub says of a cluster
//	profiles.go      what a ClusterProfile says of it
//	sources.go       watches them
//	members.go       one member for each name; added, changed and dropped at run time
//	member.go        what is known of one, from its session or remembered
//	session.go       one connection to a member: identity, cache; probe.go probes it
//	lease.go         which hub may write to a member
//	parts.go         the cache of AdvDeployments, and up to when it is true
//	pack.go          parts in little memory
//	delta.go         what an object has otherwise than another one
//	carrier.go       writes
//
// What it does to the API of the hub, and needs permission for, in the namespace of the
// registrations:
//
//	configmaps, secrets  list watch patch; clusterprofiles, where they are used
//	events               create
//
// and of a member:
//
//	advdeployments              get list watch create patch delete
//	namespaces (kube-system)    get
//	leases (tapp-fleet in kube-system)  get update; create where there is none
//	secrets (one namespace)     list create patch delete
//	/readyz, /livez             get
package fleet

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"tkestack.io/tapp/controller/events"
	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/fleet/kubeconfig"
)

// Member is what is known of a cluster.
type Member struct {
	// Name is folded: v1beta1.FoldClusterName.
	Name string
	// UID is that of the namespace kube-system, as it is kept with the registration;
	// empty before the first contact.
	UID types.UID
	// Meta is the metadata of the registration. A cluster that is not registered any more
	// has that of its last one.
	Meta            map[string]string
	State           v1beta1.ClusterState
	Reason, Message string
	// AsOf is up to when the parts are known to be true.
	AsOf time.Time
	// Fresh: the cluster answers, and its parts were known to be true lately. Only then is
	// a part that is not there known not to be there.
	Fresh bool
}

// Part is an AdvDeployment in a member.
type Part struct {
	Cluster string
	// Read makes the object of what is kept of it, each time anew: thousands of them take much memory. Most of what it
	// holds is shared: copy before writing to it.
	Read func() *v1beta1.AdvDeployment
}

// Carrier writes to one member and reads from it live. Its methods refuse with a
// *StateError where the member is in no state to be written to. The AdvDeployments that they
// return are trimmed as those of a cache, may be in one, and are not to be changed.
type Carrier interface {
	// Apply makes an AdvDeployment what the manifest says, by server-side apply with force.
	// An empty version only creates; otherwise the object has to have that UID and that
	// resourceVersion. Conflicts are errors as the API server sends them.
	Apply(ctx context.Context, a Apply) (*v1beta1.AdvDeployment, error)
	// Patch an AdvDeployment by a JSON patch, for what no apply takes away.
	Patch(ctx context.Context, namespace, name string, patch []byte) (*v1beta1.AdvDeployment, error)
	// Delete an AdvDeployment with this UID, in the foreground.
	Delete(ctx context.Context, namespace, name string, uid types.UID) error
	// KeepChart makes sure that the member has the archive of a chart, an immutable Secret, and
	// that its labels and annotations are these.
	KeepChart(ctx context.Context, chart *corev1.Secret) error
	// Charts that the member keeps for this fleet. DropChart deletes one of them, unless it has
	// been kept anew since it was listed, which is a conflict.
	Charts(ctx context.Context) ([]metav1.PartialObjectMetadata, error)
	DropChart(ctx context.Context, chart *metav1.PartialObjectMetadata) error
	// Observe reads an AdvDeployment live.
	Observe(ctx context.Context, namespace, name string) (*v1beta1.AdvDeployment, error)
}

// Apply of a part.
type Apply struct {
	Namespace, Name string
	// Manifest is the object as JSON would have it, without uid and resourceVersion.
	Manifest map[string]any
	UID      types.UID
	Version  string
}

// Options of a Fleet. All fields are required but those that say otherwise.
type Options struct {
	// HubClient reads and writes registrations, and HubWatches watches them.
	HubClient, HubWatches corev1client.CoreV1Interface
	// Events tells of registrations, if it is not nil. Its Run is the caller's.
	Events *events.Recorder
	// Namespace of the registrations.
	Namespace string
	// ChartNamespace has the archives of charts, in each member.
	ChartNamespace string
	// Selector of the parts, by their label of the fleet's id. The API servers filter by it.
	Selector string
	// HubUID is that of the hub's namespace kube-system. With it, the hub has a Lease in each
	// member, and writes to none that another hub has; empty: no Leases.
	HubUID types.UID
	// SelfCluster is the hub's own name as a member; empty: it is none. SelfConfig is how to
	// reach it then.
	SelfCluster string
	SelfConfig  *rest.Config
	// Providers make credentials for the clusters of ClusterProfiles, which Profiles reads
	// and writes in the namespace of the registrations; nil: there are none.
	Providers kubeconfig.Providers
	Profiles  dynamic.ResourceInterface
	// UserAgent of requests to members.
	UserAgent string
	// AllowLocal lets members have loopback and link-local addresses.
	AllowLocal bool
	// Leading says whether this process may write to the hub; nil: always.
	Leading func() bool
	Metrics *Metrics
	// Contain calls f, which works for one member, and returns a panic as an error; nil:
	// nobody counts them.
	Contain func(f func() error) error
	// Checks lists the clusters; it may be nil.
	Checks Checks
	// Network reaches members; nil: the real one.
	Network Network
	// Clock is the real one if nil.
	Clock clock.WithTicker
}

// Checks lists what a process works with.
type Checks interface {
	AddListedCheck(name string, check func() error)
	RemoveListedCheck(name string)
}

// Fleet knows the registered clusters, and those that were.
type Fleet struct {
	Options

	mu       sync.RWMutex
	onMember []func(name string)
	onPart   []func(cluster, namespace, name string)
	members  map[string]*member
	sources  *sources
	gauges   gauges
	packer   packer
	// running is the context of Run, and sessions what it waits for.
	running  context.Context //nolint:containedctx // sessions begin and end while it lasts
	sessions sync.WaitGroup
	// probeTimeout is shorter in tests.
	probeTimeout time.Duration
	// registered is when the registrations were first known.
	registered time.Time
}

// ErrUnknown is the error of a name that no registration has or had.
var ErrUnknown = errors.New("no cluster of that name was ever registered here")

// StateError tells why a member cannot be written to.
type StateError struct{ Member }

func (e *StateError) Error() string {
	text := "cluster " + e.Name + " is " + string(e.State)
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}
