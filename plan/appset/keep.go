package appset

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/podset"
	"tkestack.io/tapp/plan/rollout"
)

// store the record, and the revision that it names, before anything of them is done.
func (c *computation) store(d *rollout.Decision) {
	owner := metav1.OwnerReference{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: v1beta1.KindAppSet, Name: c.app.Name, UID: c.app.UID, Controller: new(true)}
	text, _ := json.Marshal(d.Record) // it came from JSON
	keep := &Keep{Why: "a rollout is recorded before it is carried out", Record: &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.app.Namespace, Name: c.app.Name + v1beta1.RecordSuffix, Labels: map[string]string{v1beta1.LabelAppSetUID: string(c.app.UID), v1beta1.LabelRevision: v1beta1.RevisionRecord},
			Annotations: map[string]string{v1beta1.AnnotationRecord: string(text)}, OwnerReferences: []metav1.OwnerReference{owner}},
	}}
	keep.Record.Data.Raw = []byte("{}")
	if c.rolling.record != nil {
		keep.Record.UID, keep.Record.ResourceVersion = c.rolling.record.UID, c.rolling.record.ResourceVersion
	}
	c.history(keep, owner, c.rolling.revision, podset.HistoryOf(c.app, c.units))
	if c.rolling.recovered != nil {
		c.history(keep, owner, c.rolling.in.Stable, *c.rolling.recovered)
	}
	c.keep = keep
}

// history to be stored, if it is not.
func (c *computation) history(keep *Keep, owner metav1.OwnerReference, revision string, h podset.History) {
	if historyIn(c.in.Revisions, revision) != nil {
		return
	}
	raw, _ := json.Marshal(h) // it came from JSON
	number := int64(len(keep.Histories))
	for _, r := range c.in.Revisions {
		number = max(number, r.Revision+int64(len(keep.Histories)))
	}
	out := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.app.Namespace, Name: c.app.Name + "-" + strings.TrimPrefix(revision, "u1-"),
			Labels: map[string]string{v1beta1.LabelAppSetUID: string(c.app.UID), v1beta1.LabelRevision: revision}, OwnerReferences: []metav1.OwnerReference{owner}},
		Revision: number + 1,
	}
	out.Data.Raw = raw
	keep.Histories = append(keep.Histories, out)
}

// prune revisions that nothing names, but for as many as are to be kept.
func (c *computation) prune(d *rollout.Decision) {
	limit := int(v1beta1.DefaultRevisionHistoryLimit)
	if c.app.Spec.RevisionHistoryLimit != nil {
		limit = int(*c.app.Spec.RevisionHistoryLimit)
	}
	var old []*appsv1.ControllerRevision
	for _, r := range c.in.Revisions {
		if name := r.Labels[v1beta1.LabelRevision]; name != v1beta1.RevisionRecord && name != d.Record.Revision && name != d.Record.Stable {
			old = append(old, r)
		}
	}
	slices.SortFunc(old, func(a, b *appsv1.ControllerRevision) int {
		return cmp.Or(cmp.Compare(b.Revision, a.Revision), strings.Compare(a.Name, b.Name))
	})
	c.obsolete = append(c.obsolete, old[min(limit, len(old)):]...)
}
