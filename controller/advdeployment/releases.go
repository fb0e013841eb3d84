package advdeployment

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"tkestack.io/tapp/controller/events"
	"tkestack.io/tapp/controller/release"
	"tkestack.io/tapp/controller/write"
	"tkestack.io/tapp/crd/workload/v1beta1"
	plan "tkestack.io/tapp/plan/advdeployment"
	"tkestack.io/tapp/plan/podset"
	releaseplan "tkestack.io/tapp/plan/release"
)

// maxTurns bounds the plans of releases in one sync. Each phase of a release takes several.
const maxTurns = 200

func ownerOf(d *v1beta1.AdvDeployment) release.Owner {
	return release.Owner{Namespace: d.Namespace, Name: d.Name, UID: d.UID}
}

// releaseNames are those that an AdvDeployment asks for, and those that it had when its
// status was written.
func releaseNames(d *v1beta1.AdvDeployment) (names []string) {
	for _, u := range plan.Releases(d) {
		names = append(names, u.PodSet.Name)
	}
	for _, resource := range d.Status.AggrStatus.OwnerResource {
		if name, is := strings.CutPrefix(resource, string(plan.Release)+"/"); is {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// seeReleases brings up to date what is known of the releases of an AdvDeployment.
func (c *Controller) seeReleases(ctx context.Context, v *view, o *object) error {
	names := releaseNames(v.deployment)
	if len(names) == 0 {
		return nil
	}
	if v.isLive {
		o.releases.Forget()
	}
	if o.touched(v.deployment) {
		o.releases.MarkStale()
	}
	if err := c.Releases.Observe(ctx, &o.releases, ownerOf(v.deployment), names, c.watched); err != nil {
		return err
	}
	for _, u := range plan.Releases(v.deployment) {
		o.releases.Drop(u.PodSet.Name, &u, c.Clock.Now())
	}
	return nil
}

// touched says whether somebody changed the AdvDeployment since the last sync. Such a person
// may have run helm as well, which no watch tells of.
func (o *object) touched(d *v1beta1.AdvDeployment) bool {
	before := o.last
	o.last = marks{d.Generation, d.Annotations, d.Labels}
	return before.generation != d.Generation || !maps.Equal(before.annotations, d.Annotations) || !maps.Equal(before.labels, d.Labels)
}

// watched returns an object of a release from the caches of children.
func (c *Controller) watched(ref releaseplan.Ref) (*unstructured.Unstructured, bool) {
	kind := plan.Kind(ref.Kind)
	informer := c.children[kind]
	if informer == nil || kind.APIVersion() != ref.APIVersion || c.Namespace != "" && c.Namespace != ref.Namespace {
		return nil, false
	}
	if stored, exists, _ := informer.GetStore().GetByKey(ref.Namespace + "/" + ref.Name); exists {
		return stored.(*unstructured.Unstructured), true
	}
	return nil, true
}

// input is all that the planner sees.
func (c *Controller) input(v *view, o *object) (plan.Input, error) {
	in := v.input(o, c.Clock.Now())
	if len(releaseNames(v.deployment)) == 0 {
		return in, nil
	}
	var err error
	in.Releases, err = c.Releases.Input(&o.releases, func(ref releaseplan.Ref) bool {
		return c.isScaled(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind(), ref.Namespace, ref.Name)
	})
	return in, err
}

// showReleases reads what the plans for releases ask for. True: the plan is to be made
// anew.
func (c *Controller) showReleases(ctx context.Context, v *view, o *object, p *plan.Plan) (bool, error) {
	asked := false
	for i := range p.Releases {
		r := &p.Releases[i]
		some, err := c.Releases.Show(ctx, &o.releases, ownerOf(v.deployment), r.Name, &r.Plan, chartOf(v.deployment, r.Unit))
		if err != nil {
			return false, fmt.Errorf("release %s: %w", r.Name, err)
		}
		asked = asked || some
	}
	return asked, nil
}

// chartOf a unit, with its archive where the AdvDeployment has it.
func chartOf(d *v1beta1.AdvDeployment, u *podset.Unit) *release.Chart {
	if u == nil {
		return nil
	}
	out := &release.Chart{Unit: u}
	raws := [][]byte{}
	if d.Spec.PodSpec.Chart != nil {
		raws = append(raws, d.Spec.PodSpec.Chart.RawChart)
	}
	for i := range d.Spec.Topology.PodSets {
		if chart := d.Spec.Topology.PodSets[i].Chart; chart != nil {
			raws = append(raws, chart.RawChart)
		}
	}
	for _, raw := range raws {
		if len(raw) > 0 && u.Content.Chart != nil && podset.DigestOf(raw) == u.Content.Chart.Digest {
			out.Raw = raw
		}
	}
	return out
}

// stepReleases carries out the steps for releases, one after the other. What the API
// server does not take is part of what the planner sees next.
func (c *Controller) stepReleases(ctx context.Context, v *view, o *object, p *plan.Plan) (stepped bool, err error) {
	for i := range p.Releases {
		r := &p.Releases[i]
		for _, step := range r.Steps {
			if o.releases.IsRefused(r.Name, step.Ref) && !(step.Op == releaseplan.UpdateRecord && step.Record.Status == releaseplan.Failed) {
				continue
			}
			if ctx.Err() != nil || c.stopping.Load() {
				return stepped, context.Cause(ctx)
			}
			if err := c.step(ctx, v, o, r.Name, step); err != nil {
				return stepped, fmt.Errorf("release %s: %s %s: %w", r.Name, step.Op, step.Ref, err)
			}
			stepped = true
		}
	}
	return stepped, nil
}

func (c *Controller) step(ctx context.Context, v *view, o *object, name string, step releaseplan.Step) error {
	logger := klog.FromContext(ctx)
	applied, err := c.Releases.Do(ctx, &o.releases, ownerOf(v.deployment), name, step)
	err = write.StaleOr(err)
	if apierrors.IsAlreadyExists(err) {
		err = fmt.Errorf("%w: %s", write.ErrStale, err.Error())
	}
	outcome := write.Outcome(ctx, err)
	switch {
	case outcome == write.Done:
		logger.V(3).Info("Done", "op", step.Op, "object", step.Ref, "why", step.Why)
		for _, warning := range step.Warnings {
			c.recorder.Note(referenceTo(v.deployment), events.Topic{Type: corev1.EventTypeWarning, Reason: releaseplan.ReasonNotDone, Why: fmt.Sprintf("release %q: %s", name, warning)})
		}
		if applied != nil && c.children[plan.Kind(step.Ref.Kind)] != nil && plan.Kind(step.Ref.Kind).APIVersion() == step.Ref.APIVersion {
			o.guard.Wrote(step.Ref.Kind, applied.GetResourceVersion())
		}
	case step.Op == releaseplan.Delete && apierrors.IsNotFound(err):
		err = nil
	case outcome == write.Stale:
		logger.V(3).Info("Came too late", "op", step.Op, "object", step.Ref, "err", err)
		o.releases.Forget()
	case write.IsTerminating(err), write.IsTransient(err), outcome == write.Interrupted:
	default:
		o.releases.Refuse(name, step.Ref, write.Words(err))
		err, outcome = nil, refused
	}
	c.Metrics.actions.WithLabelValues(string(step.Op), string(plan.Release), outcome).Inc()
	return err
}

// refusals of releases, as errors of a sync.
func refusals(o *object) error {
	var errs []error
	all := o.releases.Refused()
	for _, ref := range slices.SortedFunc(maps.Keys(all), func(a, b releaseplan.Ref) int {
		return strings.Compare(a.String()+a.Namespace, b.String()+b.Namespace)
	}) {
		errs = append(errs, fmt.Errorf("%s was refused: %s", ref, all[ref]))
	}
	return errors.Join(errs...)
}
