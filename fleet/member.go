package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/fleet/health"
)

// Reasons of members without a usable registration.
const (
	ReasonUnregistered = "Unregistered"
	ReasonMistaken     = "AnotherCluster"
)

// member is a cluster that is registered, or was.
type member struct {
	fleet *Fleet
	name  string
	// uid is the identity; read by sessions that hold their lock.
	uid atomic.Pointer[types.UID]

	mu  sync.RWMutex
	reg *registration // nil: it is not registered any more
	// last is the last registration that there was.
	last *registration
	// current serves. next has a newer kubeconfig, and takes its place once it is Ready, or
	// found to lead to another cluster.
	current, next *session
	// known is the cache that was listed last; a session that has not listed shows nothing.
	known *parts
	told  Member
	news  news
}

// keepError: the identity could not be stored.
type keepError struct{ err error }

func (e *keepError) Error() string {
	return "its identity cannot be kept with its registration: " + e.err.Error()
}

func (m *member) identity() types.UID {
	if uid := m.uid.Load(); uid != nil {
		return *uid
	}
	return ""
}

// contact keeps the identity of a member that was never heard before.
func (m *member) contact(ctx context.Context, uid types.UID) error {
	if m.identity() != "" {
		return nil
	}
	m.mu.RLock()
	reg := m.reg
	m.mu.RUnlock()
	switch {
	case reg == nil:
		return errNotKept
	case reg.from.Kind == "": // the hub itself is who it is
	case m.fleet.Leading != nil && !m.fleet.Leading():
		return errNotKept
	default:
		if err := m.keep(ctx, reg, uid); err != nil {
			return err
		}
		klog.FromContext(ctx).Info("First contact; its identity is kept with its registration", "cluster", m.name, "uid", uid)
	}
	m.uid.Store(&uid)
	return nil
}

// keep stores the identity with the registration.
func (m *member) keep(ctx context.Context, reg *registration, uid types.UID) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": reg.from.UID, "resourceVersion": reg.from.ResourceVersion,
		"annotations": map[string]string{v1beta1.AnnotationClusterUID: string(uid)},
	}})
	if err != nil {
		return &keepError{err}
	}
	hub, from, options := m.fleet.HubClient, reg.from, metav1.PatchOptions{FieldManager: v1beta1.Component}
	switch from.Kind {
	case "Secret":
		_, err = hub.Secrets(from.Namespace).Patch(ctx, from.Name, types.MergePatchType, patch, options)
	case kindClusterProfile:
		_, err = m.fleet.Profiles.Patch(ctx, from.Name, types.MergePatchType, patch, options)
	default:
		_, err = hub.ConfigMaps(from.Namespace).Patch(ctx, from.Name, types.MergePatchType, patch, options)
	}
	if err != nil {
		return &keepError{err}
	}
	return nil
}

// carry stores an identity that is known from before with an object that lacks it: the
// registration moved there. It is tried again with each event of a registration.
func (m *member) carry(ctx context.Context) {
	m.mu.RLock()
	reg, uid := m.reg, m.identity()
	m.mu.RUnlock()
	if reg == nil || reg.from.Kind == "" || reg.kept || uid == "" || m.fleet.Leading != nil && !m.fleet.Leading() {
		return
	}
	if err := m.keep(ctx, reg, uid); err != nil {
		klog.FromContext(ctx).Info("The identity of a cluster is not kept with its new registration yet", "cluster", m.name, "err", err)
	}
}

// register takes a registration; nil: there is none any more.
func (m *member) register(reg *registration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, last := m.reg, m.last
	m.reg = reg
	if reg == nil {
		m.end()
		return
	}
	m.last = reg
	if reg.same(before) && reg.config == nil && reg.refused == "" {
		reg.config, reg.refused = before.config, before.refused
	}
	reg.judge(m.fleet.AllowLocal)
	// The identity stays with the name when its registration moves into another object. On
	// the same object it goes when somebody takes it off, to accept another cluster.
	if reg.uid != "" || last != nil && last.from.UID == reg.from.UID && last.kept {
		m.uid.Store(&reg.uid)
	}
	if reg.maintaining || reg.refused != "" {
		m.end()
		return
	}
	latest := m.current
	if m.next != nil {
		latest = m.next
	}
	if latest != nil && reg.same(before) {
		return
	}
	s, err := m.connect(reg.config)
	if err != nil {
		reg.refused = err.Error()
		m.end()
		return
	}
	if m.next != nil {
		m.next.cancel()
	}
	if m.current == nil {
		m.current, m.next = s, nil
	} else {
		m.next = s
	}
}

// end the connections. What they knew is remembered. The caller has the lock.
func (m *member) end() {
	for _, s := range []*session{m.current, m.next} {
		if s != nil {
			s.cancel()
		}
	}
	m.current, m.next = nil, nil
}

// connect makes a session that runs. The caller has the lock.
func (m *member) connect(config *rest.Config) (*session, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = m.fleet.UserAgent
	s := &session{owner: m, clock: m.fleet.Clock, timeout: m.fleet.probeTimeout, every: intervalOf(m.name), selector: m.fleet.Selector, contain: m.fleet.Contain}
	var err error
	over := m.fleet.Network
	if over == nil {
		over = newWires(m.fleet.AllowLocal || m.reg.from.Kind == "")
	}
	if s.connection, err = connect(config, over, s.verify); err != nil {
		return nil, err
	}
	if m.fleet.HubUID != "" && m.reg.from.Kind != "" {
		s.lease = newLease(s.connection.requests.leases.Leases(metav1.NamespaceSystem), string(m.fleet.HubUID), s.clock, s.restored)
		s.leading = func() bool { return m.fleet.Leading == nil || m.fleet.Leading() }
	}
	s.parts = newParts(s.clock, &m.fleet.packer, func(key types.NamespacedName) { m.partChanged(s, key) }, s.listedAnew)
	ctx, cancel := context.WithCancel(m.fleet.running)
	s.cancel = cancel
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithValues("cluster", m.name))
	m.fleet.sessions.Go(func() {
		defer cancel()
		s.run(ctx)
	})
	return s, nil
}

