package contender

import (
	"context"
	"encoding/json"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tkestack.io/tapp/test/audit"
	"tkestack.io/tapp/test/bench/measure"
	"tkestack.io/tapp/test/bench/record"
)

// controllerManager is the process that has the StatefulSet controller among many.
const controllerManager = "kube-controller-manager"

const changingStatefulSets = "changing StatefulSets"

// statefulSetUser asks StatefulSets for what the bare client does itself. They
// know no update in place.
type statefulSetUser struct {
	job
	namespace string
}

// StartStatefulSet needs to start nothing: it works in kube-controller-manager.
func (b *Bench) StartStatefulSet(ctx context.Context, namespace *corev1.Namespace, size Size) (*Contender, error) {
	p, err := follow(ctx, b.user, namespace.Name)
	if err != nil {
		return nil, err
	}
	c := &statefulSetUser{job: job{Bench: b, pods: p, size: size}, namespace: namespace.Name}
	sets := b.user.AppsV1().StatefulSets(c.namespace)
	out := &Contender{
		Name: record.StatefulSet,
		Do: map[string]func(context.Context) error{
			record.Create: c.create, record.Rolling: c.rolling, record.Recreate: c.recreate, record.Zero: c.zero,
		},
		Subject: c.subject,
		Stop: func(ctx context.Context) error {
			var err error
			for i := range size.Objects {
				err = errors.Join(err, sets.Delete(ctx, object(i), metav1.DeleteOptions{}))
			}
			return errors.Join(err, b.clear(ctx, c.namespace, p))
		},
	}
	if size.isOneByOne() {
		out.Do[record.OneByOne] = c.oneByOne
	}
	return out, nil
}

func (c *statefulSetUser) subject() measure.Subject {
	wrote := audit.Filter{Agent: controllerManager + "/", Namespace: c.namespace}
	return measure.Subject{
		Wrote: func(r audit.Request) bool {
			return wrote.Match(r) && r.User == "system:serviceaccount:kube-system:statefulset-controller"
		},
		Asked:   byAgent(userAgent, c.namespace),
		Process: controllerManager, Status: "update statefulsets",
	}
}

func (c *statefulSetUser) create(ctx context.Context) error {
	err := c.size.each(func(name string) error {
		t := template(c.version, name)
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(c.size.Instances)), Template: t, Selector: &metav1.LabelSelector{MatchLabels: t.Labels},
			PodManagementPolicy: appsv1.ParallelPodManagement,
		}}
		_, err := c.user.AppsV1().StatefulSets(c.namespace).Create(ctx, set, metav1.CreateOptions{})
		return err
	})
	return c.arrives(ctx, "creating StatefulSets", err)
}

// rolling changes the image, as the others do; the pods are recreated.
func (c *statefulSetUser) rolling(ctx context.Context) error {
	c.version.images++
	return c.update(ctx, "10%")
}

func (c *statefulSetUser) oneByOne(ctx context.Context) error {
	c.version.images++
	if err := c.update(ctx, one); err != nil {
		return err
	}
	return c.addAndRemove(ctx, changingStatefulSets, func(n int) error {
		return c.patch(ctx, func(string) map[string]any { return map[string]any{"replicas": n} })
	})
}

func (c *statefulSetUser) recreate(ctx context.Context) error {
	c.version.revisions++
	return c.update(ctx, "100%")
}

func (c *statefulSetUser) update(ctx context.Context, budget string) error {
	err := c.patch(ctx, func(name string) map[string]any {
		return map[string]any{"template": template(c.version, name),
			"updateStrategy": map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxUnavailable": budget}}}
	})
	return c.arrives(ctx, changingStatefulSets, err)
}

func (c *statefulSetUser) zero(ctx context.Context) error {
	return c.ends(ctx, changingStatefulSets, c.patch(ctx, func(string) map[string]any { return map[string]any{"replicas": 0} }))
}

func (c *statefulSetUser) patch(ctx context.Context, spec func(name string) map[string]any) error {
	return c.size.each(func(name string) error {
		data, err := json.Marshal(map[string]any{"spec": spec(name)})
		if err != nil {
			return err
		}
		_, err = c.user.AppsV1().StatefulSets(c.namespace).Patch(ctx, name, types.StrategicMergePatchType, data, metav1.PatchOptions{})
		return err
	})
}
