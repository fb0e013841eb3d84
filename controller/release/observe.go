package release

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/helm"
	plan "tkestack.io/tapp/plan/release"
)

// Annotations of a record's Secret. Helm does not copy them to the next revision, so that
// one that helm makes is not taken for ours.
const (
	annotationOwner    = v1beta1.GroupName + "/owner-uid"
	annotationContent  = v1beta1.AnnotationRevision
	annotationReplicas = v1beta1.GroupName + "/replicas"
	annotationRetried  = v1beta1.AnnotationRetry
	annotationProgress = v1beta1.GroupName + "/hooks"
	annotationChart    = v1beta1.GroupName + "/chart"
)

var secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// Watched is what a cache has of an object of a release. Not known: no cache is
// responsible for it.
type Watched func(ref plan.Ref) (o *unstructured.Unstructured, known bool)

// Observe says what is known of the releases of an owner: those that are asked for, and
// those that have records of it. It reads what is older than the resync period.
func (o *Operator) Observe(ctx context.Context, s *State, owner Owner, names []string, watched Watched) error {
	now := o.Clock.Now()
	s.names, s.fresh = names, false
	all := s.listed.IsZero() || now.Sub(s.listed) > resync
	if all || s.stale {
		if err := o.refresh(ctx, s, owner); err != nil {
			return err
		}
	}
	if all {
		for _, r := range s.releases {
			clear(r.objects)
		}
	}
	for _, name := range names {
		s.of(name)
	}
	for _, r := range s.releases {
		clear(r.refused)
		clear(r.hidden)
		for ref, seen := range r.objects {
			switch have, known := watched(ref); {
			case known && have != nil:
				r.objects[ref] = sight{have, now}
			case known && seen.object != nil, now.Sub(seen.at) > resync:
				delete(r.objects, ref) // it is new, or gone: that is read live
			}
		}
	}
	return nil
}

// refresh reads the records anew, of all releases.
func (o *Operator) refresh(ctx context.Context, s *State, owner Owner) error {
	switch err := o.list(ctx, s, owner, s.names); {
	case err == nil:
		s.listed, s.blind, s.fresh, s.stale = o.Clock.Now(), "", true, false
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
		s.listed, s.blind = time.Time{}, err.Error()
	default:
		return err
	}
	return nil
}

// list reads which records there are: what is in them only where a plan needs it.
func (o *Operator) list(ctx context.Context, s *State, owner Owner, names []string) error {
	access, err := o.in(owner.Namespace)
	if err != nil {
		return err
	}
	selectors := []string{"owner=helm," + v1beta1.LabelAdvDeployment + "=" + owner.Name}
	if len(names) > 0 {
		selectors = append(selectors, "owner=helm,name in ("+strings.Join(names, ",")+")")
	}
	found := map[string]map[int]plan.Record{}
	for _, selector := range selectors {
		list, err := access.Heads.Resource(secrets).Namespace(owner.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return fmt.Errorf("reading releases: %w", err)
		}
		for i := range list.Items {
			head := &list.Items[i]
			if version, err := strconv.Atoi(head.Labels["version"]); err == nil {
				name := head.Labels["name"]
				if found[name] == nil {
					found[name] = map[int]plan.Record{}
				}
				found[name][version] = recordOf(head, version)
			}
		}
	}
	for name := range s.releases {
		if found[name] == nil && !slices.Contains(names, name) {
			delete(s.releases, name)
		}
	}
	for name, r := range s.releases {
		if !sameRecords(r.records, found[name]) {
			clear(r.objects) // somebody else wrote records, and objects as well
		}
		r.records = nil
	}
	for name, records := range found {
		r := s.of(name)
		r.records = slices.Collect(maps.Values(records))
		maps.DeleteFunc(r.loaded, func(version int, l *loaded) bool { return records[version].ResourceVersion != l.version })
		for i := range r.records {
			r.reveal(&r.records[i])
		}
	}
	return nil
}

// sameRecords says whether the records that are known are those that were found.
func sameRecords(known []plan.Record, found map[int]plan.Record) bool {
	return len(known) == len(found) && !slices.ContainsFunc(known, func(r plan.Record) bool {
		return found[r.Version].UID != r.UID || found[r.Version].ResourceVersion != r.ResourceVersion
	})
}

// recordOf the head of a Secret: what its labels and annotations say.
func recordOf(head metav1.Object, version int) plan.Record {
	annotations := head.GetAnnotations()
	r := plan.Record{
		Version: version, Status: plan.Status(head.GetLabels()["status"]), Chart: annotations[annotationChart], Owner: types.UID(annotations[annotationOwner]),
		Content: annotations[annotationContent], Retried: annotations[annotationRetried], UID: head.GetUID(), ResourceVersion: head.GetResourceVersion(),
	}
	if n, err := strconv.ParseInt(annotations[annotationReplicas], 10, 32); err == nil {
		r.Replicas = new(int32(n))
	}
	if text := annotations[annotationProgress]; text != "" {
		if err := json.Unmarshal([]byte(text), &r.Progress); err != nil {
			r.Progress = plan.Progress{}
		}
	}
	return r
}

