package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"tkestack.io/tapp/controller/events"
	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/process/parallel"
)

// New makes a fleet that knows nothing until Run is called.
func New(o Options) (*Fleet, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Namespace == "" {
		return nil, errors.New("the namespace of the registered clusters is not known: give --cluster-namespace")
	}
	if o.Selector == "" {
		return nil, errors.New("the fleet has no label by which its parts are known")
	}
	if o.SelfCluster != "" && o.SelfConfig == nil {
		return nil, errors.New("the hub is to be a member, and how to reach it is not known")
	}
	if o.Contain == nil {
		o.Contain = func(f func() error) error { return parallel.Contain(func() {}, f) }
	}
	f := &Fleet{Options: o, members: map[string]*member{}, probeTimeout: probeTimeout, gauges: newGauges()}
	var err error
	f.sources, err = newSources(o)
	return f, err
}

// Run knows the clusters until ctx ends, and returns when nothing of it runs any more.
func (f *Fleet) Run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f.mu.Lock()
	f.running = ctx
	f.mu.Unlock()
	var watching sync.WaitGroup
	watching.Go(func() { f.sources.watch(ctx) })
	defer func() {
		cancel()
		watching.Wait()
		f.sessions.Wait()
	}()
	if !f.sources.waitForSync(ctx) {
		return
	}
	for ctx.Err() == nil {
		var again <-chan time.Time
		if !f.register(ctx) {
			again = f.Clock.After(probeEvery)
		}
		select {
		case <-ctx.Done():
		case <-f.sources.dirty:
		case <-again:
		}
	}
}

// register brings the members to what the registrations say, and says whether it did so for all.
func (f *Fleet) register(ctx context.Context) bool {
	all := f.sources.read()
	all = append(all, f.sources.readProfiles(f.Providers, f.AllowLocal)...)
	if f.SelfCluster != "" {
		self := &registration{name: v1beta1.FoldClusterName(f.SelfCluster), config: f.SelfConfig, meta: map[string]string{}}
		all = append([]*registration{self}, all...)
	}
	regs := merge(all)
	f.mu.Lock()
	for name := range regs {
		if f.members[name] == nil {
			f.members[name] = &member{fleet: f, name: name}
		}
	}
	members := make([]*member, 0, len(f.members))
	for _, m := range f.members {
		members = append(members, m)
	}
	f.mu.Unlock()
	slices.SortFunc(members, func(a, b *member) int { return strings.Compare(a.name, b.name) })
	done := true
	for _, m := range members {
		if err := f.Contain(func() error { f.update(ctx, m, regs[m.name]); return nil }); err != nil {
			klog.FromContext(ctx).Error(err, "A bug: a registration is not followed; trying again", "cluster", m.name)
			done = false
		}
	}
	f.mu.Lock()
	if f.registered.IsZero() {
		f.registered = f.Clock.Now()
	}
	f.mu.Unlock()
	return done
}

func (f *Fleet) update(ctx context.Context, m *member, reg *registration) {
	m.mu.RLock()
	before := m.reg
	m.mu.RUnlock()
	if reg == nil && before == nil {
		f.forget(m)
		return
	}
	if reg != nil && !reg.told(before) {
		f.warn(reg)
	}
	switch {
	case before == nil:
		klog.FromContext(ctx).Info("A cluster is registered", "cluster", m.name, "by", reg.from.Kind, "object", reg.from.Name)
	case reg == nil:
		klog.FromContext(ctx).Info("A cluster is not registered any more; its parts are remembered", "cluster", m.name)
	}
	m.register(reg)
	m.carry(ctx)
	m.changed(nil)
	f.list(m, reg != nil)
	if reg == nil {
		f.forget(m)
	}
}

// list a member among the checks while it is registered. Only its state is told: whoever
// may ask need not know addresses.
func (f *Fleet) list(m *member, registered bool) {
	name := "cluster " + m.name
	switch {
	case f.Checks == nil:
	case registered:
		f.Checks.AddListedCheck(name, func() error {
			if now := m.look(); now.State != v1beta1.ClusterReady {
				return fmt.Errorf("%s: %s", now.State, now.Reason)
			}
			return nil
		})
	default:
		f.Checks.RemoveListedCheck(name)
	}
}

