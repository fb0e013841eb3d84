// Package ownership keeps fields with who declares them. Who applies an object on the
// server, as Helm 4, Argo CD and Flux do, owns the fields of its manifest. A patch by
// another manager takes those that it changes, and the next apply of them is a conflict.
// So who owned a field before a patch gets it back after it, with the new value.
package ownership

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// Entries are metadata.managedFields.
type Entries = []metav1.ManagedFieldsEntry

// Owner is a manager that loses fields by a write.
type Owner struct {
	Manager string
	Applies bool
	// Fields as the API server writes them in conflicts, without their first dot.
	Fields []string
}

// Taken is what a write took from others.
type Taken struct {
	Owners []Owner
	// shares are what each applier gets back, if the writer owns it then.
	shares []share
}

type share struct {
	entry  metav1.ManagedFieldsEntry
	fields *fieldpath.Set
}

// Compare metadata.managedFields before and after a write by a manager that does not apply.
// Fields that are new go to the one applier that declares something in the fields of the
// spec that adopt names; where there is none, or several, they stay with the writer.
func Compare(before, after Entries, writer string, adopt []string) (*Taken, error) {
	had, err := read(before)
	if err != nil {
		return nil, err
	}
	has, err := read(after)
	if err != nil {
		return nil, err
	}
	out := &Taken{}
	mine := has.of(writer)
	fresh := mine.Difference(had.of(writer))
	for i := range had {
		o := &had[i]
		fresh = fresh.Difference(o.fields)
		if o.entry.Subresource != "" || o.isUpdateOf(writer) {
			continue
		}
		lost := o.fields.Difference(has.same(o))
		if lost.Empty() {
			continue
		}
		out.Owners = append(out.Owners, Owner{Manager: o.entry.Manager, Applies: o.applies(), Fields: pathsOf(lost)})
		if o.applies() {
			out.shares = append(out.shares, share{o.entry, lost})
		}
	}
	slices.SortStableFunc(out.Owners, func(a, b Owner) int { return strings.Compare(a.Manager, b.Manager) })
	if declarer := had.declarer(adopt); declarer != nil && !fresh.Empty() {
		out.shares = append(out.shares, share{declarer.entry, within(fresh, adopt)})
	}
	return out, nil
}

// Return gives back what was taken. It returns the entries that an object should have
// that has these; nil: they are right. Where somebody applies, the writer owns no map of
// the spec itself, only entries of it: a map that has an owner and loses its last entry by
// an apply becomes null, and null is refused.
func (t *Taken) Return(now Entries, writer string, maps []string) (Entries, error) {
	has, err := read(now)
	if err != nil {
		return nil, err
	}
	mine, given := has.of(writer), fieldpath.NewSet()
	for _, s := range t.shares {
		back := s.fields.Intersection(mine)
		if back.Empty() {
			continue
		}
		given = given.Union(back)
		has = has.with(s.entry, back)
	}
	if slices.ContainsFunc(has, func(o owned) bool { return o.applies() }) {
		spec := "spec"
		for _, name := range maps {
			if path := (fieldpath.Path{{FieldName: &spec}, {FieldName: &name}}); mine.Has(path) {
				given.Insert(path)
			}
		}
	}
	if given.Empty() {
		return nil, nil
	}
	var out Entries
	for i := range has {
		o := &has[i]
		if o.isUpdateOf(writer) {
			o.fields = o.fields.Difference(given)
		}
		if o.fields.Empty() {
			continue
		}
		text, err := o.fields.ToJSON()
		if err != nil {
			return nil, fmt.Errorf("writing the fields of %s: %w", o.entry.Manager, err)
		}
		o.entry.FieldsV1 = metav1.NewFieldsV1(string(text))
		out = append(out, o.entry)
	}
	return out, nil
}

// owned is an entry of metadata.managedFields, read.
type owned struct {
	entry  metav1.ManagedFieldsEntry
	fields *fieldpath.Set
}

type all []owned

func read(entries Entries) (all, error) {
	var out all
	for _, e := range entries {
		fields := fieldpath.NewSet()
		if e.FieldsV1 != nil {
			if err := fields.FromJSON(e.FieldsV1.GetRawReader()); err != nil {
				return nil, fmt.Errorf("reading the fields of %s: %w", e.Manager, err)
			}
		}
		out = append(out, owned{e, fields})
	}
	return out, nil
}

func (o *owned) applies() bool { return o.entry.Operation == metav1.ManagedFieldsOperationApply }

func (o *owned) isUpdateOf(manager string) bool {
	return o.entry.Manager == manager && !o.applies() && o.entry.Subresource == ""
}

// of a manager, what its updates own.
func (a all) of(manager string) *fieldpath.Set {
	out := fieldpath.NewSet()
	for i := range a {
		if a[i].isUpdateOf(manager) {
			out = out.Union(a[i].fields)
		}
	}
	return out
}

func isSame(a, b *metav1.ManagedFieldsEntry) bool {
	return a.Manager == b.Manager && a.Operation == b.Operation && a.Subresource == b.Subresource && a.APIVersion == b.APIVersion
}

// same is what the manager of an entry owns here.
func (a all) same(as *owned) *fieldpath.Set {
	out := fieldpath.NewSet()
	for i := range a {
		if isSame(&a[i].entry, &as.entry) {
			out = out.Union(a[i].fields)
		}
	}
	return out
}

// with fields added to an entry, which is made anew if it is not there.
func (a all) with(entry metav1.ManagedFieldsEntry, fields *fieldpath.Set) all {
	for i := range a {
		if isSame(&a[i].entry, &entry) {
			a[i].fields = a[i].fields.Union(fields)
			return a
		}
	}
	return append(a, owned{entry, fields})
}

// declarer is the only applier that declares something in these fields of the spec; nil:
// none does, or several do.
func (a all) declarer(fields []string) *owned {
	var out *owned
	for i := range a {
		if !a[i].applies() || a[i].entry.Subresource != "" || within(a[i].fields, fields).Empty() {
			continue
		}
		if out != nil {
			return nil
		}
		out = &a[i]
	}
	return out
}

// within these fields of the spec.
func within(s *fieldpath.Set, fields []string) *fieldpath.Set {
	out := fieldpath.NewSet()
	for p := range s.All() {
		if len(p) > 1 && isField(p[0], "spec") && slices.ContainsFunc(fields, func(name string) bool { return isField(p[1], name) }) {
			out.Insert(p.Copy())
		}
	}
	return out
}

func isField(e fieldpath.PathElement, name string) bool {
	return e.FieldName != nil && *e.FieldName == name
}

// pathsOf the fields, without the hashes that admission writes into templates.
func pathsOf(s *fieldpath.Set) (out []string) {
	for p := range s.Leaves().All() {
		if last := p[len(p)-1]; !isField(last, tappv1.LabelTemplateHash) && !isField(last, tappv1.LabelUniqHash) {
			out = append(out, strings.TrimPrefix(p.String(), "."))
		}
	}
	return out
}
