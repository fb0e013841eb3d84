package backup

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// plan of a restore: what is to be done for each document.
type plan struct {
	items []*item
	// workloads by namespace and ownerName.
	workloads map[string]*item
}

// item is a document, and what the cluster has in its place.
type item struct {
	*class
	document *unstructured.Unstructured
	// live is what has the name in the cluster; nil: nothing.
	live *unstructured.Unstructured
	// volume of a claim that is to be taken out of the hands of the lost one; nil: none is.
	volume *unstructured.Unstructured
	// empty: a claim gets a new volume.
	empty bool
	// refusal says why this cannot be restored.
	refusal string
}

// word says what a restore does.
func (i *item) word() string {
	switch {
	case i.live == nil && i.empty:
		return "restored with a new volume"
	case i.live == nil:
		return "restored"
	case i.isHeld():
		return "finished"
	}
	return "unchanged"
}

// isHeld says whether a workload is there that a restore has begun with.
func (i *item) isHeld() bool {
	return i.step == stepWorkloads && i.live != nil && i.live.GetAnnotations()[i.holding] != ""
}

func (i *item) uid() string   { return i.document.GetAnnotations()[annotationUID] }
func (i *item) owner() string { return i.document.GetAnnotations()[annotationOwner] }

func (i *item) refuse(format string, args ...any) {
	i.refusal = nameOf(i.document) + ": " + fmt.Sprintf(format, args...)
}

func (p *plan) refused() (out []string) {
	for _, i := range p.items {
		if i.refusal != "" {
			out = append(out, i.refusal)
		}
	}
	return out
}

// workloadOf the file that owns an object; nil: none does.
func (p *plan) workloadOf(i *item) *item {
	if i.owner() == "" {
		return nil
	}
	return p.workloads[i.document.GetNamespace()+"/"+i.owner()]
}

