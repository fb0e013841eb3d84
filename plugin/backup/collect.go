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
)

// pageSize of lists.
const pageSize = 500

// collect the TApps of a namespace, or the named ones of them, with what belongs to them.
// Warnings tell what a restore from it could not bring back.
func collect(ctx context.Context, c *Cluster, namespace string, names []string) (out []*unstructured.Unstructured, warnings []string, err error) {
	found, err := c.list(ctx, tapps, namespace, "")
	if err != nil {
		return nil, nil, err
	}
	owners := map[string]*unstructured.Unstructured{}
	for _, t := range found {
		if len(names) > 0 && !slices.Contains(names, t.GetName()) {
			continue
		}
		if t.GetDeletionTimestamp() != nil {
			warnings = append(warnings, fmt.Sprintf("%s is being deleted, and left out", nameOf(t)))
			continue
		}
		owners[string(t.GetUID())] = t
		out = append(out, stamp(t, ""))
	}
	for _, name := range names {
		if !slices.ContainsFunc(found, func(t *unstructured.Unstructured) bool { return t.GetName() == name }) {
			return nil, nil, fmt.Errorf("there is no TApp %q in namespace %q", name, namespace)
		}
	}
	history, err := c.list(ctx, revisions, namespace, tappv1.LabelTApp)
	if err != nil {
		return nil, nil, err
	}
	for _, r := range history {
		if t := owners[controllerOf(r)]; t != nil {
			out = append(out, stamp(r, t.GetName()))
		}
	}
	have, err := c.list(ctx, claims, namespace, tappv1.LabelInstanceID)
	if err != nil {
		return nil, nil, err
	}
	instances := instancesOf(owners)
	for _, claim := range have {
		t := owners[controllerOf(claim)]
		if t == nil && !instances.have(claim) || claim.GetDeletionTimestamp() != nil {
			continue
		}
		owner := ""
		if t != nil {
			owner = t.GetName()
		}
		out = append(out, stamp(claim, owner))
		if w := c.atRisk(ctx, claim); w != "" {
			warnings = append(warnings, w)
		}
	}
	return out, warnings, nil
}

// instances are the beginnings of claims' names, by namespace.
type instances map[string]bool

func instancesOf(owners map[string]*unstructured.Unstructured) instances {
	out := instances{}
	for _, t := range owners {
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
