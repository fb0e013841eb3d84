package backup

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/crd/workload/v1beta1"
)

// pageSize of lists.
const pageSize = 500

// collection is a backup in the making.
type collection struct {
	*Cluster
	namespace string
	names     []string
	// owners are the workloads by UID, and seen are the names of all that there are.
	owners map[string]*unstructured.Unstructured
	seen   map[string]bool
	// isHub: there is the kind AppSet. taken are the UIDs of objects that are in it.
	isHub bool
	taken map[string]bool
	out   []*unstructured.Unstructured
	// warnings tell what a restore could not bring back.
	warnings []string
}

func (c *collection) warn(format string, args ...any) {
	c.warnings = append(c.warnings, fmt.Sprintf(format, args...))
}

// collect the workloads of a namespace, or the named ones of them, with what belongs to them.
func (c *collection) collect(ctx context.Context) error {
	c.owners, c.seen, c.taken = map[string]*unstructured.Unstructured{}, map[string]bool{}, map[string]bool{}
	for _, of := range []schema.GroupVersionResource{tapps, advDeployments, appSets} {
		if err := c.workloads(ctx, workloadOf(of)); err != nil {
			return err
		}
	}
	for _, name := range c.names {
		if !c.seen[name] {
			return fmt.Errorf("there is no TApp, AppSet or AdvDeployment of its own %q in namespace %q", name, c.namespace)
		}
	}
	return c.claims(ctx)
}

// workloads of a kind, with their revisions. A kind of the fleet need not be installed.
func (c *collection) workloads(ctx context.Context, of *class) error {
	found, err := c.list(ctx, of.resource, c.namespace, "")
	switch {
	case of.labelUID && apierrors.IsNotFound(err):
		return nil
	case of.labelUID && apierrors.IsForbidden(err):
		c.warn("%s are left out: you may not list them", of.resource.Resource)
		return nil
	case err != nil:
		return err
	}
	c.isHub = c.isHub || of.resource == appSets
	some := false
	for _, u := range found {
		if of.resource == advDeployments && u.GetLabels()[v1beta1.LabelFleetID] != "" {
			continue // the part of an AppSet, which its hub writes
		}
		c.seen[u.GetName()] = true
		if len(c.names) > 0 && !slices.Contains(c.names, u.GetName()) {
			continue
		}
		if u.GetDeletionTimestamp() != nil {
			c.warn("%s is being deleted, and left out", nameOf(u))
			continue
		}
		some = true
		c.owners[string(u.GetUID())] = u
		c.out = append(c.out, stamp(u, ""))
	}
	if !some {
		return nil
	}
	history, err := c.list(ctx, revisions, c.namespace, of.label)
	if err != nil {
		return err
	}
	for _, r := range history {
		if u := c.owners[controllerOf(r)]; u != nil {
			c.out = append(c.out, stamp(r, ownerName(u)))
		}
	}
	return nil
}

func (c *collection) claims(ctx context.Context) error {
	instances := instancesOf(c.owners)
	if len(c.owners) == 0 {
		return nil
	}
	have, err := c.list(ctx, claims, c.namespace, tappv1.LabelInstanceID)
	if err != nil {
		return err
	}
	for _, claim := range have {
		u := c.owners[controllerOf(claim)]
		if u == nil && !instances.have(claim) || claim.GetDeletionTimestamp() != nil {
			continue
		}
		owner := ""
		if u != nil {
			owner = ownerName(u)
		}
		c.out = append(c.out, stamp(claim, owner))
		if w := c.atRisk(ctx, claim); w != "" {
			c.warnings = append(c.warnings, w)
		}
	}
	return nil
}

// instances are the beginnings of claims' names, by namespace.
type instances map[string]bool

func instancesOf(owners map[string]*unstructured.Unstructured) instances {
	out := instances{}
	for _, t := range owners {
		if t.GetKind() != tappv1.Kind {
			continue
		}
		templates, _, _ := unstructured.NestedSlice(t.Object, "spec", "volumeClaimTemplates")
		for _, template := range templates {
			object, _ := template.(map[string]any)
			name, _, _ := unstructured.NestedString(object, "metadata", "name")
			out[t.GetNamespace()+"/"+name+"-"+t.GetName()+"-"] = true
		}
	}
	return out
}

// have says whether a claim has the name and the label of an instance.
func (i instances) have(claim *unstructured.Unstructured) bool {
	id := claim.GetLabels()[tappv1.LabelInstanceID]
	before, ok := strings.CutSuffix(claim.GetName(), id)
	return ok && id != "" && i[claim.GetNamespace()+"/"+before]
}

// atRisk says why the data of a claim would go with it, or nothing. Who may not read
// volumes is told nothing.
func (c *Cluster) atRisk(ctx context.Context, claim *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(claim.Object, "spec", "volumeName")
	if name == "" {
		return ""
	}
	volume, err := c.Objects.Resource(volumes).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return ""
	}
	if policy, _, _ := unstructured.NestedString(volume.Object, "spec", "persistentVolumeReclaimPolicy"); policy == "Delete" {
		return fmt.Sprintf("the volume %s of %s is deleted with the claim (reclaim policy Delete), and its data with it", name, nameOf(claim))
	}
	return ""
}

// list all objects of a resource, page by page. label has to be there, if it is given.
func (c *Cluster) list(ctx context.Context, of schema.GroupVersionResource, namespace, label string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	options := metav1.ListOptions{LabelSelector: label, Limit: pageSize}
	for {
		page, err := c.Objects.Resource(of).Namespace(namespace).List(ctx, options)
		if err != nil {
			if apierrors.IsResourceExpired(err) {
				return nil, fmt.Errorf("listing %s took longer than the API server keeps a list; try again: %w", of.Resource, err)
			}
			return nil, fmt.Errorf("listing %s: %w", of.Resource, err)
		}
		for i := range page.Items {
			out = append(out, &page.Items[i])
		}
		if len(out) > maxDocuments {
			return nil, fmt.Errorf("there are more than %d %s: back up namespace by namespace", maxDocuments, of.Resource)
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return out, nil
		}
	}
}
