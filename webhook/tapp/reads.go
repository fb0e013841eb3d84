package tapp

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"tkestack.io/tapp/crd/client"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// Reads are what is looked up for a review. What they return is not changed.
type Reads struct {
	// Pods that have the names of a TApp's instances.
	Pods func(context.Context, *tappv1.TApp) ([]*corev1.Pod, error)
	// TApps of a namespace.
	TApps func(ctx context.Context, namespace string) ([]*tappv1.TApp, error)
	// Resize says whether pods of this cluster can be resized.
	Resize func(context.Context) bool
	// Zones says whether every node of this cluster has a zone.
	Zones func(context.Context) bool
}

// fromCache makes the API server answer from its cache: a preview need not be newer
// than that.
const fromCache = "0"

// liveResize asks the API server once, and keeps the answer. While there is none, the
// answer is yes: clusters have had resize since 1.33.
func liveResize(core rest.Interface) func(context.Context) bool {
	var mu sync.Mutex
	var known *bool
	return func(ctx context.Context) bool {
		mu.Lock()
		defer mu.Unlock()
		if known == nil {
			has, err := client.HasResize(ctx, core)
			if err != nil {
				return true
			}
			known = &has
		}
		return *known
	}
}

// zonesEvery is how often it is asked whether nodes have zones.
const zonesEvery = 10 * time.Minute

// liveZones asks the API server, and again when the answer is ten minutes old. Who comes
// while it is asked, or while it does not answer, gets the last answer: at first no. So
// does who may not know.
func liveZones(core rest.Interface, now func() time.Time) func(context.Context) bool {
	var mu sync.Mutex
	var zones bool
	var next time.Time
	take := func() (known, ask bool) {
		mu.Lock()
		defer mu.Unlock()
		if ask = !now().Before(next); ask {
			next = now().Add(zonesEvery)
		}
		return zones, ask
	}
	put := func(answer bool, err error) bool {
		mu.Lock()
		defer mu.Unlock()
		if err == nil || apierrors.IsForbidden(err) {
			zones = answer
		} else {
			next = time.Time{}
		}
		return zones
	}
	return func(ctx context.Context) bool {
		known, ask := take()
		if !ask {
			return known
		}
		return put(client.EveryNodeHasZone(ctx, core))
	}
}

func livePods(pods corev1client.PodsGetter) func(context.Context, *tappv1.TApp) ([]*corev1.Pod, error) {
	return func(ctx context.Context, t *tappv1.TApp) ([]*corev1.Pod, error) {
		list, err := pods.Pods(t.Namespace).List(ctx, metav1.ListOptions{LabelSelector: tappv1.LabelInstanceID, ResourceVersion: fromCache})
		if err != nil {
			return nil, fmt.Errorf("list the pods of TApp %s: %w", t.Name, err)
		}
		var out []*corev1.Pod
		for i := range list.Items {
			if strings.HasPrefix(list.Items[i].Name, t.Name+"-") {
				out = append(out, &list.Items[i])
			}
		}
		return out, nil
	}
}

func liveTApps(tapps client.Interface) func(context.Context, string) ([]*tappv1.TApp, error) {
	return func(ctx context.Context, namespace string) ([]*tappv1.TApp, error) {
		list, err := tapps.TApps(namespace).List(ctx, metav1.ListOptions{ResourceVersion: fromCache})
		if err != nil {
			return nil, fmt.Errorf("list the TApps of namespace %s: %w", namespace, err)
		}
		out := make([]*tappv1.TApp, len(list.Items))
		for i := range list.Items {
			out[i] = &list.Items[i]
		}
		return out, nil
	}
}
