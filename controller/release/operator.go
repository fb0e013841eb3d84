// Package release carries out what plan/release says about Helm releases, by the rights
// of a ServiceAccount of each release's namespace: it shows the planner what it asks for
// (observe.go, show.go), writes objects and records (steps.go), and decides nothing
// itself.
//
// What it does to the API by its own rights, and needs permission for:
//
//	serviceaccounts (one name, any namespace)  impersonate
//	secrets (one namespace)                    get
//
// All else is done by the ServiceAccount: it needs the rights that `helm install` would
// need, on the objects of the charts and on Secrets.
package release

import (
	"context"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"

	"tkestack.io/tapp/helm"
	plan "tkestack.io/tapp/plan/release"
)

// resync is how long what was read of a release is taken for true where no watch tells
// of it: after as long, drift of such objects is noticed.
const resync = time.Minute

// Resync is when a release is to be looked at again that is at rest.
const Resync = resync + 5*time.Second

// Access is what is done by the rights of one ServiceAccount.
type Access struct {
	Objects dynamic.Interface
	Secrets corev1client.SecretsGetter
	Heads   metadata.Interface
}

// Renderer renders charts.
type Renderer interface {
	Render(ctx context.Context, request helm.Request) (*helm.Rendered, error)
}

// Options of an Operator. All fields are required but those that say otherwise.
type Options struct {
	// As gives access by the rights of a ServiceAccount.
	As func(namespace, account string) (*Access, error)
	// Account is the name of that ServiceAccount, in the namespace of each release.
	Account string
	// Anywhere lets charts have objects of the cluster, and of other namespaces, as far as
	// the ServiceAccount may.
	Anywhere bool
	// Charts are the Secrets with the archives of charts.
	Charts corev1client.SecretInterface
	// Fetch gets the archive of a chart that an AdvDeployment without an AppSet names;
	// nil: such charts are refused.
	Fetch func(ctx context.Context, url, version string) ([]byte, error)
	// Renderer renders charts, and Kinds knows the kinds of the cluster.
	Renderer Renderer
	Kinds    *Kinds
	// Clock is the real one if nil.
	Clock clock.PassiveClock
}

// Operator carries out the plans for releases.
type Operator struct {
	Options
	mu     sync.Mutex
	access map[string]*Access
}

// New makes an Operator. It asks nothing of the API server.
func New(o Options) *Operator {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Operator{Options: o, access: map[string]*Access{}}
}

// in gives access to the namespace of a release.
func (o *Operator) in(namespace string) (*Access, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if a := o.access[namespace]; a != nil {
		return a, nil
	}
	a, err := o.As(namespace, o.Account)
	if err == nil {
		o.access[namespace] = a
	}
	return a, err
}

// Owner of releases: an AdvDeployment.
type Owner struct {
	Namespace, Name string
	UID             types.UID
}

// State is what is remembered of the releases of one AdvDeployment. It is lost at every
// restart. The zero value remembers nothing.
type State struct {
	listed time.Time
	// fresh says that they were listed in this sync, and names are the releases it asks for.
	fresh bool
	names []string
	// stale says that somebody may have run helm: the records are to be read anew.
	stale bool
	// blind says why the records could not be read; empty: they could.
	blind    string
	releases map[string]*release
}

// release is what is known of one release.
type release struct {
	records  []plan.Record
	loaded   map[int]*loaded
	objects  map[plan.Ref]sight
	rendered *rendered
	// refused and hidden are what the API server did not take, and did not show, in this
	// sync.
	refused, hidden map[plan.Ref]string
	overruled       map[plan.Ref][]string
}

// loaded is a record that was read, in the version of its Secret.
type loaded struct {
	version string
	record  *helm.Record
	objects []plan.Object
	hooks   []plan.Hook
}

// sight of an object; nil: there was none.
type sight struct {
	object *unstructured.Unstructured
	at     time.Time
}

// Forget has everything read anew.
func (s *State) Forget() { s.listed = time.Time{} }

// MarkStale has the records read anew, and the objects of those that somebody else wrote.
func (s *State) MarkStale() { s.stale = true }

// Expire has what a plan waits for be read anew when it is looked at next.
func (s *State) Expire(name string, waited []plan.Ref) {
	for _, ref := range waited {
		if ref == plan.RecordRef(name) {
			s.Forget()
		}
		delete(s.of(name).objects, ref)
	}
}

// Refused says what the API server refused in this sync, in its words.
func (s *State) Refused() map[plan.Ref]string {
	out := map[plan.Ref]string{}
	for _, r := range s.releases {
		maps.Copy(out, r.refused)
		maps.Copy(out, r.hidden)
	}
	return out
}

func (s *State) of(name string) *release {
	if s.releases == nil {
		s.releases = map[string]*release{}
	}
	r := s.releases[name]
	if r == nil {
		r = &release{loaded: map[int]*loaded{}, objects: map[plan.Ref]sight{}, refused: map[plan.Ref]string{}, hidden: map[plan.Ref]string{}, overruled: map[plan.Ref][]string{}}
		s.releases[name] = r
	}
	return r
}
