package release

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// world is a cluster with one release: it does what a plan says, and remembers it.
type world struct {
	t       testing.TB
	in      Input
	chart   *Rendered
	objects map[Ref]*unstructured.Unstructured
	records map[int]Record
	log     []string
	n       int
	// linger has deleted objects stay, as those with finalizers do.
	linger bool
	// settle is called after each turn, as the cluster's controllers.
	settle func(ref Ref, o *unstructured.Unstructured)
}

func newWorld(t testing.TB, chart *Rendered) *world {
	w := &world{t: t, chart: chart, objects: map[Ref]*unstructured.Unstructured{}, records: map[int]Record{}}
	w.in = Input{
		Name: "web", Namespace: "shop", Owner: "uid-1", OwnerName: "app", Account: "tapp-release", History: 2, Now: time.Unix(1800000000, 0),
		Want: &Want{App: "app", Content: "u1-a", Replicas: 3},
		Scopes: map[schema.GroupVersionKind]bool{
			{Version: "v1", Kind: "ConfigMap"}: true, {Version: "v1", Kind: "Service"}: true, {Version: "v1", Kind: "Secret"}: true, {Version: "v1", Kind: "Namespace"}: false,
			{Group: "apps", Version: "v1", Kind: "Deployment"}: true, {Group: "apps", Version: "v1", Kind: "StatefulSet"}: true, {Group: "batch", Version: "v1", Kind: "Job"}: true,
			{Group: "apiextensions.k8s.io", Version: "v1", Kind: kindCRD}: false,
		},
	}
	w.settle = ready
	return w
}

// ready is a cluster in which all goes well at once.
func ready(_ Ref, o *unstructured.Unstructured) {
	switch o.GetKind() {
	case "Deployment", "StatefulSet":
		replicas, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
		o.Object["status"] = map[string]any{"observedGeneration": o.GetGeneration(), "replicas": replicas, "updatedReplicas": replicas,
			"readyReplicas": replicas, "availableReplicas": replicas, "conditions": []any{
				map[string]any{"type": "Available", "status": "True"}, map[string]any{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}}}
	case "Job":
		o.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Complete", "status": "True"}}}
	case kindCRD:
		o.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}}
	}
}

// run plans and acts until nothing is left to do, and returns the last plan.
func (w *world) run() Plan {
	w.t.Helper()
	w.in.Rendered, w.in.Objects, w.in.Fresh = nil, nil, false
	for range 200 {
		w.in.Records = slices.Collect(maps.Values(w.records))
		p := Compute(w.in)
		switch {
		case p.Refresh && w.in.Fresh:
			w.t.Fatal("asked for records that are fresh")
		case p.Refresh:
			w.in.Fresh = true
		case p.Render != nil:
			w.in.Rendered = w.chart
		case len(p.Load) > 0:
			w.t.Fatalf("asked to load %v, which are loaded", p.Load)
		case len(p.Look) > 0:
			if w.in.Objects == nil {
				w.in.Objects = map[Ref]*unstructured.Unstructured{}
			}
			for _, ref := range p.Look {
				w.in.Objects[ref] = w.objects[ref]
			}
		case len(p.Steps) > 0:
			for _, s := range p.Steps {
				w.do(s)
			}
			for ref, o := range w.objects {
				w.settle(ref, o)
			}
			w.in.Objects = nil
		default:
			return p
		}
	}
	w.t.Fatalf("it does not end: %s", strings.Join(w.log[max(0, len(w.log)-20):], "\n"))
	return Plan{}
}

func (w *world) do(s Step) {
	w.n++
	switch s.Op {
	case CreateRecord, UpdateRecord:
		r := *s.Record
		if old, there := w.records[r.Version]; there != (s.Op == UpdateRecord) || there && old.ResourceVersion != s.Version {
			w.t.Fatalf("%s of version %d, of which there is %v", s.Op, r.Version, there)
		}
		r.UID, r.ResourceVersion = types.UID(fmt.Sprint("r", r.Version)), fmt.Sprint(w.n)
		w.records[r.Version] = r
		w.log = append(w.log, fmt.Sprintf("record %d %s", r.Version, r.Status))
	case DeleteRecord:
		delete(w.records, s.Record.Version)
		w.log = append(w.log, fmt.Sprintf("record %d gone", s.Record.Version))
	case Create, Apply:
		old := w.objects[s.Ref]
		if (old != nil) != (s.Op == Apply) {
			w.t.Fatalf("%s of %s", s.Op, s.Ref)
		}
		o := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(s.Manifest)}
		o.SetUID(types.UID(fmt.Sprint("o", w.n)))
		o.SetResourceVersion(fmt.Sprint(w.n))
		o.SetGeneration(int64(w.n))
		w.objects[s.Ref] = o
		w.log = append(w.log, fmt.Sprintf("%s %s/%s", strings.ToLower(string(s.Op)), s.Ref.Kind, s.Ref.Name))
	case Delete:
		if o := w.objects[s.Ref]; o == nil || o.GetUID() != s.UID {
			w.t.Fatalf("delete of %s", s.Ref)
		}
		if w.linger {
			w.objects[s.Ref].SetDeletionTimestamp(new(metav1.Now()))
		} else {
			delete(w.objects, s.Ref)
		}
		w.log = append(w.log, fmt.Sprintf("delete %s/%s", s.Ref.Kind, s.Ref.Name))
	}
}

// said is what was done since the last call.
func (w *world) said() []string {
	out := w.log
	w.log = nil
	return out
}

func objects(t *testing.T, text string) (out []Object) {
	t.Helper()
	for _, document := range strings.Split(text, "---\n") {
		if strings.TrimSpace(document) == "" {
			continue
		}
		raw, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(raw); err != nil {
			t.Fatal(err)
		}
		out = append(out, Object{Source: "web/templates/" + strings.ToLower(o.GetKind()) + ".yaml", Content: o.Object})
	}
	return out
}

func hook(t *testing.T, name string, weight int, policies []string, events ...string) Hook {
	o := objects(t, "apiVersion: batch/v1\nkind: Job\nmetadata: {name: "+name+"}\n")[0]
	return Hook{Object: o, Name: name, Weight: weight, DeletePolicies: policies, Events: events}
}
