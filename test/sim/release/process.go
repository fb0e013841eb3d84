package release

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	operator "tkestack.io/tapp/controller/release"
	"tkestack.io/tapp/controller/write"
	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/podset"
	plan "tkestack.io/tapp/plan/release"
	"tkestack.io/tapp/test/sim/apiserver"
	"tkestack.io/tapp/test/sim/process"
)

// replica is a process that carries out the release. What it knows goes with it.
type replica struct {
	world    *world
	operator *operator.Operator
	state    operator.State
	dead     bool
}

// start a process. Its clients are the real ones.
func (w *world) start() error {
	r := &replica{world: w}
	config := &rest.Config{Host: "http://cluster", Transport: r, QPS: -1}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		return err
	}
	heads, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	access := &operator.Access{Objects: objects, Secrets: core, Heads: heads}
	r.operator = operator.New(operator.Options{
		As:      func(string, string) (*operator.Access, error) { return access, nil },
		Account: "tapp-release", Charts: core.Secrets(namespace), Renderer: renderer{}, Kinds: operator.NewKinds(kinds, w.clock), Clock: w.clock,
	})
	w.replica = r
	w.say("a process starts")
	return nil
}

// RoundTrip implements http.RoundTripper.
func (r *replica) RoundTrip(h *http.Request) (*http.Response, error) {
	if r.dead {
		return nil, process.ErrDead
	}
	if text, is := served(h); is {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(text)), Request: h}, nil
	}
	asked, err := apiserver.Read(h)
	if err != nil {
		return nil, err
	}
	w := r.world
	if !asked.IsWrite() {
		return w.Serve(asked, 0, w.as("process")).Response(h)
	}
	w.wrote = w.steps
	site := asked.Verb + " " + asked.Resource
	w.coverage[site]++
	fault := w.fault()
	w.say("process: %s %s %s", site, asked.Name, fault)
	if fault != "" {
		w.coverage[site+" | "+fault]++
	}
	switch fault {
	case crashBefore:
		r.dead = true
		return nil, process.ErrDead
	case conflict:
		return apiserver.Refusal(apierrors.NewConflict(w.GroupResource(asked.Resource), asked.Name, errors.New("simulated"))).Response(h)
	case refusal:
		return apiserver.Refusal(apierrors.NewForbidden(w.GroupResource(asked.Resource), asked.Name, errors.New("simulated"))).Response(h)
	}
	a := w.Serve(asked, 0, w.as("process"))
	switch fault {
	case crashAfter:
		r.dead = true
		return nil, process.ErrDead
	case lostAnswer:
		return nil, context.DeadlineExceeded
	}
	return a.Response(h)
}

func served(h *http.Request) (string, bool) {
	text, is := static[strings.TrimSuffix(h.URL.Path, "/")]
	return text, is
}

// unit is what is wanted, as the planner of AdvDeployments tells the operator of it.
func (w *world) unit() *podset.Unit {
	u := &podset.Unit{PodSet: &v1beta1.PodSet{}, Hash: w.want.Content, Replicas: w.want.Replicas}
	u.PodSet.Name, u.Content.Chart = name, &podset.Chart{}
	return u
}

// mostRounds of one sync.
const mostRounds = 60

// sync takes the release as far on as it goes, as the controller of AdvDeployments does.
func (w *world) sync() {
	r, ctx := w.replica, context.Background()
	of := operator.Owner{Namespace: namespace, Name: owner, UID: w.uid}
	var names []string
	if w.want != nil {
		names = []string{name}
	}
	r.state.MarkStale()
	if err := r.operator.Observe(ctx, &r.state, of, names, nowhere); err != nil {
		w.say("sync: %v", err)
		return
	}
	var chart *operator.Chart
	if w.want != nil {
		r.state.Drop(name, w.unit(), w.clock.Now())
		chart = &operator.Chart{Unit: w.unit(), Raw: []byte(fmt.Sprint(w.chart))}
	}
	for round := 0; !r.dead; round++ {
		if round == mostRounds {
			w.fail(fmt.Errorf("L2: a sync does not end"))
			return
		}
		inputs, err := r.operator.Input(&r.state, func(plan.Ref) bool { return false })
		if err != nil {
			w.say("sync: %v", err)
			return
		}
		in, known := inputs[name]
		if !known && w.want == nil {
			w.gone = true
			return
		}
		in.Name, in.Namespace, in.Owner, in.OwnerName, in.Want, in.Retry, in.History, in.Now = name, namespace, w.uid, owner, w.want, w.retry, 2, w.clock.Now()
		p := plan.Compute(in)
		more, err := r.operator.Show(ctx, &r.state, of, name, &p, chart)
		if err == nil && !more {
			more, err = w.do(ctx, of, p.Steps)
		}
		if err != nil {
			w.say("sync: %v", err)
			return
		}
		if !more {
			w.gone = p.Gone
			w.told = append(p.Waits, fmt.Sprint(p.Stalls))
			r.state.Expire(name, p.Polls)
			return
		}
	}
}

func nowhere(plan.Ref) (o *unstructured.Unstructured, known bool) { return nil, false }

// do the steps, one after the other. The first that fails ends the turn.
func (w *world) do(ctx context.Context, of operator.Owner, steps []plan.Step) (stepped bool, err error) {
	r := w.replica
	for _, step := range steps {
		if r.state.IsRefused(name, step.Ref) && !(step.Op == plan.UpdateRecord && step.Record.Status == plan.Failed) {
			continue
		}
		_, err := r.operator.Do(ctx, &r.state, of, name, step)
		stale := apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || write.IsOtherUID(err)
		switch {
		case err == nil:
		case step.Op == plan.Delete && apierrors.IsNotFound(err):
		case stale:
			r.state.Forget()
			return stepped, err
		case apierrors.IsForbidden(err):
			r.state.Refuse(name, step.Ref, write.Words(err))
		default:
			return stepped, err
		}
		stepped = true
	}
	return stepped, nil
}
