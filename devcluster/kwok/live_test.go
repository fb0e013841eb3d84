//go:build cluster

package kwok

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// TestLive plays pods through their lives on a running cluster, and says how fast. The line "bare client" is the API
// server's own limit: as many status writes as a phase makes KWOK do, of pods that KWOK leaves alone.
//
//	DEVCLUSTER_KUBECONFIG=.devcluster/kubeconfig [PODS=1000] go test -tags cluster ./kwok -run Live -v
func TestLive(t *testing.T) {
	kubeconfig := os.Getenv("DEVCLUSTER_KUBECONFIG")
	if kubeconfig == "" {
		t.Fatal("set DEVCLUSTER_KUBECONFIG to the kubeconfig of a running cluster: make up NODES=sim")
	}
	n := 1000
	if text := os.Getenv("PODS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	l := newLive(t, kubeconfig, n)
	defer l.stop()
	images := `{"spec":{"containers":[{"name":"main","image":"nginx:1.8.1"}]}}`
	flip := func(status string) string {
		return `{"status":{"conditions":[{"type":"` + string(gate) + `","status":"` + status + `"}]}}`
	}
	l.phase("bare client", func(i int) error { return l.patch("still", i, flip("True"), "status") }, func(*corev1.Pod) bool { return true })
	l.phase("create", func(i int) error { return l.create("web", i, nil) }, func(p *corev1.Pod) bool { return is(p, corev1.ContainersReady) })
	l.phase("gate true", func(i int) error { return l.patch("web", i, flip("True"), "status") }, func(p *corev1.Pod) bool { return is(p, corev1.PodReady) })
	l.phase("gate false", func(i int) error { return l.patch("web", i, flip("False"), "status") }, func(p *corev1.Pod) bool { return !is(p, corev1.PodReady) })
	l.phase("image", func(i int) error { return l.patch("web", i, images) }, func(p *corev1.Pod) bool {
		s := p.Status.ContainerStatuses
		return len(s) == 2 && s[0].RestartCount == 1 && s[1].RestartCount == 0 && p.Status.ObservedGeneration == 2
	})
	l.phase("gate true again", func(i int) error { return l.patch("web", i, flip("True"), "status") }, func(p *corev1.Pod) bool { return is(p, corev1.PodReady) })
	l.phase("delete", func(i int) error {
		return l.client.CoreV1().Pods(l.namespace).Delete(l.ctx, fmt.Sprintf("web-%d", i), metav1.DeleteOptions{})
	}, nil)
}

func is(p *corev1.Pod, kind corev1.PodConditionType) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == kind {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// live is a namespace with a watch on its pods named web-*.
type live struct {
	t         *testing.T
	ctx       context.Context
	cancel    func()
	client    kubernetes.Interface
	namespace string
	n         int

	mu     sync.Mutex
	pods   map[string]*corev1.Pod
	events int
	seen   time.Time // the latest event
}

func newLive(t *testing.T, kubeconfig string, n int) *live {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	config.ContentType, config.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	l := &live{t: t, client: client, n: n, pods: map[string]*corev1.Pod{}, namespace: fmt.Sprintf("live-%d", time.Now().Unix())}
	l.ctx, l.cancel = context.WithTimeout(context.Background(), 10*time.Minute)
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: l.namespace}}
	if _, err := client.CoreV1().Namespaces().Create(l.ctx, space, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pods := cache.NewFilteredListWatchFromClient(client.CoreV1().RESTClient(), "pods", l.namespace,
		func(o *metav1.ListOptions) { o.LabelSelector = "app=web" })
	_, follow := cache.NewInformerWithOptions(cache.InformerOptions{ListerWatcher: pods, ObjectType: &corev1.Pod{}, Handler: l})
	go follow.Run(l.ctx.Done())
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		_, err := client.CoreV1().ServiceAccounts(l.namespace).Get(l.ctx, "default", metav1.GetOptions{})
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	l.each(func(i int) error { return l.create("still", i, map[string]string{Freeze: "true"}) })
	time.Sleep(3 * time.Second) // until the scheduler is done with them
	return l
}

func (l *live) OnAdd(o any, _ bool) { l.saw(o, false) }
func (l *live) OnUpdate(_, o any)   { l.saw(o, false) }
func (l *live) OnDelete(o any)      { l.saw(o, true) }

func (l *live) saw(o any, gone bool) {
	p, ok := o.(*corev1.Pod)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events++
	l.seen = time.Now()
	if gone {
		delete(l.pods, p.Name)
	} else {
		l.pods[p.Name] = p
	}
}

// phase does something to each pod, and waits until all are as wanted (nil: gone).
func (l *live) phase(name string, do func(i int) error, want func(*corev1.Pod) bool) {
	l.t.Helper()
	l.mu.Lock()
	l.events = 0
	l.mu.Unlock()
	began := time.Now()
	l.each(do)
	written := time.Since(began)
	var settled time.Duration
	for done := false; !done; time.Sleep(5 * time.Millisecond) {
		if l.ctx.Err() != nil {
			l.t.Fatalf("%s: %v", name, l.ctx.Err())
		}
		l.mu.Lock()
		done, settled = true, l.seen.Sub(began)
		for _, p := range l.pods {
			done = done && want != nil && want(p)
		}
		done = done && (name == "bare client" || len(l.pods) == l.n || want == nil)
		l.mu.Unlock()
	}
	time.Sleep(500 * time.Millisecond) // whatever comes now came too much
	settled = max(settled, written)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.t.Logf("%-16s client done after %5.2fs, all pods after %5.2fs = %4.0f pods/s, %.2f events a pod",
		name, written.Seconds(), settled.Seconds(), float64(l.n)/settled.Seconds(), float64(l.events)/float64(l.n))
}

// each calls do for all pods, 64 at a time.
func (l *live) each(do func(i int) error) {
	l.t.Helper()
	var wait sync.WaitGroup
	slots := make(chan struct{}, 64)
	for i := range l.n {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			if err := do(i); err != nil {
				l.t.Error(err)
			}
		})
	}
	wait.Wait()
}

func (l *live) create(prefix string, i int, annotations map[string]string) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", prefix, i), Labels: map[string]string{"app": prefix}, Annotations: annotations},
		Spec: corev1.PodSpec{
			NodeSelector:   map[string]string{"type": "kwok"},
			Tolerations:    []corev1.Toleration{{Key: Taint, Operator: corev1.TolerationOpExists}},
			ReadinessGates: []corev1.PodReadinessGate{{ConditionType: gate}},
			Containers:     []corev1.Container{{Name: "main", Image: "nginx:1.7.9"}, {Name: "other", Image: "demo:v1"}},
		},
	}
	_, err := l.client.CoreV1().Pods(l.namespace).Create(l.ctx, pod, metav1.CreateOptions{})
	return err
}

func (l *live) patch(prefix string, i int, body string, subresource ...string) error {
	name := fmt.Sprintf("%s-%d", prefix, i)
	_, err := l.client.CoreV1().Pods(l.namespace).Patch(l.ctx, name, types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{}, subresource...)
	return err
}

func (l *live) stop() {
	zero := int64(0)
	for _, err := range []error{
		l.client.CoreV1().Pods(l.namespace).DeleteCollection(l.ctx, metav1.DeleteOptions{GracePeriodSeconds: &zero}, metav1.ListOptions{}),
		l.client.CoreV1().Namespaces().Delete(l.ctx, l.namespace, metav1.DeleteOptions{}),
	} {
		if err != nil {
			l.t.Error(err)
		}
	}
	l.cancel()
}
