// Package contender has those that the benchmark lets do the same work: TApp,
// StatefulSet, a bare client that makes the same writes with no controller's
// duties, alone and with the writes to the objects above the pods, and KWOK alone,
// which plays the kubelet for all of them.
package contender

import (
	"context"
	"fmt"
	"math"
	"net"
	"os/exec"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"tkestack.io/tapp/crd/client"
	"tkestack.io/tapp/test/audit"
	"tkestack.io/tapp/test/bench/measure"
)

// writers is how many requests a client has under way.
const writers = 64

// Agents under which clients are known to the audit log.
const (
	userAgent = "bench-user"
	bareAgent = "bench-bare"
)

// Bench is what all contenders share.
type Bench struct {
	Cluster    measure.Cluster
	Kubeconfig string
	// Binary of TApp, and Devcluster, which stops and starts parts of the cluster.
	Binary     string
	Devcluster string

	user      *kubernetes.Clientset
	bare      *kubernetes.Clientset
	tapps     *client.Client
	bareTApps *client.Client
}

// Connect makes the clients. The API server is their only limit: the bare one has
// connections of its own, because the user's watch of the pods would fall behind its
// writes on the same one. Other contenders are other processes.
func (b *Bench) Connect(cfg *rest.Config) error {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.Burst, cfg.UserAgent = -1, -1, userAgent
	var err error
	if b.tapps, err = client.New(cfg); err != nil {
		return fmt.Errorf("making the client of TApps: %w", err)
	}
	bare := rest.CopyConfig(cfg)
	bare.UserAgent = bareAgent
	bare.Dial = (&net.Dialer{}).DialContext // client-go shares connections but for those with a dialer
	if b.bareTApps, err = client.New(bare); err != nil {
		return fmt.Errorf("making the bare client of TApps: %w", err)
	}
	cfg.ContentType, bare.ContentType = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf
	if b.user, err = kubernetes.NewForConfig(cfg); err != nil {
		return fmt.Errorf("making the user's client: %w", err)
	}
	if b.bare, err = kubernetes.NewForConfig(bare); err != nil {
		return fmt.Errorf("making the bare client: %w", err)
	}
	b.Cluster.API = b.user.CoreV1().RESTClient()
	return nil
}

// Kubernetes is the API server's version.
func (b *Bench) Kubernetes() (string, error) {
	v, err := b.user.Discovery().ServerVersion()
	if err != nil {
		return "", fmt.Errorf("asking for the version: %w", err)
	}
	return v.GitVersion, nil
}

// Size of the work.
type Size struct {
	Objects   int // TApps or StatefulSets
	Instances int // of each
	Gate      bool
}

func (s Size) pods() int { return s.Objects * s.Instances }

// version of the pods: the image changes in place, the revision, which is in the
// environment, does not.
type version struct{ images, revisions int }

// image in full, as kubelets report it: the names are compared.
func (v version) image() string { return "docker.io/library/demo:v" + strconv.Itoa(v.images+1) }

func (v version) revision() string { return strconv.Itoa(v.revisions) }

// template of the pods of all contenders. Its pods go to simulated nodes.
func template(v version, app string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"type": "kwok"},
			Tolerations:  []corev1.Toleration{{Key: "kwok.x-k8s.io/node", Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{Name: "web", Image: v.image(),
				Env: []corev1.EnvVar{{Name: "REVISION", Value: v.revision()}}}},
		},
	}
}

// tenth of the instances of an object, as budgets count it: rounded up.
func (s Size) tenth() int { return int(math.Ceil(float64(s.Instances) / 10)) }

// isOneByOne says whether the phase is for this size: with more instances it would take
// hours, and say the same.
func (s Size) isOneByOne() bool { return s.Objects == 1 && s.Instances <= 100 }

// one is the budget of one instance of a hundred.
const one = "1%"

// changes is how many times one instance is added and removed.
const changes = 20

// object is the name of one.
func object(i int) string { return "bench-" + strconv.Itoa(i) }

// job is what those that make pods have in common.
type job struct {
	*Bench
	pods    *pods
	size    Size
	version version
}

// arrives returns when all pods run what the job has come to, or why the writes for it
// failed.
func (j *job) arrives(ctx context.Context, doing string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return j.pods.all(ctx, j.size.pods(), runs(j.version))
}

// addAndRemove one instance many times: scale asks for a number of them.
func (j *job) addAndRemove(ctx context.Context, doing string, scale func(instances int) error) error {
	for i := range 2 * changes {
		n := j.size.Instances + (i+1)%2
		if err := scale(n); err != nil {
			return fmt.Errorf("%s: %w", doing, err)
		}
		if err := j.pods.all(ctx, n, runs(j.version)); err != nil {
			return err
		}
		if err := calm(ctx); err != nil {
			return err
		}
	}
	return nil
}

// calm lets everybody come to rest: what is asked of one at work waits for that.
func calm(ctx context.Context) error {
	t := time.NewTimer(calmFor)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// calmFor is longer than statuses are put off.
const calmFor = 700 * time.Millisecond

// ends returns when all pods are gone, or why the writes for it failed.
func (j *job) ends(ctx context.Context, doing string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return j.pods.all(ctx, 0, isGone)
}

// each calls f for every object, with bounded parallelism.
func (s Size) each(f func(name string) error) error {
	var g errgroup.Group
	g.SetLimit(writers)
	for i := range s.Objects {
		g.Go(func() error { return f(object(i)) })
	}
	return g.Wait()
}

// Contender is one that can be measured.
type Contender struct {
	Name string
	// Do has what it does in each phase: it asks, and waits until the pods are so.
	Do map[string]func(context.Context) error
	// Subject is who it is, at the moment.
	Subject func() measure.Subject
	// Restart, if it has a process of its own, starts this anew and returns when
	// it has worked on everything once.
	Restart func(context.Context) (Restarted, error)
	// Empty is the resident memory of its process before there were pods.
	Empty int64
	// Stop ends it, and removes its objects.
	Stop func(context.Context) error
}

// Start makes a contender whose pods live in a namespace of their own.
type Start func(ctx context.Context, namespace *corev1.Namespace, size Size) (*Contender, error)

// Namespace makes one with a name of its own. It is not removed: the removal of
// thousands of events would be measured with what comes next.
func (b *Bench) Namespace(ctx context.Context) (*corev1.Namespace, error) {
	ns, err := b.user.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-"}}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("creating a namespace: %w", err)
	}
	return ns, nil
}

// clear deletes all pods, and returns when they are gone: pods that are going
// away cost the API server, too.
func (b *Bench) clear(ctx context.Context, namespace string, p *pods) error {
	var g errgroup.Group
	g.SetLimit(writers)
	for _, name := range p.names() {
		g.Go(func() error {
			err := b.user.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("deleting pods: %w", err)
	}
	return p.all(ctx, 0, isGone)
}

// devcluster stops or starts a part of the cluster.
func (b *Bench) devcluster(ctx context.Context, verb, part string) error {
	out, err := exec.CommandContext(ctx, b.Devcluster, verb, part, "--dir", b.Cluster.Dir).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", verb, part, err, out)
	}
	return nil
}

// byAgent selects the requests of a client in a namespace.
func byAgent(agent, namespace string) func(audit.Request) bool {
	filter := audit.Filter{Agent: agent, Namespace: namespace}
	return filter.Match
}
