// Package failover measures how soon another replica of a controller works after its leader went.
package failover

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"tkestack.io/tapp/test/bench/program"
	"tkestack.io/tapp/test/bench/record"
)

const (
	// kills and stops of leaders.
	kills, stops = 10, 5
	pollEvery    = 10 * time.Millisecond
	// patience ends what hangs.
	patience = 2 * time.Minute
	// restLeast and restMost are how long a new standby has to fill its caches. The leader renews its Lease every two
	// seconds, and goes at any time between.
	restLeast, restMost = 4 * time.Second, 6 * time.Second
)

// Contender is a controller that runs as several replicas of which one leads.
type Contender struct {
	Name string
	// Launch starts a replica that elects its leader by a Lease of this namespace.
	Launch func(namespace string) (*program.Process, error)
	// Resource of which it writes status.observedGeneration, and Kind of its objects.
	Resource schema.GroupVersionResource
	Kind     string
}

// Options of a run.
type Options struct {
	Config     *rest.Config
	Namespace  string
	Contenders []Contender
	// Save is handed each figure when it is there.
	Save func(record.Failover) error
}

// Run measures all contenders, one after the other.
func Run(ctx context.Context, o Options) error {
	clients, err := dynamic.NewForConfig(o.Config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	for _, c := range o.Contenders {
		m := &measurement{
			Contender: c, namespace: o.Namespace, objects: clients.Resource(c.Resource).Namespace(o.Namespace),
			leases: clients.Resource(schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}).Namespace(o.Namespace),
		}
		err := errors.Join(m.run(ctx, o.Save), m.end(ctx))
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	return nil
}

// measurement of one contender.
type measurement struct {
	Contender
	namespace       string
	objects, leases dynamic.ResourceInterface
	// replicas, the one that leads first.
	replicas []*program.Process
	changes  int
}

// object of which a controller has to tell that it saw a change. It has no instances.
const object = "object"

func (m *measurement) run(ctx context.Context, save func(record.Failover) error) error {
	if err := m.launch(); err != nil {
		return err
	}
	if err := m.create(ctx); err != nil {
		return err
	}
	if err := m.observed(ctx, 1); err != nil {
		return err
	}
	for _, way := range []struct {
		killed bool
		signal os.Signal
		times  int
	}{{true, syscall.SIGKILL, kills}, {false, syscall.SIGTERM, stops}} {
		var took []time.Duration
		for range way.times {
			if err := m.launch(); err != nil {
				return err
			}
			select {
			case <-time.After(restLeast + rand.N(restMost-restLeast)):
			case <-ctx.Done():
				return ctx.Err()
			}
			one, err := m.goes(ctx, way.signal)
			if err != nil {
				return err
			}
			took = append(took, one)
		}
		if err := save(record.Failover{Contender: m.Name, Killed: way.killed, Spread: record.SpreadOf(took)}); err != nil {
			return err
		}
	}
	return nil
}

func (m *measurement) launch() error {
	r, err := m.Launch(m.namespace)
	if err != nil {
		return err
	}
	m.replicas = append(m.replicas, r)
	return nil
}

// goes takes the leader away, and returns how long it was until another one had seen a change of that moment.
func (m *measurement) goes(ctx context.Context, signal os.Signal) (time.Duration, error) {
	leader := m.replicas[0]
	m.replicas = m.replicas[1:]
	was, err := m.holder(ctx)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := leader.Signal(signal); err != nil {
		return 0, fmt.Errorf("ending the leader: %w", err)
	}
	generation, err := m.change(ctx)
	if err != nil {
		return 0, err
	}
	if err := m.observed(ctx, generation); err != nil {
		return 0, err
	}
	took := time.Since(began)
	_ = leader.Wait() // it was killed, or left its Lease
	if is, err := m.holder(ctx); err != nil || is == was {
		return 0, errors.Join(err, fmt.Errorf("the replica that went did not lead: %q still does", is))
	}
	return took, nil
}

// create the object. Its kind may be known only a moment after a controller began.
func (m *measurement) create(ctx context.Context) error {
	labels := map[string]any{"app": object}
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": m.Resource.GroupVersion().String(), "kind": m.Kind, "metadata": map[string]any{"name": object},
		"spec": map[string]any{
			"replicas": int64(0), "selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{"containers": []any{map[string]any{"name": "main", "image": "nginx"}}}},
		},
	}}
	var last error
	return m.until(ctx, "the object is created", &last, func(ctx context.Context) bool {
		_, last = m.objects.Create(ctx, o, metav1.CreateOptions{})
		return last == nil
	})
}

// change the object, and return its generation then.
func (m *measurement) change(ctx context.Context) (int64, error) {
	m.changes++
	patch := fmt.Sprintf(`{"spec": {"template": {"metadata": {"annotations": {"change": %s}}}}}`, strconv.Quote(strconv.Itoa(m.changes)))
	o, err := m.objects.Patch(ctx, object, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		return 0, fmt.Errorf("changing the object: %w", err)
	}
	return o.GetGeneration(), nil
}

// observed returns when the status tells of a generation.
func (m *measurement) observed(ctx context.Context, generation int64) error {
	var last error
	return m.until(ctx, "the change is seen", &last, func(ctx context.Context) bool {
		var o *unstructured.Unstructured
		if o, last = m.objects.Get(ctx, object, metav1.GetOptions{}); last != nil {
			return false
		}
		var seen int64
		seen, _, last = unstructured.NestedInt64(o.Object, "status", "observedGeneration")
		return seen >= generation
	})
}

// holder of the Lease, the only one of the namespace.
func (m *measurement) holder(ctx context.Context) (string, error) {
	list, err := m.leases.List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", fmt.Errorf("reading the Lease: %w", err)
	}
	if len(list.Items) != 1 {
		return "", fmt.Errorf("there are %d Leases, and not one", len(list.Items))
	}
	holder, _, err := unstructured.NestedString(list.Items[0].Object, "spec", "holderIdentity")
	return holder, err
}

func (m *measurement) until(ctx context.Context, what string, last *error, ok func(context.Context) bool) error {
	err := wait.PollUntilContextTimeout(ctx, pollEvery, patience, true, func(ctx context.Context) (bool, error) { return ok(ctx), nil })
	if err == nil {
		return nil
	}
	log := ""
	for _, r := range m.replicas {
		log += "\n" + r.Log()
	}
	return fmt.Errorf("waiting until %s: %w%s", what, errors.Join(err, *last), log)
}

// end all that is left, so that the next contender finds an empty namespace.
func (m *measurement) end(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	var failed []error
	for _, r := range m.replicas {
		failed = append(failed, r.Kill())
	}
	zero := int64(0)
	if err := m.objects.Delete(ctx, object, metav1.DeleteOptions{GracePeriodSeconds: &zero}); err != nil {
		failed = append(failed, fmt.Errorf("deleting the object: %w", err))
	}
	return errors.Join(append(failed, m.leases.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))...)
}
