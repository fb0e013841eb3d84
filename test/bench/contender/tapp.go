package contender

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/bench/measure"
	"tkestack.io/tapp/test/bench/record"
)

const changingTApps = "changing TApps"

// tappUser asks TApp for what the bare client does itself.
type tappUser struct {
	job
	namespace string
	process   *controller
	requested int64 // bytes of patches in this phase
}

// StartTApp starts a controller, and returns when its caches are filled.
func (b *Bench) StartTApp(ctx context.Context, namespace *corev1.Namespace, size Size) (*Contender, error) {
	p, err := follow(ctx, b.user, namespace.Name)
	if err != nil {
		return nil, err
	}
	process, err := b.startController()
	if err != nil {
		return nil, err
	}
	c := &tappUser{job: job{Bench: b, pods: p, size: size}, namespace: namespace.Name, process: process}
	if err := errors.Join(process.ready(ctx), c.serves(ctx)); err != nil {
		return nil, errors.Join(err, process.Stop())
	}
	empty, err := measure.UsageOf(process.PID())
	if err != nil {
		return nil, errors.Join(err, process.Stop())
	}
	out := &Contender{
		Name: record.TApp,
		Do: map[string]func(context.Context) error{
			record.Create: c.create, record.InPlace: c.inPlace, record.Rolling: c.rolling,
			record.Recreate: c.recreate, record.Zero: c.zero,
		},
		Subject: c.subject,
		Restart: c.restart,
		Empty:   empty.Resident,
		Stop: func(ctx context.Context) error {
			return errors.Join(c.process.Stop(), c.deleteAll(ctx), b.clear(ctx, c.namespace, p))
		},
	}
	if size.isOneByOne() {
		out.Do[record.OneByOne] = c.oneByOne
	}
	return out, nil
}

func (c *tappUser) subject() measure.Subject {
	return measure.Subject{
		Wrote: byAgent("tapp/", c.namespace), Asked: byAgent(userAgent, c.namespace),
		Process: "tapp", PID: c.process.PID(), Status: "patch tapps", Requested: c.requested,
	}
}

func (c *tappUser) tapp(name string) *tappv1.TApp {
	t := &tappv1.TApp{ObjectMeta: metav1.ObjectMeta{Name: name}}
	t.Spec.Replicas = new(int32(c.size.Instances))
	t.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}} // which admission adds
	t.Spec.Template = template(c.version, name)
	t.Spec.UpdateStrategy.InPlaceUpdate.Drain = new(c.size.Gate)
	return t
}

// serves waits for the API server, which holds back the first object of a new CRD
// for two seconds.
func (c *tappUser) serves(ctx context.Context) error {
	if _, err := c.tapps.TApps(c.namespace).Create(ctx, c.tapp("trial"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		return fmt.Errorf("trying to create a TApp: %w", err)
	}
	return nil
}

func (c *tappUser) create(ctx context.Context) error {
	return c.arrives(ctx, "creating TApps", c.createAll(ctx, wrote))
}

// createAll calls then with each of them.
func (c *tappUser) createAll(ctx context.Context, then func(*tappv1.TApp) error) error {
	return c.size.each(func(name string) error {
		t, err := c.tapps.TApps(c.namespace).Create(ctx, c.tapp(name), metav1.CreateOptions{})
		if err != nil {
			return err
		}
		return then(t)
	})
}

func (c *tappUser) deleteAll(ctx context.Context) error {
	return c.size.each(func(name string) error { return c.tapps.TApps(c.namespace).Delete(ctx, name, metav1.DeleteOptions{}) })
}

// wrote is for whom a write is the end of it.
func wrote(*tappv1.TApp) error { return nil }

func (c *tappUser) inPlace(ctx context.Context) error {
	c.version.images++
	return c.update(ctx, "100%")
}

func (c *tappUser) rolling(ctx context.Context) error {
	c.version.images++
	return c.update(ctx, "10%")
}

func (c *tappUser) oneByOne(ctx context.Context) error {
	c.version.images++
	if err := c.update(ctx, one); err != nil {
		return err
	}
	return c.addAndRemove(ctx, changingTApps, func(n int) error {
		return c.patchAll(ctx, func(string) map[string]any { return map[string]any{"replicas": n} }, wrote)
	})
}

func (c *tappUser) recreate(ctx context.Context) error {
	c.version.revisions++
	return c.update(ctx, "100%")
}

// update changes the template, and how many instances may be down for it: with all of
// them, all change at once.
func (c *tappUser) update(ctx context.Context, budget string) error {
	return c.arrives(ctx, changingTApps, c.patchAll(ctx, c.updated(budget), wrote))
}

func (c *tappUser) updated(budget string) func(name string) map[string]any {
	return func(name string) map[string]any {
		return map[string]any{"template": template(c.version, name), "updateStrategy": map[string]any{"maxUnavailable": budget}}
	}
}

func (c *tappUser) zero(ctx context.Context) error {
	none := func(string) map[string]any { return map[string]any{"replicas": 0} }
	return c.ends(ctx, changingTApps, c.patchAll(ctx, none, wrote))
}

// patchAll changes the spec of every TApp, and calls then with each of them.
func (c *tappUser) patchAll(ctx context.Context, spec func(name string) map[string]any, then func(*tappv1.TApp) error) error {
	c.requested = 0
	patches := map[string][]byte{}
	for i := range c.size.Objects {
		data, err := json.Marshal(map[string]any{"spec": spec(object(i))})
		if err != nil {
			return err
		}
		patches[object(i)] = data
		c.requested += int64(len(data))
	}
	return c.size.each(func(name string) error {
		t, err := c.tapps.TApps(c.namespace).Patch(ctx, name, types.MergePatchType, patches[name], metav1.PatchOptions{})
		if err != nil {
			return err
		}
		return then(t)
	})
}
