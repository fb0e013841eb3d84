//go:build cluster

package shell

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/test/gen"
	"tkestack.io/tapp/test/witness"
)

// quick has pods end at once.
func quick(t *corev1.PodTemplateSpec) {
	none := int64(0)
	t.Spec.TerminationGracePeriodSeconds = &none
}

func app(name string, opts ...gen.Option) *tappv1.TApp {
	return gen.TApp(name, append([]gen.Option{gen.Default(gen.Simulated(), quick)}, opts...)...)
}

// TestWritesThatFail: one write in three is refused, or its answer is lost. It is
// tried again until it succeeds (fault 14 of the original).
func TestWritesThatFail(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.watchPods()
	r.start(wrapped(func(next http.RoundTripper) http.RoundTripper {
		faults := []func(http.RoundTripper) http.RoundTripper{
			refuse(isWrite, 500, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500,"message":"injected"}`),
			refuse(isWrite, 429, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429,"message":"injected"}`),
			func(next http.RoundTripper) http.RoundTripper {
				return transport(func(r *http.Request) (*http.Response, error) {
					if response, err := next.RoundTrip(r); err == nil {
						_ = response.Body.Close()
					}
					return nil, errCut
				})
			},
		}
		return transport(func(r *http.Request) (*http.Response, error) {
			if isWrite(r) && rand.IntN(3) == 0 {
				return faults[rand.IntN(len(faults))](next).RoundTrip(r)
			}
			return next.RoundTrip(r)
		})
	}))
	r.Create(app("a", gen.Replicas(20), gen.MaxUnavailable("5")))
	r.WaitReady("a")
	w.Expect(5)
	r.Change("a", func(t *tappv1.TApp) { gen.Default(gen.Image("demo:v2"))(t) })
	r.WaitReady("a")
	for i := range 20 {
		if name := fmt.Sprint("a-", i); w.Lives(name) != 1 {
			t.Errorf("pod %s had %d lives", name, w.Lives(name))
		}
	}
}

// TestConflicts: somebody else writes to the same pods all the time. Nobody's
// writes are lost, and none of ours meets a conflict.
func TestConflicts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.start()
	r.Create(app("a", gen.Replicas(10), gen.MaxUnavailable("100%")))
	r.WaitReady("a")
	stop := make(chan struct{})
	written := make(chan int)
	go func() {
		n := 0
		defer func() { written <- n }()
		for {
			select {
			case <-stop:
				return
			default:
			}
			patch := fmt.Sprintf(`{"metadata":{"annotations":{"other":"%d"}}}`, n)
			for i := range 10 {
				if _, err := r.Kube.CoreV1().Pods(r.NS).Patch(r.Context(), fmt.Sprint("a-", i), types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
					t.Error(err)
					return
				}
			}
			n++
		}
	}()
	r.Change("a", func(t *tappv1.TApp) { gen.Default(gen.Image("demo:v2"), gen.Label("color", "blue"))(t) })
	r.WaitReady("a")
	close(stop)
	last := fmt.Sprint(<-written - 1)
	for name, p := range r.Pods() {
		if p.Annotations["other"] != last || p.Labels["color"] != "blue" || p.Spec.Containers[0].Image != "demo:v2" {
			t.Errorf("pod %s: annotation %q, label %q, image %s", name, p.Annotations["other"], p.Labels["color"], p.Spec.Containers[0].Image)
		}
	}
	if n := c.Metric("tapp_api_requests_total", map[string]string{"code": "409"}); n != 0 {
		t.Errorf("%v conflicts", n)
	}
}

// TestNameTakenByAnother: a pod of somebody else has the name of an instance. It
// is not touched, an event says who it belongs to, and the others go on.
func TestNameTakenByAnother(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start()
	someone, err := r.Kube.CoreV1().ConfigMaps(r.NS).Create(r.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "someone"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	controls := true
	other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a-1"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "other"}}}}
	other.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "someone", UID: someone.UID, Controller: &controls}}
	other, err = r.Kube.CoreV1().Pods(r.NS).Create(r.Context(), other, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r.Create(app("a"))
	r.Eventually("the others run, and an event tells", func(context.Context) error {
		pods, events := r.Pods(), r.events("FailedCreate")
		if pods["a-0"] == nil || pods["a-2"] == nil {
			return errors.New("the others are missing")
		}
		if !slices.ContainsFunc(events, func(m string) bool { return strings.Contains(m, "belongs to ConfigMap someone") }) {
			return fmt.Errorf("events %q", events)
		}
		return nil
	})
	if now := r.Pods()["a-1"]; now == nil || now.UID != other.UID || now.DeletionTimestamp != nil {
		t.Error("the other pod was touched")
	}
}

