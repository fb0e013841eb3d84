package release

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/manifest"
	"tkestack.io/tapp/plan/message"
)

// Marks of Helm on the objects of a release.
const (
	labelManagedBy             = "app.kubernetes.io/managed-by"
	annotationReleaseName      = "meta.helm.sh/release-name"
	annotationReleaseNamespace = "meta.helm.sh/release-namespace"
	annotationPolicy           = "helm.sh/resource-policy"
	policyKeep                 = "keep"
)

// Marks of ours.
const (
	// AnnotationAdopt of an AdvDeployment has releases of these names taken over that
	// somebody else made, with commas between them.
	AnnotationAdopt = v1beta1.GroupName + "/adopt-releases"
	// AnnotationSkipHooks of an AdvDeployment with the value "true" has its releases
	// uninstalled without their hooks.
	AnnotationSkipHooks = v1beta1.GroupName + "/skip-hooks"
	// AnnotationKeep of an AdvDeployment with the value "true" has its releases stay when it is
	// deleted.
	AnnotationKeep = v1beta1.GroupName + "/keep-releases"
	// LabelWorkload in a podSet's meta is the name of the object that is scaled.
	LabelWorkload = v1beta1.GroupName + "/workload"
	// annotationRun is on the objects of hooks: the record and the event that they ran for.
	annotationRun = v1beta1.GroupName + "/hook-run"
)

// anywhere names what lets charts have objects of the cluster.
const anywhere = "fleet.charts.anywhere=true in the values of TApp's chart (--charts-anywhere)"

const kindCRD = "CustomResourceDefinition"

func text(object map[string]any, keys ...string) string {
	out, _ := manifest.At(object, keys...).(string)
	return out
}

// GVK of an object.
func GVK(object map[string]any) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(text(object, "apiVersion"), text(object, "kind"))
}

// refOf an object of the release. Objects without a namespace are in the release's.
func (c *computation) refOf(object map[string]any) Ref {
	ref := Ref{APIVersion: text(object, "apiVersion"), Kind: text(object, "kind"), Namespace: text(object, "metadata", "namespace"), Name: text(object, "metadata", "name")}
	namespaced, known := c.scope(object)
	switch {
	case known && !namespaced:
		ref.Namespace = ""
	case ref.Namespace == "":
		ref.Namespace = c.in.Namespace
	}
	return ref
}

// scope of an object's kind. Not known: neither the cluster nor the chart has it.
func (c *computation) scope(object map[string]any) (namespaced, known bool) {
	gvk := GVK(object)
	if namespaced, known = c.in.Scopes[gvk]; known {
		return namespaced, true
	}
	if c.in.Rendered == nil {
		return false, false
	}
	for _, crds := range [][]Object{c.in.Rendered.CRDs, c.in.Rendered.Objects} {
		for _, crd := range crds {
			if text(crd.Content, "kind") == kindCRD && text(crd.Content, "spec", "group") == gvk.Group && text(crd.Content, "spec", "names", "kind") == gvk.Kind {
				return text(crd.Content, "spec", "scope") == "Namespaced", true
			}
		}
	}
	return false, false
}

// allowed says whether a chart may have its objects here, before any of them is written.
func (c *computation) allowed(made []Object, r *Rendered) bool {
	var unknown, outside []string
	all := slices.Clone(made)
	for _, h := range r.Hooks {
		if h.runs() {
			all = append(all, h.Object)
		}
	}
	for _, o := range all {
		ref := c.refOf(o.Content)
		if _, known := c.scope(o.Content); !known {
			unknown = append(unknown, fmt.Sprintf("%s of %s, which %s has", ref.Kind, ref.APIVersion, o.Source))
		} else if ref.Namespace != c.in.Namespace {
			outside = append(outside, ref.String())
		}
	}
	for _, crd := range r.CRDs {
		ref := c.refOf(crd.Content)
		if o, known := c.see(ref); known && o == nil {
			outside = append(outside, ref.String())
		}
	}
	slices.Sort(unknown)
	if unknown = slices.Compact(unknown); len(unknown) > 0 {
		c.stall(ReasonChart, "the cluster has no kind %s. Install what defines it, and the release goes on", message.Quote(strings.Join(unknown, "; ")))
	}
	if len(outside) > 0 && !c.in.Anywhere {
		c.stall(ReasonNotAllowed, "%s is not in namespace %s, and charts may only have objects there. The operator of this cluster can allow others: %s",
			message.Quote(strings.Join(outside, ", ")), c.in.Namespace, anywhere)
	}
	return len(unknown) == 0 && (len(outside) == 0 || c.in.Anywhere)
}

