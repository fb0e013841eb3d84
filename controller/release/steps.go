package release

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"tkestack.io/tapp/helm"
	"tkestack.io/tapp/plan/manifest"
	plan "tkestack.io/tapp/plan/release"
)

// FieldManager is the one that Helm has: who goes on with a release by hand meets no
// conflict.
const FieldManager = "helm"

// noVersion is the resourceVersion of an apply that only creates: no object can have it.
const noVersion = "1"

// Do carries out one step, and notes what it led to: the object that was applied.
func (o *Operator) Do(ctx context.Context, s *State, owner Owner, name string, step plan.Step) (*unstructured.Unstructured, error) {
	r := s.of(name)
	switch step.Op {
	case plan.CreateRecord, plan.UpdateRecord:
		return nil, o.store(ctx, r, owner, name, step)
	case plan.DeleteRecord:
		return nil, o.forget(ctx, r, owner, name, step)
	}
	objects, known, err := o.client(owner.Namespace, step.Ref)
	if err != nil {
		return nil, err
	}
	if !known {
		return nil, fmt.Errorf("the cluster has no kind %s of %s", step.Ref.Kind, step.Ref.APIVersion)
	}
	if step.Op == plan.Delete {
		options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &step.UID}, PropagationPolicy: new(metav1.DeletePropagationForeground)}
		delete(r.objects, step.Ref)
		return nil, objects.Delete(ctx, step.Ref.Name, options)
	}
	return o.apply(ctx, r, objects, step)
}

func (o *Operator) apply(ctx context.Context, r *release, objects dynamic.ResourceInterface, step plan.Step) (*unstructured.Unstructured, error) {
	made := runtime.DeepCopyJSON(step.Manifest)
	metadata, _ := made["metadata"].(map[string]any)
	metadata["resourceVersion"] = noVersion
	if step.Op == plan.Apply {
		metadata["uid"], metadata["resourceVersion"] = string(step.UID), step.Version
	}
	body, err := json.Marshal(made)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", step.Ref, err)
	}
	delete(r.objects, step.Ref)
	now, err := objects.Patch(ctx, step.Ref.Name, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: FieldManager, Force: new(true)})
	if err != nil {
		return nil, err
	}
	r.objects[step.Ref] = sight{trimmed(now), o.Clock.Now()}
	r.overrule(step.Ref, manifest.Drift(step.Manifest, now.Object))
	return now, nil
}

// Refuse notes that the API server did not take a step.
func (s *State) Refuse(name string, ref plan.Ref, why string) { s.of(name).refused[ref] = why }

// IsRefused says whether it did not take one in this sync.
func (s *State) IsRefused(name string, ref plan.Ref) bool {
	_, is := s.of(name).refused[ref]
	return is
}

// overrule remembers what the cluster wants otherwise than it was applied.
func (r *release) overrule(ref plan.Ref, differences []string) {
	if len(differences) == 0 {
		delete(r.overruled, ref)
		return
	}
	r.overruled[ref] = differences
}

// trimmed leaves out what nobody reads of an object, but who owns its replicas.
func trimmed(o *unstructured.Unstructured) *unstructured.Unstructured {
	MarkReplicas(o)
	o.SetManagedFields(nil)
	return o
}

// MarkReplicas marks an object with the field manager that owns spec.replicas, if that is
// not a release.
func MarkReplicas(o *unstructured.Unstructured) {
	for _, entry := range o.GetManagedFields() {
		if entry.Manager == FieldManager || entry.FieldsV1 == nil || !strings.Contains(string(entry.FieldsV1.GetRawBytes()), `"f:spec":{`) {
			continue
		}
		var fields struct {
			Spec struct {
				Replicas *struct{} `json:"f:replicas"`
			} `json:"f:spec"`
		}
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err == nil && fields.Spec.Replicas != nil {
			annotations := o.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[plan.AnnotationReplicasBy] = entry.Manager
			o.SetAnnotations(annotations)
			return
		}
	}
}

