package podset

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/rollout"
	"tkestack.io/tapp/plan/template"
)

// Ledger is what is stored of the rollouts of one object, in ControllerRevisions beside it:
// the record of the present one, and histories, each by the revision of its content.
type Ledger struct {
	// Owner controls the ControllerRevisions, in its Namespace.
	Owner     metav1.OwnerReference
	Namespace string
	// Prefix begins their names, and Label on them has the owner's UID.
	Prefix, Label string
	// Revisions as stored.
	Revisions []*appsv1.ControllerRevision
}

// LedgerOf an AppSet.
func LedgerOf(a *v1beta1.AppSet, revisions []*appsv1.ControllerRevision) Ledger {
	return Ledger{
		Owner:     metav1.OwnerReference{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: v1beta1.KindAppSet, Name: a.Name, UID: a.UID, Controller: new(true)},
		Namespace: a.Namespace, Prefix: a.Name, Label: v1beta1.LabelAppSetUID, Revisions: revisions,
	}
}

// LoneLedgerOf an AdvDeployment that no AppSet made. Its names differ from those of an
// AppSet of the same name.
func LoneLedgerOf(d *v1beta1.AdvDeployment, revisions []*appsv1.ControllerRevision) Ledger {
	return Ledger{
		Owner:     metav1.OwnerReference{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: v1beta1.KindAdvDeployment, Name: d.Name, UID: d.UID, Controller: new(true)},
		Namespace: d.Namespace, Prefix: d.Name + v1beta1.LoneSuffix, Label: v1beta1.LabelAdvDeploymentUID, Revisions: revisions,
	}
}

// Keep is what of a rollout is to be stored.
type Keep struct {
	// Histories to create, before the record.
	Histories []*appsv1.ControllerRevision
	// Record to create, or with a resourceVersion to replace that very version.
	Record *appsv1.ControllerRevision
	Why    string
}

// Record as stored; nil: there is none that can be read.
func (l *Ledger) Record() *rollout.Record {
	stored := l.record()
	if stored == nil {
		return nil
	}
	return recordIn(stored.Annotations[v1beta1.AnnotationRecord])
}

func (l *Ledger) record() (out *appsv1.ControllerRevision) {
	for _, r := range l.Revisions {
		if r.Labels[v1beta1.LabelRevision] == v1beta1.RevisionRecord {
			out = r
		}
	}
	return out
}

// History of a revision; nil: it was lost.
func (l *Ledger) History(revision string) *History {
	for _, r := range l.Revisions {
		if r.Labels[v1beta1.LabelRevision] != revision {
			continue
		}
		if out := HistoryIn(r); out != nil {
			return out
		}
	}
	return nil
}

// HistoryIn a stored revision; nil: it has none that can be read. That of a record is empty.
func HistoryIn(r *appsv1.ControllerRevision) *History {
	out := &History{}
	if err := json.Unmarshal(r.Data.Raw, out); err != nil {
		return nil
	}
	return out
}

// Keep the record of a rollout. Histories that it needs are added by Add.
func (l *Ledger) Keep(record *rollout.Record) *Keep {
	out := &appsv1.ControllerRevision{ObjectMeta: l.metadata(v1beta1.RecordSuffix, v1beta1.RevisionRecord)}
	out.Annotations = map[string]string{v1beta1.AnnotationRecord: textOf(record)}
	out.Data.Raw = []byte("{}")
	if stored := l.record(); stored != nil {
		out.UID, out.ResourceVersion = stored.UID, stored.ResourceVersion
	}
	return &Keep{Why: "a rollout is recorded before it is carried out", Record: out}
}

func (l *Ledger) metadata(suffix, revision string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: l.Namespace, Name: l.Prefix + suffix, OwnerReferences: []metav1.OwnerReference{l.Owner},
		Labels: map[string]string{l.Label: string(l.Owner.UID), v1beta1.LabelRevision: revision}}
}

// Add a history to what is to be stored, if it is not.
func (l *Ledger) Add(keep *Keep, revision string, h History) {
	if l.History(revision) != nil {
		return
	}
	raw, _ := template.Ordered(h) // it came from JSON
	number := int64(len(keep.Histories))
	for _, r := range l.Revisions {
		number = max(number, r.Revision+int64(len(keep.Histories)))
	}
	out := &appsv1.ControllerRevision{ObjectMeta: l.metadata("-"+strings.TrimPrefix(revision, hashPrefix), revision), Revision: number + 1}
	out.Data.Raw = raw
	keep.Histories = append(keep.Histories, out)
}

// Obsolete are the revisions that the record does not name, but for as many of the newest
// as are to be kept. Nil: the default.
func (l *Ledger) Obsolete(record *rollout.Record, limit *int32) []*appsv1.ControllerRevision {
	most := int(v1beta1.DefaultRevisionHistoryLimit)
	if limit != nil {
		most = int(*limit)
	}
	var old []*appsv1.ControllerRevision
	for _, r := range l.Revisions {
		if name := r.Labels[v1beta1.LabelRevision]; name != v1beta1.RevisionRecord && name != record.Revision && name != record.Stable {
			old = append(old, r)
		}
	}
	slices.SortFunc(old, func(a, b *appsv1.ControllerRevision) int {
		return cmp.Or(cmp.Compare(b.Revision, a.Revision), strings.Compare(a.Name, b.Name))
	})
	return old[min(most, len(old)):]
}