// annotationsOf a record's Secret.
func annotationsOf(r *plan.Record) map[string]string {
	out := map[string]string{annotationOwner: string(r.Owner), annotationContent: r.Content, annotationChart: r.Chart}
	if r.Owner == "" { // it stays somebody else's
		return nil
	}
	if r.Replicas != nil {
		out[annotationReplicas] = strconv.Itoa(int(*r.Replicas))
	}
	if r.Retried != "" {
		out[annotationRetried] = r.Retried
	}
	if r.Progress != (plan.Progress{}) {
		text, _ := json.Marshal(r.Progress) // texts and numbers always marshal
		out[annotationProgress] = string(text)
	}
	return out
}

// reveal shows what is in a record, where it was read.
func (r *release) reveal(record *plan.Record) {
	if l := r.loaded[record.Version]; l != nil {
		record.Loaded, record.Objects, record.Hooks, record.Description = true, l.objects, l.hooks, l.record.Info.Description
		if record.Chart == "" {
			record.Chart = l.record.ChartInfo().String()
		}
	}
}

// Input is what the planner sees of all releases.
func (o *Operator) Input(s *State, autoscaled func(plan.Ref) bool) (map[string]plan.Input, error) {
	out := map[string]plan.Input{}
	for name, r := range s.releases {
		in := plan.Input{Records: r.records, Fresh: s.fresh, Blind: s.blind, Refused: r.refused, Hidden: r.hidden, Overruled: r.overruled, Anywhere: o.Anywhere, Account: o.Account, Objects: map[plan.Ref]*unstructured.Unstructured{},
			Scopes: map[schema.GroupVersionKind]bool{}, Autoscaled: map[plan.Ref]bool{}}
		for ref, seen := range r.objects {
			in.Objects[ref] = seen.object
			if seen.object != nil && autoscaled(ref) {
				in.Autoscaled[ref] = true
			}
		}
		if r.rendered != nil {
			in.Rendered = r.rendered.plan
		}
		if err := o.scopes(&in, r); err != nil {
			return nil, err
		}
		out[name] = in
	}
	return out, nil
}

// scopes of all kinds that a release has objects of.
func (o *Operator) scopes(in *plan.Input, r *release) error {
	var all []plan.Object
	add := func(objects []plan.Object, hooks []plan.Hook) {
		all = append(all, objects...)
		for i := range hooks {
			all = append(all, hooks[i].Object)
		}
	}
	for _, l := range r.loaded {
		add(l.objects, l.hooks)
	}
	if in.Rendered != nil {
		add(in.Rendered.Objects, in.Rendered.Hooks)
		add(in.Rendered.CRDs, nil)
	}
	asked := map[schema.GroupVersionKind]bool{}
	for i := range all {
		gvk := plan.GVK(all[i].Content)
		if asked[gvk] {
			continue
		}
		asked[gvk] = true
		_, namespaced, known, err := o.Kinds.find(gvk)
		if err != nil {
			return err
		}
		if known {
			in.Scopes[gvk] = namespaced
		}
	}
	return nil
}

// loadedOf reads what is in a record.
func loadedOf(secret *corev1.Secret) (*loaded, error) {
	record, err := helm.DecodeRecord(secret)
	if err != nil {
		return nil, err
	}
	l := &loaded{version: secret.ResourceVersion, record: record}
	if l.objects, err = objectsOf(record.Manifest); err != nil {
		return nil, fmt.Errorf("reading the manifest in Secret %s: %w", secret.Name, err)
	}
	if l.hooks, err = hooksOf(record.Hooks); err != nil {
		return nil, fmt.Errorf("reading the hooks in Secret %s: %w", secret.Name, err)
	}
	return l, nil
}

func objectsOf(manifest string) ([]plan.Object, error) {
	objects, err := helm.Objects(manifest)
	if err != nil {
		return nil, err
	}
	out := make([]plan.Object, 0, len(objects))
	for _, o := range objects {
		out = append(out, plan.Object{Source: o.Source, Content: o.Object})
	}
	return out, nil
}

func hooksOf(hooks []helm.Hook) ([]plan.Hook, error) {
	out := make([]plan.Hook, 0, len(hooks))
	for i := range hooks {
		h := &hooks[i]
		objects, err := objectsOf(h.Manifest)
		if err != nil {
			return nil, err
		}
		if len(objects) != 1 {
			return nil, fmt.Errorf("hook %s has %d objects", h.Path, len(objects))
		}
		objects[0].Source = h.Path
		out = append(out, plan.Hook{Object: objects[0], Name: h.Name, Events: h.Events, Weight: h.Weight, DeletePolicies: h.DeletePolicies,
			Run: plan.Run{Phase: h.LastRun.Phase, Started: h.LastRun.StartedAt, Completed: h.LastRun.CompletedAt}})
	}
	return out, nil
}