// partChanged tells of a part, unless another session serves.
func (m *member) partChanged(s *session, key types.NamespacedName) {
	m.mu.RLock()
	serves := m.known == s.parts
	m.mu.RUnlock()
	if serves {
		m.fleet.tellPart(m.name, key)
	}
}

// changed looks which session serves, and tells of what is different.
func (m *member) changed(*session) {
	was, now, keys, tell := m.choose()
	if tell != nil {
		m.fleet.mu.RLock()
		ctx := m.fleet.running
		m.fleet.mu.RUnlock()
		tell(ctx)
	}
	for _, key := range keys {
		m.fleet.tellPart(m.name, key)
	}
	if was.State != now.State || was.Reason != now.Reason || was.Message != now.Message || was.Fresh != now.Fresh || was.UID != now.UID || !maps.Equal(was.Meta, now.Meta) {
		m.fleet.tellMember(was, now)
	}
}

// choose which session serves. It returns what was told of the member and what is to be,
// the parts that are to be looked at again, and what tells people of news; nil: there is none.
func (m *member) choose() (was, now Member, keys []types.NamespacedName, tell func(context.Context)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.next != nil {
		next, _, _, mistaken := m.next.health()
		usable := false
		if m.current != nil {
			state, _, _, other := m.current.health()
			usable = other == "" && (state == health.Ready || state == health.Suspect)
		}
		// Another cluster is what a new process would find, too: the registration is wrong,
		// whatever the old kubeconfig still reaches.
		if next == health.Ready || mistaken != "" || !usable {
			if m.current != nil {
				m.current.cancel()
			}
			m.current, m.next = m.next, nil
		}
	}
	if m.current != nil && m.known != m.current.parts {
		if _, listed := m.current.parts.truth(); listed {
			if m.known != nil {
				keys = m.known.keys()
			}
			m.known = m.current.parts
			keys = append(keys, m.known.keys()...)
		}
	}
	was, m.told = m.told, m.snapshot()
	now = m.told
	if before, is := m.news.of(&now); is {
		from := m.last.from
		tell = func(ctx context.Context) { m.fleet.announce(ctx, from, before, &now) }
	}
	return was, now, keys, tell
}

// look is the member as it is now.
func (m *member) look() Member {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.snapshot()
}

// snapshot is look for who has the lock.
func (m *member) snapshot() Member {
	out := Member{Name: m.name, UID: m.identity()}
	if m.last != nil {
		out.Meta = m.last.meta
	}
	if m.known != nil {
		out.AsOf, _ = m.known.truth()
	}
	switch {
	case m.reg == nil:
		out.State, out.Reason, out.Message = v1beta1.ClusterUnregistered, ReasonUnregistered, "nothing registers it any more"
		return out
	case m.reg.maintaining:
		out.State, out.Reason, out.Message = v1beta1.ClusterMaintaining, ReasonMaintained, "its registration says that it is under maintenance"
		return out
	case m.reg.refused != "":
		out.State, out.Reason, out.Message = v1beta1.ClusterUnfit, ReasonKubeconfig, bounded(m.reg.refused)
		return out
	case m.current == nil:
		out.State, out.Reason, out.Message = v1beta1.ClusterOffline, health.ReasonConnecting, "it has not answered yet"
		return out
	}
	state, reason, message, mistaken := m.current.health()
	if mistaken != "" {
		out.State, out.Reason = v1beta1.ClusterMistaken, ReasonMistaken
		out.Message = fmt.Sprintf("the cluster that answers has the UID %s, and the registered one %s; if that is right: `kubectl tapp fleet accept %s`", mistaken, out.UID, m.name)
		return out
	}
	out.State, out.Reason, out.Message = stateOf(state), reason, message
	if m.next != nil {
		if state, _, message, _ := m.next.health(); state != health.Connecting {
			out.Message = bounded("its new kubeconfig is not used yet: " + message)
		}
	}
	if m.known == m.current.parts {
		out.Fresh = health.Fresh(state, out.AsOf, m.fleet.Clock.Now())
	}
	return out
}

// hasSynced says whether something is known of it, for better or worse.
func (m *member) hasSynced() bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.current == nil {
		return true
	}
	state, _, _, mistaken := m.current.health()
	return state != health.Connecting || mistaken != "" || m.current.silent()
}

func (s *session) silent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.machine.Silent()
}

func stateOf(s health.State) v1beta1.ClusterState {
	switch s {
	case health.Ready:
		return v1beta1.ClusterReady
	case health.Suspect:
		return v1beta1.ClusterSuspect
	case health.Unfit:
		return v1beta1.ClusterUnfit
	}
	return v1beta1.ClusterOffline
}

// packed is what is known of an AdvDeployment there; nil: nothing.
func (m *member) packed(key types.NamespacedName) *packed {
	m.mu.RLock()
	known := m.known
	m.mu.RUnlock()
	if known == nil {
		return nil
	}
	return known.get(key)
}

// syncTimeout bounds how long a start waits for members.
const syncTimeout = 10 * time.Second
