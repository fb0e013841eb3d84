package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"tkestack.io/tapp/api/access"
	"tkestack.io/tapp/api/answer"
	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/fleet"
)

// MembersOptions say how the clusters of the fleet are reached.
type MembersOptions struct {
	// Namespace of the registrations on the hub; empty: no clusters are read.
	Namespace string
	// FleetID is the label value of the hub's parts; empty: the UID of its namespace kube-system.
	FleetID string
	// SelfCluster is the hub's own name as one of its clusters; empty: it is none.
	SelfCluster string
	// AllowLocal lets clusters have loopback and link-local addresses.
	AllowLocal bool
}

// Members are the clusters of the fleet, which are read live: no pods of theirs are kept in
// memory but for moments. Nothing is written to them, nor to their registrations.
type Members struct {
	config  *rest.Config
	options MembersOptions
	metrics *fleet.Metrics
	now     atomic.Pointer[fleet.Fleet]
}

// NewMembers makes them. They are known while Run runs.
func NewMembers(config *rest.Config, o MembersOptions) *Members {
	return &Members{config: rest.CopyConfig(config), options: o, metrics: fleet.NewMetrics(prometheus.NewRegistry())} // the hub's controller tells of its clusters
}

// hubAgain is how soon the hub is asked again for its id.
const hubAgain = 2 * time.Second

// Run knows the clusters until ctx ends.
func (m *Members) Run(ctx context.Context) error {
	core, err := corev1client.NewForConfig(m.config)
	if err != nil {
		return fmt.Errorf("making a client of registrations: %w", err)
	}
	id, err := m.id(ctx, core)
	if err != nil || id == "" {
		return err
	}
	known, err := fleet.New(fleet.Options{
		HubClient: core, HubWatches: core, Namespace: m.options.Namespace, Selector: v1beta1.LabelFleetID + "=" + id,
		SelfCluster: m.options.SelfCluster, SelfConfig: m.config, UserAgent: m.config.UserAgent, AllowLocal: m.options.AllowLocal,
		Leading: func() bool { return false }, Metrics: m.metrics,
	})
	if err != nil {
		return err
	}
	m.now.Store(known)
	known.Run(ctx)
	return nil
}

// id of the hub; empty: ctx has ended.
func (m *Members) id(ctx context.Context, core corev1client.NamespacesGetter) (string, error) {
	if m.options.FleetID != "" {
		return m.options.FleetID, nil
	}
	again := time.NewTicker(hubAgain)
	defer again.Stop()
	for told := false; ; {
		asked, cancel := context.WithTimeout(ctx, access.ReviewTimeout)
		system, err := core.Namespaces().Get(asked, metav1.NamespaceSystem, metav1.GetOptions{})
		cancel()
		switch {
		case err == nil:
			return string(system.UID), nil
		case !told && ctx.Err() == nil:
			told = true
			klog.FromContext(ctx).Info("The hub's id is not known yet, and its clusters are not read; it is the UID of the namespace kube-system, or --fleet-id", "err", err)
		}
		select {
		case <-ctx.Done():
			return "", nil
		case <-again.C:
		}
	}
}

// errNoMembers is the answer where clusters are not read.
var errNoMembers = answer.NotFound("the clusters of AppSets are not read here: tapp api does it with --cluster-namespace")

// errMembersUnknown is the answer until the registrations are read.
var errMembersUnknown = apierrors.NewServiceUnavailable("the clusters are not known yet")

// reader of a cluster. Its error is one that a caller may read.
func (m *Members) reader(name string) (*fleet.Reader, error) {
	if m == nil {
		return nil, errNoMembers
	}
	known := m.now.Load()
	if known == nil {
		return nil, errMembersUnknown
	}
	r, err := known.Reader(name)
	state := (*fleet.StateError)(nil)
	switch {
	case errors.Is(err, fleet.ErrUnknown):
		return nil, answer.NotFound("no cluster is registered as %q", name)
	case errors.As(err, &state):
		return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("cluster %s is %s: %s", state.Name, state.State, cmp.Or(state.Message, state.Reason)))
	}
	return r, err
}

// meta of a cluster's registration.
func (m *Members) meta(name string) map[string]string {
	if m == nil || m.now.Load() == nil {
		return nil
	}
	member, _ := m.now.Load().Member(name)
	return member.Meta
}

// part of a cluster as it was seen last, also where the cluster does not answer; nil: none is known.
func (m *Members) part(cluster, namespace, name string) (*v1beta1.AdvDeployment, fleet.Member, error) {
	if m == nil {
		return nil, fleet.Member{}, errNoMembers
	}
	known := m.now.Load()
	if known == nil {
		return nil, fleet.Member{}, errMembersUnknown
	}
	member, ok := known.Member(cluster)
	if !ok {
		return nil, fleet.Member{}, answer.NotFound("no cluster is registered as %q", cluster)
	}
	for _, p := range known.Parts(namespace, name) {
		if p.Cluster == member.Name {
			return p.Read(), member, nil
		}
	}
	return nil, member, nil
}
