package appset

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// clusters are a fleet in memory.
type clusters struct {
	mu      sync.Mutex
	version int
	members map[string]*cluster
}

type cluster struct {
	Member
	fleet *clusters
	// live is what it has, and cached what its cache has.
	live, cached *v1beta1.AdvDeployment
	fails        func(op string) error
	after        func() // a patch
	wrote        []string
	charts       map[string]*corev1.Secret
	listed       func() // when its charts were listed
}

func newClusters(names ...string) *clusters {
	f := &clusters{members: map[string]*cluster{}, version: 100}
	for _, name := range names {
		f.members[name] = &cluster{fleet: f, charts: map[string]*corev1.Secret{}, Member: Member{Name: name, UID: types.UID("uid-" + name), State: v1beta1.ClusterReady, Fresh: true, AsOf: time.Now()}}
	}
	return f
}

func (f *clusters) HasSynced() bool                                        { return true }
func (f *clusters) Subscribe(func(string), func(cluster, ns, name string)) {}

func (f *clusters) Members() (out []Member) {
	for _, m := range f.members {
		out = append(out, m.Member)
	}
	return out
}

func (f *clusters) Member(name string) (Member, bool) {
	m, ok := f.members[name]
	if !ok {
		return Member{}, false
	}
	return m.Member, true
}

func (f *clusters) Parts(_, _ string) (out []Part) {
	for name, m := range f.members {
		if m.cached != nil {
			cached := m.cached
			out = append(out, Part{name, func() *v1beta1.AdvDeployment { return cached }})
		}
	}
	return out
}

func (f *clusters) Carrier(name string) (Carrier, error) { return f.members[name], nil }

// catchUp has the caches show what there is.
func (f *clusters) catchUp() {
	for _, m := range f.members {
		m.cached = m.live
		if m.live != nil && m.live.Labels[v1beta1.LabelFleetID] != "hub-1" {
			m.cached = nil
		}
	}
}

func (m *cluster) do(op string, f func() error) error {
	m.fleet.mu.Lock()
	defer m.fleet.mu.Unlock()
	m.wrote = append(m.wrote, op)
	if m.fails != nil {
		if err := m.fails(op); err != nil {
			return err
		}
	}
	return f()
}

func (m *cluster) store(part *v1beta1.AdvDeployment) *v1beta1.AdvDeployment {
	m.fleet.version++
	part.ResourceVersion = fmt.Sprint(m.fleet.version)
	m.live = part
	return part
}

var resource = schema.GroupResource{Group: v1beta1.GroupName, Resource: "advdeployments"}

func (m *cluster) Apply(_ context.Context, a Apply) (part *v1beta1.AdvDeployment, err error) {
	err = m.do("Apply", func() error {
		switch {
		case a.Version == "" && m.live != nil, a.Version != "" && (m.live == nil || m.live.UID != a.UID || m.live.ResourceVersion != a.Version):
			return apierrors.NewConflict(resource, a.Name, fmt.Errorf("another one"))
		}
		part = &v1beta1.AdvDeployment{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(a.Manifest, part); err != nil {
			return err
		}
		part.UID, part.Generation = types.UID("part-"+m.Name), 1
		part.Status.ObservedGeneration = -1
		if m.live != nil {
			part.UID, part.Generation, part.Status = m.live.UID, m.live.Generation+1, m.live.Status
		}
		part = m.store(part)
		return nil
	})
	return part, err
}

func (m *cluster) Patch(_ context.Context, _, name string, patch []byte) (part *v1beta1.AdvDeployment, err error) {
	err = m.do("Patch", func() error {
		raw, _ := json.Marshal(m.live)
		decoded, err := jsonpatch.DecodePatch(patch)
		if err == nil {
			raw, err = decoded.Apply(raw)
		}
		part = &v1beta1.AdvDeployment{}
		if err == nil {
			err = json.Unmarshal(raw, part)
		}
		if err == nil && part.ResourceVersion != m.live.ResourceVersion {
			err = apierrors.NewConflict(resource, name, fmt.Errorf("another one"))
		}
		if err == nil {
			part.Generation++
			part = m.store(part)
		}
		if m.after != nil {
			m.after()
			part = m.live
		}
		return err
	})
	return part, err
}

func (m *cluster) Delete(_ context.Context, _, name string, uid types.UID) error {
	return m.do("Delete", func() error {
		if m.live == nil || m.live.UID != uid {
			return apierrors.NewNotFound(resource, name)
		}
		part := m.live.DeepCopy()
		part.DeletionTimestamp = new(metav1.Now())
		m.store(part)
		return nil
	})
}

func (m *cluster) KeepChart(_ context.Context, chart *corev1.Secret) error {
	m.fleet.mu.Lock()
	defer m.fleet.mu.Unlock()
	m.fleet.version++
	chart = chart.DeepCopy()
	chart.ResourceVersion = fmt.Sprint(m.fleet.version)
	m.charts[chart.Name] = chart
	return nil
}

func (m *cluster) Charts(context.Context) (out []metav1.PartialObjectMetadata, err error) {
	m.fleet.mu.Lock()
	for _, chart := range m.charts {
		out = append(out, metav1.PartialObjectMetadata{ObjectMeta: chart.ObjectMeta})
	}
	m.fleet.mu.Unlock()
	if m.listed != nil {
		m.listed()
	}
	return out, nil
}

func (m *cluster) DropChart(_ context.Context, chart *metav1.PartialObjectMetadata) error {
	m.fleet.mu.Lock()
	defer m.fleet.mu.Unlock()
	if m.charts[chart.Name].ResourceVersion != chart.ResourceVersion {
		return apierrors.NewConflict(corev1.Resource("secrets"), chart.Name, fmt.Errorf("another one"))
	}
	delete(m.charts, chart.Name)
	return nil
}

func (m *cluster) Observe(_ context.Context, _, name string) (part *v1beta1.AdvDeployment, err error) {
	err = m.do("Observe", func() error {
		if m.live == nil {
			return apierrors.NewNotFound(resource, name)
		}
		part = m.live
		return nil
	})
	return part, err
}