// forget a member that is not registered and is not known to have any part.
func (f *Fleet) forget(m *member) {
	m.mu.RLock()
	none := m.reg == nil && (m.known == nil || m.known.count() == 0)
	m.mu.RUnlock()
	if none {
		f.mu.Lock()
		delete(f.members, m.name)
		f.mu.Unlock()
	}
}

func (f *Fleet) warn(reg *registration) {
	if f.Events == nil || f.Leading != nil && !f.Leading() {
		return
	}
	for _, w := range reg.warnings {
		f.Events.Note(reg.from, events.Topic{Type: "Warning", Reason: w.reason, Why: w.message})
	}
}

// HasSynced says whether the registrations are known, and of each cluster either its
// parts or that it does not answer. It waits only so long for a cluster that says nothing.
func (f *Fleet) HasSynced() bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.registered.IsZero() {
		return false
	}
	if f.Clock.Since(f.registered) >= syncTimeout {
		return true
	}
	for _, m := range f.members {
		if !m.hasSynced() {
			return false
		}
	}
	return true
}

// Subscribe has functions called after a member or a part changed, also when it went. They
// are called by many goroutines and have to return at once. Subscribe before Run.
func (f *Fleet) Subscribe(onMember func(name string), onPart func(cluster, namespace, name string)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if onMember != nil {
		f.onMember = append(f.onMember, onMember)
	}
	if onPart != nil {
		f.onPart = append(f.onPart, onPart)
	}
}

func (f *Fleet) tellPart(cluster string, key types.NamespacedName) {
	f.mu.RLock()
	tell := f.onPart
	f.mu.RUnlock()
	for _, t := range tell {
		t(cluster, key.Namespace, key.Name)
	}
}

func (f *Fleet) tellMember(was, now Member) {
	if was.State != now.State {
		f.Metrics.changes.WithLabelValues(string(now.State)).Inc()
	}
	f.mu.RLock()
	tell := f.onMember
	logger := klog.FromContext(f.running)
	f.mu.RUnlock()
	logger.V(2).Info("A cluster changed", "cluster", now.Name, "state", now.State, "reason", now.Reason, "message", now.Message, "fresh", now.Fresh, "asOf", now.AsOf)
	for _, t := range tell {
		t(now.Name)
	}
}

// Members are the registered clusters, sorted by name.
func (f *Fleet) Members() []Member {
	var out []Member
	for _, m := range f.all() {
		if look := m.look(); look.State != v1beta1.ClusterUnregistered {
			out = append(out, look)
		}
	}
	return out
}

// Member of this name in any spelling. A name that was registered and is not any more is
// Unregistered; one that is not remembered is false.
func (f *Fleet) Member(name string) (Member, bool) {
	m := f.member(name)
	if m == nil {
		return Member{}, false
	}
	return m.look(), true
}

// Parts are all that is known of the AdvDeployments of this name, in all clusters that
// are or were registered, sorted by cluster.
func (f *Fleet) Parts(namespace, name string) []Part {
	var out []Part
	for _, m := range f.all() {
		if slim := m.packed(types.NamespacedName{Namespace: namespace, Name: name}); slim != nil {
			out = append(out, Part{Cluster: m.name, Read: slim.unpack})
		}
	}
	return out
}

// PartsIn are all that is known of the AdvDeployments in a cluster that is or was registered,
// in any order.
func (f *Fleet) PartsIn(cluster string) []*v1beta1.AdvDeployment {
	m := f.member(cluster)
	if m == nil {
		return nil
	}
	m.mu.RLock()
	known := m.known
	m.mu.RUnlock()
	if known == nil {
		return nil
	}
	return known.all()
}

func (f *Fleet) member(name string) *member {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.members[v1beta1.FoldClusterName(name)]
}

// all members, sorted by name.
func (f *Fleet) all() []*member {
	f.mu.RLock()
	out := make([]*member, 0, len(f.members))
	for _, m := range f.members {
		out = append(out, m)
	}
	f.mu.RUnlock()
	slices.SortFunc(out, func(a, b *member) int { return strings.Compare(a.name, b.name) })
	return out
}