// owns says whether an object carries the marks of this release.
func (c *computation) owns(o *unstructured.Unstructured) bool {
	annotations := o.GetAnnotations()
	return annotations[annotationReleaseName] == c.in.Name && annotations[annotationReleaseNamespace] == c.in.Namespace
}

// taken notes that somebody else has the name of an object.
func (c *computation) taken(ref Ref, o *unstructured.Unstructured) {
	c.plan.Taken = true
	c.poll(ref)
	whose := "no release has it"
	if name := o.GetAnnotations()[annotationReleaseName]; name != "" {
		whose = fmt.Sprintf("it is of release %s in namespace %s", name, o.GetAnnotations()[annotationReleaseNamespace])
	}
	c.stall(v1beta1.ReasonResourceExists, "%s already exists, and %s. Delete or rename it, or give it to the release: label it %s=Helm, and annotate it %s=%s and %s=%s",
		ref, whose, labelManagedBy, annotationReleaseName, c.in.Name, annotationReleaseNamespace, c.in.Namespace)
}

// decorated is an object as it is applied: with the marks of its release.
func (c *computation) decorated(object map[string]any) map[string]any {
	out := bare(object)
	metadata := entry(out, "metadata")
	if ref := c.refOf(object); ref.Namespace != "" {
		metadata["namespace"] = ref.Namespace
	} else {
		delete(metadata, "namespace")
	}
	labels, annotations := entry(metadata, "labels"), entry(metadata, "annotations")
	labels[labelManagedBy], labels[v1beta1.LabelAdvDeployment] = "Helm", c.in.OwnerName
	annotations[annotationReleaseName], annotations[annotationReleaseNamespace] = c.in.Name, c.in.Namespace
	return out
}

// entry is a map in a map, which it is given if it has none.
func entry(in map[string]any, key string) map[string]any {
	out, ok := in[key].(map[string]any)
	if !ok {
		out = map[string]any{}
		in[key] = out
	}
	return out
}

// bare is a copy of an object without what nobody can apply: null, the status, and the
// text that an API server keeps of a Secret in data alone.
func bare(object map[string]any) map[string]any {
	out, _ := withoutNull(runtime.DeepCopyJSON(object)).(map[string]any)
	delete(out, "status")
	if texts, ok := out["stringData"].(map[string]any); ok && text(out, "kind") == "Secret" && text(out, "apiVersion") == "v1" {
		data := entry(out, "data")
		for key, value := range texts {
			data[key] = base64.StdEncoding.EncodeToString([]byte(fmt.Sprint(value)))
		}
		delete(out, "stringData")
	}
	return out
}

func withoutNull(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, field := range value {
			if field == nil {
				delete(value, key)
			} else {
				value[key] = withoutNull(field)
			}
		}
	case []any:
		for i := range value {
			value[i] = withoutNull(value[i])
		}
	}
	return value
}

// keep has the objects of a record as it says. True: they are.
func (c *computation) keep(r *Record) bool {
	there := true
	w, _ := c.workload(r.Objects)
	for i, o := range r.Objects {
		ref := c.refOf(o.Content)
		have, known := c.see(ref)
		if !known {
			there = false
			continue
		}
		made := c.decorated(o.Content)
		if i == w {
			c.sized(made, ref, have)
		}
		there = c.present(ref, made, have) && there
	}
	return there
}

