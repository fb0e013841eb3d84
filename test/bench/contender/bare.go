package contender

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/bench/measure"
	"tkestack.io/tapp/test/bench/record"
)

// bareClient makes the writes that instances need, as fast as the API server takes
// them. It reads nothing but, where a step must follow another, its own pods.
type bareClient struct {
	job
	namespace *corev1.Namespace
	slots     chan struct{} // of requests under way
}

// StartBare starts the limit.
func (b *Bench) StartBare(ctx context.Context, namespace *corev1.Namespace, size Size) (*Contender, error) {
	_, limit, err := b.startBare(ctx, namespace, size)
	return limit, err
}

func (b *Bench) startBare(ctx context.Context, namespace *corev1.Namespace, size Size) (*bareClient, *Contender, error) {
	p, err := follow(ctx, b.user, namespace.Name)
	if err != nil {
		return nil, nil, err
	}
	c := &bareClient{job: job{Bench: b, pods: p, size: size}, namespace: namespace, slots: make(chan struct{}, writers)}
	return c, &Contender{
		Name: record.Bare,
		Do: map[string]func(context.Context) error{
			record.Create: c.create, record.InPlace: c.inPlace, record.Rolling: c.rolling,
			record.Recreate: c.recreate, record.Zero: c.zero,
		},
		Subject: func() measure.Subject { return measure.Subject{Wrote: byAgent(bareAgent, namespace.Name)} },
		Stop:    func(ctx context.Context) error { return b.clear(ctx, namespace.Name, p) },
	}, nil
}

func (c *bareClient) create(ctx context.Context) error {
	return c.arrives(ctx, "creating pods", c.all(ctx, func(name string) error { return c.begin(ctx, name) }))
}

// inPlace makes each kind of write for all pods before the next kind, as one who
// takes all of them at once would.
func (c *bareClient) inPlace(ctx context.Context) error {
	c.version.images++
	if err := c.all(ctx, func(name string) error { return c.gate(ctx, name, corev1.ConditionFalse) }); err != nil {
		return fmt.Errorf("closing gates: %w", err)
	}
	if err := c.all(ctx, func(name string) error { return c.image(ctx, name) }); err != nil {
		return fmt.Errorf("changing images: %w", err)
	}
	return c.arrives(ctx, "opening gates", c.all(ctx, func(name string) error { return c.gate(ctx, name, corev1.ConditionTrue) }))
}

// rolling has a tenth of the pods of each object under way; a pod that is ready
// makes room for the next.
func (c *bareClient) rolling(ctx context.Context) error {
	c.version.images++
	var objects errgroup.Group
	for o := range c.size.Objects {
		objects.Go(func() error {
			var g errgroup.Group
			g.SetLimit(c.size.tenth())
			for i := range c.size.Instances {
				g.Go(func() error {
					name := object(o) + "-" + strconv.Itoa(i)
					for _, step := range []func() error{
						func() error { return c.gate(ctx, name, corev1.ConditionFalse) },
						func() error { return c.image(ctx, name) },
						func() error { return c.gate(ctx, name, corev1.ConditionTrue) },
					} {
						if err := c.write(step); err != nil {
							return err
						}
					}
					return c.pods.one(ctx, name, runs(c.version))
				})
			}
			return g.Wait()
		})
	}
	return c.arrives(ctx, "rolling", objects.Wait())
}

func (c *bareClient) recreate(ctx context.Context) error {
	c.version.revisions++
	err := c.all(ctx, func(name string) error { return c.delete(ctx, name) }, func(name string) error {
		return c.pods.one(ctx, name, isGone)
	}, func(name string) error {
		return c.write(func() error { return c.begin(ctx, name) })
	})
	return c.arrives(ctx, "recreating pods", err)
}

func (c *bareClient) zero(ctx context.Context) error {
	return c.ends(ctx, "deleting pods", c.all(ctx, func(name string) error { return c.delete(ctx, name) }))
}

