package release

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/helm"
	"tkestack.io/tapp/plan/podset"
	plan "tkestack.io/tapp/plan/release"
)

// retry is when a chart is tried again that could not be fetched or rendered for a reason
// that may pass.
const retry = 30 * time.Second

// Chart of a unit: where its archive is, and what it is rendered with.
type Chart struct {
	Unit *podset.Unit
	// Raw is the archive, where the AdvDeployment has it.
	Raw []byte
}

// rendered is a chart as it was rendered for one content.
type rendered struct {
	content  string
	replicas int32
	revision int
	until    time.Time // zero: as long as the content is the same
	plan     *plan.Rendered
	helm     *helm.Rendered
}

// Show reads what a plan asks for. False: it asks for nothing.
func (o *Operator) Show(ctx context.Context, s *State, owner Owner, name string, p *plan.Plan, chart *Chart) (bool, error) {
	if !p.Asks() {
		return false, nil
	}
	if p.Refresh && !s.fresh {
		if err := o.refresh(ctx, s, owner); err != nil {
			return false, err
		}
	}
	r := s.of(name)
	for _, version := range p.Load {
		if err := o.load(ctx, r, owner, name, version); err != nil {
			return false, err
		}
	}
	for _, ref := range p.Look {
		if err := o.look(ctx, r, owner, ref); err != nil {
			return false, err
		}
	}
	if p.Render != nil && chart != nil {
		if err := o.render(ctx, r, owner, name, p.Render.Revision, chart); err != nil {
			return false, err
		}
	}
	return true, nil
}

// Drop forgets what was rendered for another content than that of a unit.
func (s *State) Drop(name string, unit *podset.Unit, now time.Time) {
	r := s.of(name)
	if made := r.rendered; made != nil && (made.content != unit.Hash || made.replicas != unit.Replicas || !made.until.IsZero() && now.After(made.until)) {
		r.rendered = nil
	}
}

func (o *Operator) load(ctx context.Context, r *release, owner Owner, name string, version int) error {
	access, err := o.in(owner.Namespace)
	if err != nil {
		return err
	}
	secret, err := access.Secrets.Secrets(owner.Namespace).Get(ctx, helm.SecretName(name, version), metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading version %d of release %s: %w", version, name, err)
	}
	l, err := loadedOf(secret)
	if err != nil {
		return err
	}
	r.loaded[version] = l
	for i := range r.records {
		if r.records[i].Version == version {
			r.records[i] = recordOf(secret, version)
			r.reveal(&r.records[i])
		}
	}
	return nil
}

// look reads an object live.
func (o *Operator) look(ctx context.Context, r *release, owner Owner, ref plan.Ref) error {
	objects, known, err := o.client(owner.Namespace, ref)
	if err != nil {
		return err
	}
	now := o.Clock.Now()
	if !known {
		r.objects[ref] = sight{at: now}
		return nil
	}
	have, err := objects.Get(ctx, ref.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		r.objects[ref] = sight{at: now}
	case apierrors.IsForbidden(err):
		r.hidden[ref] = err.Error()
	case err != nil:
		return fmt.Errorf("reading %s: %w", ref, err)
	default:
		r.objects[ref] = sight{trimmed(have), now}
	}
	return nil
}

// client of the objects of a kind, by the rights of the release's ServiceAccount.
func (o *Operator) client(namespace string, ref plan.Ref) (dynamic.ResourceInterface, bool, error) {
	access, err := o.in(namespace)
	if err != nil {
		return nil, false, err
	}
	resource, _, known, err := o.Kinds.find(gvkOf(ref))
	if err != nil || !known {
		return nil, false, err
	}
	if ref.Namespace == "" {
		return access.Objects.Resource(resource), true, nil
	}
	return access.Objects.Resource(resource).Namespace(ref.Namespace), true, nil
}

// render a chart. What is wrong with it is part of what the planner sees.
func (o *Operator) render(ctx context.Context, r *release, owner Owner, name string, revision int, chart *Chart) error {
	u := chart.Unit
	made := &rendered{content: u.Hash, replicas: u.Replicas, revision: revision}
	var err error
	made.helm, err = o.rendered(ctx, owner, name, revision, chart)
	if err == nil {
		if made.plan, err = planned(made.helm, u.Replicas); err == nil {
			made.plan.Revision = revision
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		made.plan = &plan.Rendered{Err: err.Error()}
		var fault *helm.Error
		if !errors.As(err, &fault) {
			made.until = o.Clock.Now().Add(retry)
		}
	}
	r.rendered = made
	return nil
}

func (o *Operator) rendered(ctx context.Context, owner Owner, name string, revision int, chart *Chart) (*helm.Rendered, error) {
	archive, err := o.archive(ctx, chart)
	if err != nil {
		return nil, err
	}
	version, apis, err := o.Kinds.capabilities(ctx)
	if err != nil {
		return nil, err
	}
	u := chart.Unit
	request := helm.Request{Chart: archive, Release: name, Namespace: owner.Namespace, Revision: revision, Values: u.Content.Values, KubeVersion: version, APIVersions: apis}
	request.Defaults, request.Overrides = valuesOf(u)
	return o.Renderer.Render(ctx, request)
}

// archive of a chart, whose digest is the one that the content names.
func (o *Operator) archive(ctx context.Context, chart *Chart) ([]byte, error) {
	is := chart.Unit.Content.Chart
	switch {
	case len(chart.Raw) > 0:
		return chart.Raw, nil
	case is.Digest == "" && is.URL == "":
		return nil, &helm.Error{Message: "neither an archive nor a place to fetch it from is given"}
	case is.Digest == "" && o.Fetch == nil:
		return nil, &helm.Error{Chart: is.URL, Message: "this controller fetches no charts; give rawChart, or make an AppSet of it"}
	case is.Digest == "":
		return o.Fetch(ctx, is.URL, is.Version)
	}
	secret, err := o.Charts.Get(ctx, is.SecretName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("the Secret %s with its archive does not exist; the controller of the AppSet writes it", is.SecretName())
	}
	if err != nil {
		return nil, fmt.Errorf("reading the archive of the chart: %w", err)
	}
	archive := secret.Data[v1beta1.KeyChart]
	if podset.DigestOf(archive) != is.Digest {
		return nil, fmt.Errorf("the Secret %s has another archive than its name says", is.SecretName())
	}
	return archive, nil
}

// planned is what the planner sees of a chart.
func planned(r *helm.Rendered, replicas int32) (*plan.Rendered, error) {
	out := &plan.Rendered{Chart: r.Chart.String(), Warnings: r.Warnings, TakesReplicas: takesReplicas(r, replicas)}
	var err error
	if out.Objects, err = objectsOf(r.Manifest); err != nil {
		return nil, &helm.Error{Chart: out.Chart, Message: err.Error()}
	}
	if out.CRDs, err = objectsOf(r.CRDs); err != nil {
		return nil, &helm.Error{Chart: out.Chart, Message: err.Error()}
	}
	if out.Hooks, err = hooksOf(r.Hooks); err != nil {
		return nil, &helm.Error{Chart: out.Chart, Message: err.Error()}
	}
	return out, nil
}

// takesReplicas says whether the chart was given the number of instances.
func takesReplicas(r *helm.Rendered, replicas int32) bool {
	var values struct {
		ReplicaCount *json.Number `json:"replicaCount"`
	}
	if err := json.Unmarshal(r.Values, &values); err != nil || values.ReplicaCount == nil {
		return false
	}
	return values.ReplicaCount.String() == fmt.Sprint(replicas)
}