// present has one object as it is to be. True: it is.
func (c *computation) present(ref Ref, made map[string]any, have *unstructured.Unstructured) bool {
	manifest.Stamp(made, v1beta1.AnnotationApplied)
	c.refused(ref)
	switch {
	case have == nil:
		c.wait("%s is being created", ref)
		c.step(Step{Op: Create, Ref: ref, Manifest: made, Why: fmt.Sprintf("%s of release %q does not exist", ref, c.in.Name)})
		return false
	case !c.owns(have):
		c.taken(ref, have)
		return false
	case have.GetDeletionTimestamp() != nil:
		c.wait("%s is being deleted, and will be created again", ref)
		c.poll(ref)
		return false
	}
	differences := manifest.Drift(made, have.Object)
	switch {
	case len(differences) == 0:
		return true
	case slices.Equal(differences, c.in.Overruled[ref]):
		c.note("the cluster overrules %s: %s", ref, message.Quote(strings.Join(differences, "; ")))
		return true
	}
	c.wait("%s is being changed", ref)
	c.step(Step{Op: Apply, Ref: ref, Manifest: made, UID: have.GetUID(), Version: have.GetResourceVersion(),
		Why: fmt.Sprintf("%s is not as release %q says: %s", ref, c.in.Name, strings.Join(differences, "; "))})
	return false
}

// prune deletes what records since the base have, and the new one lacks. Without a base it is
// what earlier tries to install left. True: nothing is left of it.
func (c *computation) prune(r, base *Record) bool {
	stays := map[Ref]bool{}
	for _, o := range r.Objects {
		stays[c.refOf(o.Content)] = true
	}
	var old []Object
	for i := range c.records {
		if was := &c.records[i]; was.Version < r.Version && (base == nil || was.Version >= base.Version) {
			if !c.load(was) {
				return false
			}
			old = append(old, was.Objects...)
		}
	}
	return c.remove(old, stays, "version %d of release %q does not have it any more", r.Version, c.in.Name)
}

// remove deletes objects of this release in the opposite order of their creation, but
// for those that stay or are to be kept. True: none is left.
func (c *computation) remove(objects []Object, stays map[Ref]bool, why string, args ...any) bool {
	done, seen := true, maps.Clone(stays)
	if seen == nil {
		seen = map[Ref]bool{}
	}
	for _, o := range slices.Backward(objects) {
		ref := c.refOf(o.Content)
		if seen[ref] {
			continue
		}
		seen[ref] = true
		have, known := c.see(ref)
		switch {
		case !known:
			done = false
		case have == nil || !c.owns(have) && !c.abandoned(have):
		case isKept(o.Content) || isKept(have.Object):
			c.note("%s stays, by its annotation %s", ref, annotationPolicy)
		case have.GetDeletionTimestamp() != nil:
			done = false
			c.poll(ref)
			c.refused(ref)
			c.wait("%s is being deleted", ref)
		default:
			done = false
			c.refused(ref)
			c.wait("%s is being deleted", ref)
			c.step(Step{Op: Delete, Ref: ref, UID: have.GetUID(), Why: fmt.Sprintf("%s: %s", ref, fmt.Sprintf(why, args...))})
		}
	}
	return done
}

// abandoned says whether an object lost the marks of Helm, but not ours.
func (c *computation) abandoned(o metav1.Object) bool {
	return o.GetAnnotations()[annotationReleaseName] == "" && o.GetLabels()[v1beta1.LabelAdvDeployment] == c.in.OwnerName
}

func isKept(object map[string]any) bool {
	return strings.TrimSpace(strings.ToLower(text(object, "metadata", "annotations", annotationPolicy))) == policyKeep
}

func isEstablished(crd *unstructured.Unstructured) bool {
	return trueCondition(crd, "Established") != nil
}
