package fleet

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// TestWrittenPart: what was written is shown before its event is, but not after a list that
// began later and does not have it: the member was restored from a backup.
func TestWrittenPart(t *testing.T) {
	const list, write, answer = "a list begins", "a write begins", "it is answered, at version 105"
	for _, test := range []struct {
		name  string
		steps []string
		// list that ends after the steps, and whether the part is shown then.
		version string
		shown   bool
	}{
		{"written and answered while a list is on its way", []string{list, write, answer}, "104", true},
		{"a list that began later is older", []string{list, write, answer, list}, "103", false},
		{"a list that began later is newer: it was deleted", []string{list, write, answer, list}, "106", false},
		{"a list began while the write was on its way", []string{list, write, list, answer}, "103", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newParts(clock.RealClock{}, &packer{}, func(types.NamespacedName) {}, func() {})
			if err := p.Replace(nil, "103"); err != nil {
				t.Fatal(err)
			}
			part := &v1beta1.AdvDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1", ResourceVersion: "105"}}
			lists := 0
			for _, step := range test.steps {
				switch step {
				case list:
					p.listing()
				case write:
					lists = p.begun()
				case answer:
					p.wrote(part, lists)
				}
			}
			if err := p.Replace(nil, test.version); err != nil {
				t.Fatal(err)
			}
			if shown := p.get(keyOf(part)) != nil; shown != test.shown {
				t.Errorf("shown: %t, want %t", shown, test.shown)
			}
		})
	}
}

// TestWroteOnce: what a write answered is trimmed, and the cache holds no second one.
func TestWroteOnce(t *testing.T) {
	p := newParts(clock.RealClock{}, &packer{}, func(types.NamespacedName) {}, func() {})
	if err := p.Replace(nil, "103"); err != nil {
		t.Fatal(err)
	}
	answer := &v1beta1.AdvDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", ResourceVersion: "105",
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: v1beta1.Component}}}}
	wrote := p.wrote(answer, p.begun())
	if have := p.get(keyOf(answer)).unpack(); have != wrote || len(wrote.ManagedFields) > 0 {
		t.Errorf("the cache has %p, and the answer is %p with %v", have, wrote, wrote.ManagedFields)
	}
}

// TestListIsOfItsBeginning: what a list says was true when it began, however late its answer is
// taken in, as by a process that was frozen meanwhile.
func TestListIsOfItsBeginning(t *testing.T) {
	now := clocktesting.NewFakeClock(time.Now())
	p := newParts(now, &packer{}, func(types.NamespacedName) {}, func() {})
	began := now.Now()
	p.listing()
	now.Step(time.Hour)
	if err := p.Replace(nil, "103"); err != nil {
		t.Fatal(err)
	}
	if asOf, listed := p.truth(); !asOf.Equal(began) || !listed {
		t.Errorf("listed: %t, as of %s, want %s", listed, asOf, began)
	}
	now.Step(time.Minute)
	if err := p.Bookmark("104"); err != nil {
		t.Fatal(err)
	}
	if asOf, _ := p.truth(); !asOf.Equal(now.Now()) {
		t.Errorf("as of %s after a bookmark, want %s", asOf, now.Now())
	}
}
