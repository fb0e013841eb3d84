package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// writer carries a plan out. The order is that in which an interruption does no harm:
//
//	data        registrations, tombstones, and the archives of charts
//	claims      with their volumes, without an owner
//	workloads   held: their controllers leave them alone (tappv1.AnnotationRestoring)
//	revisions   and claims get the new workload as their owner
//	status      of TApps, what cannot be observed anew
//	workloads   let go
type writer struct {
	cluster *Cluster
	dryRun  []string
	report  func(i *item, word string)
}

func (w *writer) write(ctx context.Context, p *plan) error {
	words := map[*item]string{}
	for _, i := range p.items {
		words[i] = i.word()
	}
	steps := []struct {
		wants func(*item) bool
		do    func(context.Context, *plan, *item) error
	}{
		{in(stepData), w.bringData},
		{in(stepClaims), w.bringClaim},
		{in(stepWorkloads), w.bringWorkload},
		{in(stepRevisions), w.bringRevision},
		{func(i *item) bool { return i.owner() != "" }, w.own},
		{(*item).isHeld, w.release},
	}
	for _, step := range steps {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(workers)
		for _, i := range p.items {
			if step.wants(i) {
				group.Go(func() error { return step.do(ctx, p, i) })
			}
		}
		if err := group.Wait(); err != nil {
			return fmt.Errorf("%w\nRun the same command again to finish; what is restored so far stays held until then", err)
		}
	}
	for _, i := range p.items {
		w.report(i, words[i])
	}
	return nil
}

// in says which documents are made in a step.
func in(s step) func(*item) bool { return func(i *item) bool { return i.step == s } }

func (w *writer) of(i *item) writes {
	return writes{w, i.resource, i.document.GetNamespace()}
}

// writes to a resource in a namespace.
type writes struct {
	*writer
	resource  schema.GroupVersionResource
	namespace string
}

func (o writes) create(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	made, err := o.cluster.Objects.Resource(o.resource).Namespace(o.namespace).Create(ctx, u, metav1.CreateOptions{FieldManager: manager, DryRun: o.dryRun})
	if err != nil {
		return nil, fmt.Errorf("restoring %s: %w", nameOf(u), err)
	}
	return made, nil
}

func (o writes) patch(ctx context.Context, of *unstructured.Unstructured, patch map[string]any, subresources ...string) (*unstructured.Unstructured, error) {
	text, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("restoring %s: %w", nameOf(of), err)
	}
	client := o.cluster.Objects.Resource(o.resource)
	options := metav1.PatchOptions{FieldManager: manager, DryRun: o.dryRun}
	var made *unstructured.Unstructured
	if o.namespace == "" {
		made, err = client.Patch(ctx, of.GetName(), types.MergePatchType, text, options, subresources...)
	} else {
		made, err = client.Namespace(o.namespace).Patch(ctx, of.GetName(), types.MergePatchType, text, options, subresources...)
	}
	if err != nil {
		return nil, fmt.Errorf("restoring %s: %w", nameOf(of), err)
	}
	return made, nil
}

func (w *writer) bringClaim(ctx context.Context, _ *plan, i *item) (err error) {
	if i.live != nil {
		return nil
	}
	if i.volume != nil {
		// From now on it waits for a claim of this name, whatever its UID.
		free := map[string]any{"metadata": map[string]any{"resourceVersion": i.volume.GetResourceVersion()},
			"spec": map[string]any{"claimRef": map[string]any{"uid": nil, "resourceVersion": nil}}}
		if _, err := (writes{w, volumes, ""}).patch(ctx, i.volume, free); err != nil {
			return err
		}
	}
	made := bare(i.document)
	if i.empty {
		unstructured.RemoveNestedField(made.Object, "spec", "volumeName")
	}
	i.live, err = w.of(i).create(ctx, made)
	return err
}

func (w *writer) bringData(ctx context.Context, _ *plan, i *item) (err error) {
	if i.live == nil {
		i.live, err = w.of(i).create(ctx, bare(i.document))
	}
	return err
}

func (w *writer) bringWorkload(ctx context.Context, _ *plan, i *item) (err error) {
	if i.live != nil {
		return nil
	}
	made := bare(i.document)
	notes := made.GetAnnotations()
	if notes == nil {
		notes = map[string]string{}
	}
	notes[i.from], notes[i.holding] = i.origin(i.document), "true"
	made.SetAnnotations(notes)
	i.live, err = w.of(i).create(ctx, made)
	return err
}

func (w *writer) bringRevision(ctx context.Context, p *plan, i *item) error {
	if i.live != nil {
		return nil
	}
	made := bare(i.document)
	if of := p.workloadOf(i); of != nil {
		made.SetOwnerReferences(ownerOf(of))
		if labels := made.GetLabels(); of.labelUID {
			labels[of.label] = string(of.live.GetUID())
			made.SetLabels(labels)
		}
	}
	live, err := w.of(i).create(ctx, made)
	i.live = live
	return err
}

func ownerOf(of *item) []metav1.OwnerReference {
	owner := *metav1.NewControllerRef(of.live, of.kind)
	if of.labelUID { // as their controllers write it
		owner.BlockOwnerDeletion = nil
	}
	return []metav1.OwnerReference{owner}
}

// own makes the workload the controller of what is there, if nothing else is.
func (w *writer) own(ctx context.Context, p *plan, i *item) error {
	of := p.workloadOf(i)
	if controllerOf(i.live) == string(of.live.GetUID()) {
		return nil
	}
	if len(w.dryRun) > 0 {
		return nil // neither of them need be there
	}
	for {
		// A claim that was just made is written by what binds it. The resourceVersion notices
		// that, and who else became its controller.
		metadata := map[string]any{"uid": i.live.GetUID(), "resourceVersion": i.live.GetResourceVersion(), "ownerReferences": ownerOf(of)}
		if of.labelUID {
			metadata["labels"] = map[string]any{of.label: of.live.GetUID()}
		}
		live, err := w.of(i).patch(ctx, i.live, map[string]any{"metadata": metadata})
		if !apierrors.IsConflict(err) {
			if err == nil {
				i.live = live
			}
			return err
		}
		if i.live, err = w.cluster.Objects.Resource(i.resource).Namespace(i.document.GetNamespace()).Get(ctx, i.document.GetName(), metav1.GetOptions{}); err != nil {
			return fmt.Errorf("restoring %s: %w", nameOf(i.document), err)
		}
		if p.judgeOwner(i); i.refusal != "" {
			return errors.New(i.refusal)
		}
	}
}

// release restores the status of a TApp, and then lets the controller work on it, as on any
// workload. The controller sees both or none: they are versions of one object.
func (w *writer) release(ctx context.Context, _ *plan, i *item) error {
	if len(w.dryRun) > 0 {
		return nil
	}
	if status, _, _ := unstructured.NestedMap(i.document.Object, "status"); len(status) > 0 {
		for _, required := range []string{"replicas", "readyReplicas", "availableReplicas", "updatedReplicas"} {
			status[required] = 0
		}
		if _, err := w.of(i).patch(ctx, i.live, map[string]any{"metadata": map[string]any{"uid": i.live.GetUID()}, "status": status}, "status"); err != nil {
			return err
		}
	}
	live, err := w.of(i).patch(ctx, i.live, map[string]any{
		"metadata": map[string]any{"uid": i.live.GetUID(), "annotations": map[string]any{i.holding: nil}},
	})
	if err == nil {
		i.live = live
	}
	return err
}
