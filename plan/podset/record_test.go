package podset

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/rollout"
)

// recordOf so many podSets in change, all of which failed, with names of some length.
func recordOf(units, length int) *rollout.Record {
	r := &rollout.Record{ID: "0123456789-1", Budgeted: true, Halted: "too many"}
	for i := range units {
		key := rollout.Key{Cluster: fmt.Sprintf("%0*d", length, i/4*7919), Name: fmt.Sprintf("%0*d", length, i*104729)}
		r.Bounds = append(r.Bounds, rollout.Bound{Key: key, Bound: 1, Version: "123456789"})
		r.Failed = append(r.Failed, rollout.Failure{Key: key, Why: "its image cannot be had, and it did not come"})
	}
	return r
}

// TestRecord: what is stored of a rollout is read back, and can be stored, however many podSets an
// AppSet may have.
func TestRecord(t *testing.T) {
	for _, c := range []struct {
		units, length int
		packed        bool
	}{{0, 0, false}, {MaxUnits / 4, 20, false}, {MaxUnits, 20, true}, {MaxUnits, 53, true}} {
		record, ledger := recordOf(c.units, c.length), LedgerOf(&v1beta1.AppSet{}, nil)
		kept := ledger.Keep(record)
		text := kept.Record.Annotations[v1beta1.AnnotationRecord]
		if strings.HasPrefix(text, packed) != c.packed {
			t.Errorf("%+v: it begins with %.40q", c, text)
		}
		if errs := validation.ValidateAnnotations(kept.Record.Annotations, field.NewPath("annotations")); len(errs) > 0 {
			t.Errorf("%+v: %v", c, errs)
		}
		ledger.Revisions = []*appsv1.ControllerRevision{kept.Record}
		if got := ledger.Record(); got == nil || !got.Equal(record) {
			t.Errorf("%+v: it is read back as %.200v", c, got)
		}
	}
}

// TestRecordCut: a record that was cut, or is too large to be one of ours, is none.
func TestRecordCut(t *testing.T) {
	whole := textOf(recordOf(MaxUnits, 53))
	large := recordOf(0, 0)
	large.Halted = strings.Repeat("x", mostRecord)
	for _, text := range []string{"", "{}", "{", packed, packed + "%", packed + "YQ==", whole[:len(whole)/2], textOf(large)} {
		if got := recordIn(text); got != nil {
			t.Errorf("%.40q is read as %.200v", text, got)
		}
	}
}
