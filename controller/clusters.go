package controller

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"

	"tkestack.io/tapp/controller/appset"
	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/fleet"
)

// clusters are the fleet as the controller of AppSets knows it. There is one when the
// hub's id is known.
type clusters struct {
	fleet.Options
	namespaces corev1client.NamespacesGetter
	leading    atomic.Bool
	// leases says whether the hub has a Lease in each member.
	leases bool

	mu       sync.RWMutex
	id       string
	fleet    *fleet.Fleet
	onMember func(name string)
	onPart   func(cluster, namespace, name string)
}

// run asks for the hub's id if it has to, and then keeps the fleet current until ctx
// ends.
func (c *clusters) run(ctx context.Context) {
	logger := klog.FromContext(ctx)
	id := c.ID()
	if id == "" || c.leases {
		if err := onceReachable(ctx, func(ctx context.Context) error {
			system, err := c.namespaces.Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
			if err == nil {
				id = cmp.Or(id, string(system.UID))
				if c.leases {
					c.HubUID = system.UID
				}
			}
			return err
		}); err != nil {
			if ctx.Err() == nil {
				logger.Error(err, "The hub's id is not known: let this program get the namespace kube-system, or give --fleet-id and --no-member-lease")
			}
			return
		}
	}
	c.Selector = v1beta1.LabelFleetID + "=" + id
	known, err := fleet.New(c.Options)
	if err != nil {
		logger.Error(err, "There is no fleet")
		return
	}
	c.mu.Lock()
	known.Subscribe(c.onMember, c.onPart)
	c.id, c.fleet = id, known
	c.mu.Unlock()
	known.Run(ctx)
}

// ID is the label of the hub's parts; empty: not known yet.
func (c *clusters) ID() string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.id
}

func (c *clusters) known() *fleet.Fleet {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.fleet
}

// HasSynced implements appset.Fleet, whose other methods are called after it is true.
func (c *clusters) HasSynced() bool {
	known := c.known()
	return known != nil && known.HasSynced()
}

// Subscribe implements appset.Fleet, once.
func (c *clusters) Subscribe(onMember func(name string), onPart func(cluster, namespace, name string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onMember, c.onPart = onMember, onPart
}

// Members implements appset.Fleet.
func (c *clusters) Members() []appset.Member {
	members := c.known().Members()
	out := make([]appset.Member, 0, len(members))
	for _, m := range members {
		out = append(out, appset.Member(m))
	}
	return out
}

// Member implements appset.Fleet.
func (c *clusters) Member(name string) (appset.Member, bool) {
	m, ok := c.known().Member(name)
	return appset.Member(m), ok
}

// Parts implements appset.Fleet.
func (c *clusters) Parts(namespace, name string) []appset.Part {
	parts := c.known().Parts(namespace, name)
	out := make([]appset.Part, 0, len(parts))
	for _, p := range parts {
		out = append(out, appset.Part(p))
	}
	return out
}

// Carrier implements appset.Fleet.
func (c *clusters) Carrier(name string) (appset.Carrier, error) {
	found, err := c.known().Carrier(name)
	if err != nil {
		return nil, err
	}
	return carrier{found}, nil
}

type carrier struct{ fleet.Carrier }

// Apply implements appset.Carrier.
func (c carrier) Apply(ctx context.Context, a appset.Apply) (*v1beta1.AdvDeployment, error) {
	return c.Carrier.Apply(ctx, fleet.Apply(a))
}