// look what is there, and judge what can be restored. Nothing is written.
func look(ctx context.Context, c *Cluster, documents []*unstructured.Unstructured, newVolumes bool) (*plan, error) {
	p := &plan{workloads: map[string]*item{}}
	for _, u := range documents {
		of, _ := classOf(u)
		i := &item{class: of, document: u}
		p.items = append(p.items, i)
		if i.step == stepWorkloads {
			p.workloads[u.GetNamespace()+"/"+ownerName(u)] = i
		}
	}
	missing, err := c.missingNamespaces(ctx, documents)
	if err != nil {
		return nil, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	for _, i := range p.items {
		if ns := i.document.GetNamespace(); missing[ns] {
			i.refuse("the namespace is missing or being deleted; wait until it is gone, and make it again: kubectl create namespace %s", ns)
			continue
		}
		group.Go(func() error { return p.lookAt(ctx, c, i, newVolumes) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for _, i := range p.items {
		p.judgeOwner(i)
	}
	return p, nil
}

// missingNamespaces are those in which nothing can be made.
func (c *Cluster) missingNamespaces(ctx context.Context, documents []*unstructured.Unstructured) (map[string]bool, error) {
	out := map[string]bool{}
	for _, u := range documents {
		name := u.GetNamespace()
		if _, known := out[name]; known {
			continue
		}
		found, err := c.Objects.Resource(spaces).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsForbidden(err):
			out[name] = false // the API server says it when something is made there
		case apierrors.IsNotFound(err):
			out[name] = true
		case err != nil:
			return nil, fmt.Errorf("looking for namespace %q: %w", name, err)
		default:
			out[name] = found.GetDeletionTimestamp() != nil
		}
	}
	return out, nil
}

func (p *plan) lookAt(ctx context.Context, c *Cluster, i *item, newVolumes bool) error {
	live, err := c.Objects.Resource(i.resource).Namespace(i.document.GetNamespace()).Get(ctx, i.document.GetName(), metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("looking for %s: %w", nameOf(i.document), err)
	}
	if err == nil {
		i.live = live
		i.judgeLive()
		return nil
	}
	if i.step == stepClaims {
		return i.judgeVolume(ctx, c, newVolumes)
	}
	return nil
}

// judgeLive refuses what has the name, and is not what the document tells of.
func (i *item) judgeLive() {
	switch {
	case i.live.GetDeletionTimestamp() != nil:
		i.refuse("it is there, and being deleted; wait until it is gone")
	case string(i.live.GetUID()) == i.uid(): // it was never lost
	case i.step == stepWorkloads:
		if !i.isFrom(i.live, i.document) {
			i.refuse("another one of this name is there, made at %s; delete or rename one of them", i.live.GetCreationTimestamp().UTC().Format("2006-01-02T15:04:05Z"))
		}
	case i.step == stepData:
		if !i.isSame("data") {
			i.refuse("one of this name is there with other content; delete it, or take it out of the file")
		}
	case i.step == stepRevisions:
		if !i.isSame("data") || i.record(i.live) != i.record(i.document) {
			i.refuse("a revision of this name is there with other content; delete one of them")
		}
	default:
		want, _, _ := unstructured.NestedString(i.document.Object, "spec", "volumeName")
		have, _, _ := unstructured.NestedString(i.live.Object, "spec", "volumeName")
		if want != have && want != "" {
			i.refuse("a claim of this name is there with the volume %q, and this one had %q; delete the claim, or take it out of the file", have, want)
		}
	}
}

// isSame says whether a field of what is there is that of the document.
func (i *item) isSame(field string) bool {
	return reflect.DeepEqual(normal(i.live.Object[field]), normal(i.document.Object[field]))
}

// record of a rollout, of the revision that has it.
func (i *item) record(u *unstructured.Unstructured) string {
	return u.GetAnnotations()[v1beta1.AnnotationRecord]
}

// normal is a value as JSON brings it back: with numbers of one type.
func normal(value any) (out any) {
	text, err := json.Marshal(value)
	if err != nil || json.Unmarshal(text, &out) != nil {
		return value
	}
	return out
}

// judgeVolume looks for the volume that a lost claim had.
func (i *item) judgeVolume(ctx context.Context, c *Cluster, newVolumes bool) error {
	name, _, _ := unstructured.NestedString(i.document.Object, "spec", "volumeName")
	if name == "" {
		return nil
	}
	volume, err := c.Objects.Resource(volumes).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && newVolumes:
		i.empty = true
		return nil
	case apierrors.IsNotFound(err):
		i.refuse("its volume %s is gone, and its data with it; bring the volume back, or have --new-volumes make an empty one", name)
		return nil
	case apierrors.IsForbidden(err):
		i.refuse("you may not get and patch persistentvolumes, which the volume %s needs to be bound again", name)
		return nil
	case err != nil:
		return fmt.Errorf("looking for the volume of %s: %w", nameOf(i.document), err)
	}
	namespace, _, _ := unstructured.NestedString(volume.Object, "spec", "claimRef", "namespace")
	claim, _, _ := unstructured.NestedString(volume.Object, "spec", "claimRef", "name")
	holder, _, _ := unstructured.NestedString(volume.Object, "spec", "claimRef", "uid")
	switch {
	case volume.GetDeletionTimestamp() != nil:
		i.refuse("its volume %s is being deleted", name)
	case claim == "": // anybody's
	case namespace != i.document.GetNamespace() || claim != i.document.GetName():
		i.refuse("its volume %s is held by the claim %s/%s", name, namespace, claim)
	case holder != "": // a claim of this name, which is lost
		i.volume = volume
	}
	return nil
}

// judgeOwner refuses what somebody else owns, once all are looked at.
func (p *plan) judgeOwner(i *item) {
	if i.refusal != "" || i.owner() == "" {
		return
	}
	of := p.workloadOf(i)
	if of == nil {
		i.refuse("its owner %q is not in the file", i.owner())
		return
	}
	if i.live == nil {
		return
	}
	switch owner := controllerOf(i.live); owner {
	case "", of.uid():
	default:
		if of.live == nil || owner != string(of.live.GetUID()) {
			i.refuse("it is there, and something else is its controller; delete it, or take it out of the file")
		}
	}
}
