package cache

import (
	"context"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// pods is a Source of pods whose first list waits.
type pods struct{ ready chan struct{} }

// IsWatchListSemanticsUnSupported has the informer list before it watches.
func (pods) IsWatchListSemanticsUnSupported() bool { return true }

func (p pods) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	select {
	case <-p.ready:
	case <-ctx.Done():
	}
	labelled := metav1.ObjectMeta{Namespace: "ns", Name: "b", Labels: map[string]string{"of": o.LabelSelector}}
	return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}, {ObjectMeta: labelled}}}, ctx.Err()
}

// TestInformers: they have synced when all have, and Watch ends when all are at rest.
func TestInformers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var caches Informers
		var sources []pods
		for range 2 {
			p := pods{make(chan struct{})}
			informer, err := NewInformer(Source{
				Client: p, Label: "web", Index: toolscache.Indexers{"of": ByLabel("of")}, Lists: p.list,
				Watches: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
					return watch.NewRaceFreeFake(), nil
				},
			}, &corev1.Pod{}, Trim)
			if err != nil {
				t.Fatal(err)
			}
			caches, sources = append(caches, informer), append(sources, p)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := false
		go func() { caches.Watch(ctx); ended = true }()
		for n, p := range sources {
			if caches.HasSynced() {
				t.Errorf("%d caches are filled, and it takes two", n)
			}
			close(p.ready)
			if !toolscache.WaitForCacheSync(t.Context().Done(), caches[n].HasSynced) {
				t.Fatalf("cache %d was not filled", n)
			}
		}
		if !caches.HasSynced() || ended {
			t.Errorf("the caches are filled: synced %v, ended %v", caches.HasSynced(), ended)
		}
		informer := caches[0].(toolscache.TypedSharedIndexInformer[*corev1.Pod])
		found, err := informer.GetTypedIndexer().ByTypedIndex("of", "ns/web")
		if err != nil || len(found) != 1 || found[0].Name != "b" {
			t.Errorf("the index has %v and error %v", found, err)
		}
		want := []types.NamespacedName{{Namespace: "ns", Name: "a"}, {Namespace: "ns", Name: "b"}}
		if got := sets.New(Keys(informer)...); !got.Equal(sets.New(want...)) {
			t.Errorf("the keys are %v, want %v", got, want)
		}
		cancel()
		synctest.Wait()
		if !ended {
			t.Error("Watch did not end")
		}
	})
}