// TestQuota: an exhausted quota costs one try a round, and an event says it in
// the API server's words.
func TestQuota(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.start()
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "few"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")}}}
	if _, err := r.Kube.CoreV1().ResourceQuotas(r.NS).Create(r.Context(), quota, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	r.Eventually("the quota is known", func(ctx context.Context) error {
		q, err := r.Kube.CoreV1().ResourceQuotas(r.NS).Get(ctx, "few", metav1.GetOptions{})
		if err != nil || len(q.Status.Hard) == 0 {
			return errors.New(fmt.Sprint("no status: ", err))
		}
		return nil
	})
	r.Create(app("a", gen.Replicas(200)))
	r.Eventually("two pods run, and an event tells", func(context.Context) error {
		if n := len(r.Pods()); n != 2 {
			return fmt.Errorf("%d pods", n)
		}
		if m := r.events("FailedCreate"); !slices.ContainsFunc(m, func(m string) bool { return strings.Contains(m, "exceeded quota: few") }) {
			return fmt.Errorf("events %q", m)
		}
		return nil
	})
	r.Eventually("it tried some times", func(context.Context) error {
		return cluster.When(c.Metric("tapp_sync_errors_total", nil) < 9, "not yet")
	})
	tries := c.Metric("tapp_api_requests_total", map[string]string{"verb": "create", "resource": "pods", "code": "403"})
	rounds := c.Metric("tapp_sync_errors_total", nil)
	if tries > rounds+5 {
		t.Errorf("%v tries in %v failed rounds; want one each, but for those that were under way when the quota was met", tries, rounds)
	}
	if _, err := r.Kube.CoreV1().ResourceQuotas(r.NS).Patch(r.Context(), "few", types.MergePatchType, []byte(`{"spec":{"hard":{"pods":"1000"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	r.WaitReady("a")
}

// TestStaleCache: the watch of pods stalls without an error. The controller does
// not act on what it knows to be old, and does not wait for ever either: it reads
// live.
func TestStaleCache(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.watchPods()
	s := newStall()
	c := r.start(wrapped(s.wrap))
	r.Create(app("a"))
	r.WaitReady("a")
	s.set(true)
	r.Change("a", func(t *tappv1.TApp) { gen.Replicas(6)(t) })
	r.Eventually("six instances run", func(context.Context) error { return missing(r, 6) })
	r.Change("a", func(t *tappv1.TApp) { gen.Default(gen.Image("demo:v2"))(t); gen.MaxUnavailable("100%")(t) })
	r.WaitReady("a")
	if n := c.Metric("tapp_stale_cache_repairs_total", nil); n < 2 {
		t.Errorf("%v repairs, want some", n)
	}
	if n := c.Metric("tapp_api_requests_total", map[string]string{"code": "409"}); n != 0 {
		t.Errorf("%v conflicts: it acted on what it knew to be old", n)
	}
	s.set(false)
	r.Change("a", func(t *tappv1.TApp) { gen.Replicas(5)(t) })
	r.WaitReady("a")
	for i := range 6 {
		if name := fmt.Sprint("a-", i); w.Lives(name) != 1 {
			t.Errorf("pod %s had %d lives", name, w.Lives(name))
		}
	}
}

func missing(r *rig, n int) error {
	ready := 0
	for _, p := range r.Pods() {
		if witness.InService(p) {
			ready++
		}
	}
	if ready != n {
		return fmt.Errorf("%d run", ready)
	}
	return nil
}

// TestClaimsFoundAgain: claims that are there already are taken as they are, also
// those that tkestack/tapp made, which lack our label.
func TestClaimsFoundAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start()
	claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}},
	}}
	old := claim.DeepCopy()
	old.Name = "data-a-1"
	old, err := r.Kube.CoreV1().PersistentVolumeClaims(r.NS).Create(r.Context(), old, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r.Create(app("a", func(t *tappv1.TApp) { t.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim} }))
	r.Eventually("claims and pods are there", func(ctx context.Context) error {
		claims, err := r.Kube.CoreV1().PersistentVolumeClaims(r.NS).List(ctx, metav1.ListOptions{LabelSelector: tappv1.LabelInstanceID})
		if err != nil {
			return err
		}
		if len(claims.Items) != 3 || len(r.Pods()) != 3 {
			return fmt.Errorf("%d labelled claims, %d pods", len(claims.Items), len(r.Pods()))
		}
		return nil
	})
	now, err := r.Kube.CoreV1().PersistentVolumeClaims(r.NS).Get(r.Context(), "data-a-1", metav1.GetOptions{})
	if err != nil || now.UID != old.UID || now.Labels[tappv1.LabelInstanceID] != "1" {
		t.Errorf("got %+v and error %v, want the old claim with its label", now, err)
	}
	if v := r.Pods()["a-1"].Spec.Volumes; !slices.ContainsFunc(v, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == "data-a-1"
	}) {
		t.Errorf("the pod has the volumes %+v", v)
	}
}
