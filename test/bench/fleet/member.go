package fleet

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"tkestack.io/tapp/crd/bases"
	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/podset"
	"tkestack.io/tapp/test/sim/apiserver"
)

const (
	parts = "advdeployments"
	// bookmarkEvery is about how often an API server sends them.
	bookmarkEvery = time.Minute
)

// written is a write of the hub's controller, or of a member's worker, to a part.
type written struct {
	member, name string
	generation   int64
	at           time.Time
}

// member is a simulated cluster: an API server in memory, over HTTPS, whose worker does at
// once what a part says.
type member struct {
	name   string
	server *httptest.Server
	// applied and told are called after a part was written, and after its status was.
	applied, told func(written)
	ended         chan struct{}

	mu      sync.Mutex // of all that follows
	api     *apiserver.Server
	watches map[*apiserver.Watch]bool
	silent  bool
	todo    chan string
}

// kinds that a member serves.
func kinds() (map[string]apiserver.Kind, error) {
	crds, err := bases.CRDs(v1beta1.KindAdvDeployment)
	if err != nil {
		return nil, fmt.Errorf("reading a definition: %w", err)
	}
	fields, err := apiserver.FieldsOf(crds[0])
	if err != nil {
		return nil, fmt.Errorf("reading a definition: %w", err)
	}
	out := apiserver.Core()
	part := apiserver.Custom(v1beta1.SchemeGroupVersion.WithKind(v1beta1.KindAdvDeployment),
		func() apiserver.Object { return &v1beta1.AdvDeployment{} }, func() runtime.Object { return &v1beta1.AdvDeploymentList{} })
	part.Fields = fields
	out[parts] = part
	return out, nil
}

// start a member, which answers until it is closed.
func start(name string, applied, told func(written)) (*member, error) {
	known, err := kinds()
	if err != nil {
		return nil, err
	}
	m := &member{name: name, applied: applied, told: told, api: apiserver.New(time.Now, known),
		watches: map[*apiserver.Watch]bool{}, ended: make(chan struct{}), todo: make(chan string, 1<<16)}
	m.api.Name = name + "-"
	m.api.Watchers = append(m.api.Watchers, m.changed)
	installer := apiserver.Actor{By: "installer"}
	for resource, o := range map[string]apiserver.Object{
		apiserver.Namespaces: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}},
		apiserver.Leases:     &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: v1beta1.MemberLease}},
	} {
		if _, err := m.api.Create(resource, o, installer); err != nil {
			return nil, fmt.Errorf("cluster %s: %w", name, err)
		}
	}
	m.server = httptest.NewUnstartedServer(m)
	m.server.EnableHTTP2 = true
	m.server.StartTLS()
	go m.work()
	go m.bookmark()
	return m, nil
}

func (m *member) close() {
	close(m.ended)
	m.server.CloseClientConnections()
	m.server.Close()
}

// kubeconfig leads to it.
func (m *member) kubeconfig() ([]byte, error) {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: m.server.Certificate().Raw})
	return json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Config", "current-context": "it",
		"clusters": []any{map[string]any{"name": "it", "cluster": map[string]any{"server": m.server.URL, "certificate-authority-data": ca}}},
		"users":    []any{map[string]any{"name": "it", "user": map[string]any{"token": "any"}}},
		"contexts": []any{map[string]any{"name": "it", "context": map[string]any{"cluster": "it", "user": "it"}}}})
}

// die: it takes connections and answers nothing more, not on a watch either.
func (m *member) die() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.silent = true
}

// ServeHTTP answers as an API server does.
func (m *member) ServeHTTP(w http.ResponseWriter, h *http.Request) {
	asked, err := apiserver.Read(h)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	silent := m.silent
	var watch *apiserver.Watch
	var answer *apiserver.Answer
	switch {
	case silent:
	case asked.Verb == "watch":
		if watch, answer = m.api.ServeWatch(asked, 0); watch != nil {
			m.watches[watch] = true
			m.flush()
		}
	default:
		answer = m.api.Serve(asked, 0, apiserver.Actor{By: "hub"})
		m.flush()
	}
	m.mu.Unlock()
	if silent {
		select {
		case <-h.Context().Done():
		case <-m.ended:
		}
		return
	}
	defer m.forget(watch)
	response, err := answer.Response(h)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", response.Header.Get("Content-Type"))
	w.WriteHeader(response.StatusCode)
	_, _ = io.Copy(flusher{w, http.NewResponseController(w)}, response.Body)
	_ = response.Body.Close()
}

func (m *member) forget(w *apiserver.Watch) {
	if w == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.watches, w)
}

// flusher sends an event as soon as it is written.
type flusher struct {
	io.Writer
	to *http.ResponseController
}

func (f flusher) Write(p []byte) (int, error) {
	n, err := f.Writer.Write(p)
	_ = f.to.Flush() // an answer that cannot be flushed is sent at its end
	return n, err
}

// flush tells the watches. The caller has the lock.
func (m *member) flush() {
	if m.silent {
		return
	}
	for w := range m.watches {
		for w.IsOpen() && len(w.Pending()) > 0 {
			w.Next()
		}
	}
}

func (m *member) bookmark() {
	every := time.NewTicker(bookmarkEvery)
	defer every.Stop()
	for {
		select {
		case <-m.ended:
			return
		case <-every.C:
		}
		m.mu.Lock()
		for w := range m.watches {
			if !m.silent && w.IsOpen() {
				w.Told = m.api.Version
				w.Bookmark()
			}
		}
		m.mu.Unlock()
	}
}

// changed is called for each change, with the lock.
func (m *member) changed(c *apiserver.Change) {
	now, isPart := c.After.(*v1beta1.AdvDeployment)
	if c.Resource != parts || !isPart || c.By == worker {
		return
	}
	m.applied(written{m.name, now.Name, now.Generation, time.Now()})
	m.todo <- c.Key()
}

// worker is who writes statuses.
const worker = "worker"

// work carries out what parts say: all that they ask for runs.
func (m *member) work() {
	for {
		select {
		case <-m.ended:
			return
		case key := <-m.todo:
			m.report(key)
		}
	}
}

func (m *member) report(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, err := m.api.Update(parts, key, "status", apiserver.Actor{By: worker}, func(o apiserver.Object) error {
		p := o.(*v1beta1.AdvDeployment) //nolint:forcetypeassert // of this kind are the objects of the resource
		p.Status = statusOf(p)
		return nil
	})
	if err != nil {
		return // it is gone
	}
	m.told(written{m.name, now.GetName(), now.GetGeneration(), time.Now()})
	m.flush()
}

// statusOf a part of which all runs.
func statusOf(p *v1beta1.AdvDeployment) v1beta1.AdvDeploymentStatus {
	out := *p.Status.DeepCopy()
	out.ObservedGeneration = p.Generation
	out.AggrStatus = v1beta1.AdvDeploymentAggregate{Status: v1beta1.PhaseRunning}
	units, _, _ := podset.Placed(p)
	for i := range units {
		s := p.Spec.Topology.PodSets[i]
		n := int32(s.Replicas.IntValue())
		out.AggrStatus.Desired += n
		out.AggrStatus.Available += n
		out.AggrStatus.PodSets = append(out.AggrStatus.PodSets, v1beta1.PodSetStatus{Name: s.Name, Desired: n, Available: n, Version: s.Version,
			Observed: true, Revision: units[i].Hash, Budget: s.MaxUnavailable, Update: new(n), Current: new(n)})
	}
	out.Conditions = []metav1.Condition{{Type: v1beta1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonSynced, ObservedGeneration: p.Generation}}
	return out
}