// store writes a record.
func (o *Operator) store(ctx context.Context, r *release, owner Owner, name string, step plan.Step) error {
	access, err := o.in(owner.Namespace)
	if err != nil {
		return err
	}
	record, err := o.record(ctx, r, owner, name, step)
	if err != nil {
		return err
	}
	secret, err := record.Secret(o.Clock.Now())
	if err != nil {
		return err
	}
	for key, value := range plan.Marks(owner.Name) {
		if step.Record.Owner != "" {
			secret.Labels[key] = value
		}
	}
	secret.Annotations = annotationsOf(step.Record)
	secrets := access.Secrets.Secrets(owner.Namespace)
	if step.Op == plan.CreateRecord {
		r.doubt(step.Record.Hooks)
		secret, err = secrets.Create(ctx, secret, metav1.CreateOptions{FieldManager: FieldManager})
	} else {
		secret.UID, secret.ResourceVersion = step.UID, step.Version
		secret, err = secrets.Update(ctx, secret, metav1.UpdateOptions{FieldManager: FieldManager})
	}
	if err != nil {
		return err
	}
	l, err := loadedOf(secret)
	if err != nil {
		return err
	}
	r.loaded[step.Record.Version] = l
	now := recordOf(secret, step.Record.Version)
	r.reveal(&now)
	for i := range r.records {
		if r.records[i].Version == now.Version {
			r.records[i] = now
			return nil
		}
	}
	r.records = append(r.records, now)
	return nil
}

// doubt has the objects of hooks be read anew before they run: somebody may have taken out of the way
// what was in the way of them.
func (r *release) doubt(hooks []plan.Hook) {
	for i := range hooks {
		kind, name := plan.GVK(hooks[i].Content).Kind, (&unstructured.Unstructured{Object: hooks[i].Content}).GetName()
		maps.DeleteFunc(r.objects, func(ref plan.Ref, _ sight) bool { return ref.Kind == kind && ref.Name == name })
	}
}

// record as Helm has it.
func (o *Operator) record(ctx context.Context, r *release, owner Owner, name string, step plan.Step) (*helm.Record, error) {
	want := step.Record
	if step.Op == plan.CreateRecord {
		text, err := textOf(want.Objects)
		if err != nil {
			return nil, err
		}
		record := helm.NewRecord(r.rendered.helm, owner.Namespace, name, want.Version, o.Clock.Now())
		record.Manifest, record.Info.Status, record.Info.Description = text, string(want.Status), "Initial install underway"
		if want.Status == plan.PendingUpgrade {
			record.Info.Description = "Preparing upgrade"
			for _, l := range r.loaded {
				if first := l.record.Info.FirstDeployed; !first.IsZero() && first.Before(record.Info.FirstDeployed) {
					record.Info.FirstDeployed = first
				}
			}
		}
		return record, nil
	}
	if r.loaded[want.Version] == nil {
		if err := o.load(ctx, r, owner, name, want.Version); err != nil {
			return nil, err
		}
	}
	record := *r.loaded[want.Version].record
	record.Info.Status = string(want.Status)
	if want.Description != "" {
		record.Info.Description = want.Description
	}
	if want.Status == plan.Uninstalling && record.Info.Deleted.IsZero() {
		record.Info.Deleted = o.Clock.Now()
	}
	record.Hooks = append([]helm.Hook(nil), record.Hooks...)
	for i := range min(len(record.Hooks), len(want.Hooks)) {
		run := want.Hooks[i].Run
		record.Hooks[i].LastRun = helm.HookRun{StartedAt: run.Started, CompletedAt: run.Completed, Phase: run.Phase}
	}
	return &record, nil
}

// forget deletes a record.
func (o *Operator) forget(ctx context.Context, r *release, owner Owner, name string, step plan.Step) error {
	access, err := o.in(owner.Namespace)
	if err != nil {
		return err
	}
	version := step.Record.Version
	if err := access.Secrets.Secrets(owner.Namespace).Delete(ctx, helm.SecretName(name, version), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &step.UID}}); err != nil {
		return err
	}
	delete(r.loaded, version)
	kept := r.records[:0:0]
	for _, record := range r.records {
		if record.Version != version {
			kept = append(kept, record)
		}
	}
	r.records = kept
	return nil
}

// textOf objects, as Helm's manifests are.
func textOf(objects []plan.Object) (string, error) {
	var out strings.Builder
	for _, o := range objects {
		text, err := yaml.Marshal(o.Content)
		if err != nil {
			return "", fmt.Errorf("encoding an object of %s: %w", o.Source, err)
		}
		fmt.Fprintf(&out, "---\n# Source: %s\n%s", o.Source, text)
	}
	return out.String(), nil
}