// all makes a first write for each pod; what follows it for a pod waits for no
// other pod.
func (c *bareClient) all(ctx context.Context, first func(name string) error, then ...func(name string) error) error {
	g, ctx := errgroup.WithContext(ctx)
	for i := range c.size.Instances {
		for o := range c.size.Objects {
			name := object(o) + "-" + strconv.Itoa(i)
			select {
			case c.slots <- struct{}{}:
			case <-ctx.Done():
				return g.Wait()
			}
			g.Go(func() error {
				err := first(name)
				<-c.slots
				for _, next := range then {
					if err == nil {
						err = next(name)
					}
				}
				return err
			})
		}
	}
	return g.Wait()
}

// write waits for its turn.
func (c *bareClient) write(f func() error) error {
	c.slots <- struct{}{}
	defer func() { <-c.slots }()
	return f()
}

// begin creates a pod, and puts it into service.
func (c *bareClient) begin(ctx context.Context, name string) error {
	if err := c.post(ctx, name); err != nil {
		return err
	}
	return c.gate(ctx, name, corev1.ConditionTrue)
}

// post creates a pod that is as large as one of a TApp, and has an owner as that
// has: the namespace.
func (c *bareClient) post(ctx context.Context, name string) error {
	app, id := name[:strings.LastIndexByte(name, '-')], name[strings.LastIndexByte(name, '-')+1:]
	t := template(c.version, app)
	pod := &corev1.Pod{ObjectMeta: t.ObjectMeta, Spec: t.Spec}
	pod.Name = name
	pod.Labels[tappv1.LabelInstanceID], pod.Labels[tappv1.LabelPodIndex] = id, id
	pod.Labels[tappv1.LabelTemplateHash], pod.Labels[tappv1.LabelUniqHash] = "v1-0000000000000000", "v1-0000000000000000"
	pod.Annotations = map[string]string{"bench/template-keys": `{"labels":["app"]}`}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: c.namespace.Name, UID: c.namespace.UID,
		Controller: new(true), BlockOwnerDeletion: new(true)}}
	if c.size.Gate {
		pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: tappv1.GateInPlaceUpdate}}
	}
	_, err := c.bare.CoreV1().Pods(c.namespace.Name).Create(ctx, pod, metav1.CreateOptions{})
	return err
}

// gate does nothing for pods without one.
func (c *bareClient) gate(ctx context.Context, name string, status corev1.ConditionStatus) error {
	if !c.size.Gate {
		return nil
	}
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":%q,"status":%q}]}}`, tappv1.GateInPlaceUpdate, status)
	return c.patch(ctx, name, patch, "status")
}

// image makes the same write as a TApp: with the new image, the hashes that go with
// it, and as many words on what ran before.
func (c *bareClient) image(ctx context.Context, name string) error {
	hash := fmt.Sprintf("v1-%016x", c.version.images)
	record := fmt.Sprintf(`{"revision":%q,"updateTimestamp":%q,"lastContainerStatuses":{"web":{"containerID":%q,"image":%q}}}`,
		hash, time.Now().UTC().Format(time.RFC3339), "kwok-"+c.namespace.Name+"-"+name, version{c.version.images - 1, 0}.image())
	return c.patch(ctx, name, fmt.Sprintf(`{"metadata":{"labels":{%q:%q,%q:%q},"annotations":{%q:%q}},"spec":{"containers":[{"name":"web","image":%q}]}}`,
		tappv1.LabelTemplateHash, hash, tappv1.LabelUniqHash, hash, tappv1.AnnotationInPlaceState, record, c.version.image()))
}

func (c *bareClient) patch(ctx context.Context, name, patch string, subresources ...string) error {
	_, err := c.bare.CoreV1().Pods(c.namespace.Name).Patch(ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
	return err
}

func (c *bareClient) delete(ctx context.Context, name string) error {
	return c.bare.CoreV1().Pods(c.namespace.Name).Delete(ctx, name, metav1.DeleteOptions{})
}
