package rule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// pair is a kind of which only rules know something.
type pair struct{ a, b int }

// pairRules want both numbers to be positive, a not to shrink, and b to be small.
var pairRules = Rules[pair]{
	{Name: "A", Judge: func(p *pair) field.ErrorList { return positive("a", p.a) }, Compare: func(now, was *pair) field.ErrorList {
		if now.a >= was.a {
			return nil
		}
		return field.ErrorList{field.Forbidden(field.NewPath("a"), "it cannot shrink")}
	}},
	{Name: "B", Judge: func(p *pair) field.ErrorList { return positive("b", p.b) }, Advise: func(now, was *pair) []string {
		if now.b <= 9 {
			return nil
		}
		return []string{fmt.Sprintf("b: it is large, created %v", was == nil)}
	}},
}

func positive(name string, n int) field.ErrorList {
	if n > 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath(name), n, "give a number above 0")}
}

// TestRules: what denies and what warns, on creation and in updates.
func TestRules(t *testing.T) {
	const old = "b: Invalid value: 0: give a number above 0 (this was so before, and does not block the update)"
	for _, c := range []struct {
		name             string
		now              pair
		was              *pair
		denied, warnings string
		by               string
	}{
		{"good", pair{1, 1}, nil, "", "", ""},
		{"created with two mistakes", pair{0, 0}, nil, "a: Invalid value: 0: give a number above 0; b: Invalid value: 0: give a number above 0", "", "A B"},
		{"created with a warning", pair{1, 10}, nil, "", "b: it is large, created true", ""},
		{"an old mistake", pair{2, 0}, &pair{1, 0}, "", old, ""},
		{"a second mistake", pair{0, 0}, &pair{-1, 0}, "a: Invalid value: 0: give a number above 0", old, "A"},
		{"another mistake in the same field", pair{1, -1}, &pair{1, 0}, "b: Invalid value: -1: give a number above 0", "", "B"},
		{"a change that is forbidden, and a warning", pair{1, 11}, &pair{2, 1}, "a: Forbidden: it cannot shrink", "b: it is large, created false", "A"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var w Warnings
			found, err := pairRules.Judge(t.Context(), &c.now, c.was, &w)
			if err != nil {
				t.Fatal(err)
			}
			pairRules.Advise(t.Context(), &c.now, c.was, &w)
			var lines []string
			for _, f := range found {
				lines = append(lines, f.String())
			}
			if got := strings.Join(lines, "; "); got != c.denied || strings.Join(w.Texts, "; ") != c.warnings || strings.Join(Names(found), " ") != c.by {
				t.Errorf("denied %q by %v, warnings %q", got, Names(found), w.Texts)
			}
		})
	}
}

// TestNamed: only these rules are left, and the others stay in the table.
func TestNamed(t *testing.T) {
	var w Warnings
	found, err := pairRules.Named("B", "C").Judge(t.Context(), &pair{0, 0}, nil, &w)
	if err != nil {
		t.Fatal(err)
	}
	if names := Names(found); !slices.Equal(names, []string{"B"}) || len(pairRules) != 2 {
		t.Errorf("found by %v, of %d rules", names, len(pairRules))
	}
}

// TestInvalid: many findings are counted.
func TestInvalid(t *testing.T) {
	status := Invalid(schema.GroupKind{Group: "g", Kind: "Pair"}, "p", Findings("A", slices.Repeat(positive("a", 0), 23)))
	causes := status.Details.Causes
	if !strings.HasPrefix(status.Message, `Pair.g "p" is invalid: a: Invalid value: 0: give a number above 0; a: `) || !strings.HasSuffix(status.Message, "; spec: and 3 more") ||
		len(causes) != 21 || causes[0].Field != "a" || causes[20].Message != "and 3 more" || status.Code != 422 {
		t.Errorf("got %+v", status)
	}
}

// TestWarnings: they are counted where there would be too many, and name a rule once.
func TestWarnings(t *testing.T) {
	var w, more Warnings
	w.Add("Rule", strings.Fields("1 2 3 4 5 6 7 8 9 10")...)
	w.Add("Rule", "11")
	w.Add("Other")
	more.Add("More", "12")
	w.Append(more)
	if got := strings.Join(w.Texts, " "); got != "1 2 3 4 5 6 7 8 and 2 more 11 12" || strings.Join(w.Rules, " ") != "Rule More" {
		t.Errorf("got %q of %v", got, w.Rules)
	}
}

// TestRatchet: the value of a field decides whether a finding is new.
func TestRatchet(t *testing.T) {
	path := field.NewPath("spec", "replicas")
	of := func(value int, why string) field.ErrorList { return field.ErrorList{field.Invalid(path, value, why)} }
	for _, c := range []struct {
		name          string
		found, before field.ErrorList
		fresh, old    int
	}{
		{"new", of(1, "a"), nil, 1, 0},
		{"old", of(1, "a"), of(1, "a"), 0, 1},
		{"old, in other words", of(1, "a"), of(1, "b"), 0, 1},
		{"another value", of(1, "a"), of(2, "a"), 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			fresh, old := ratchet(c.found, c.before)
			if len(fresh) != c.fresh || len(old) != c.old {
				t.Errorf("fresh %v, old %v", fresh, old)
			}
		})
	}
}

// TestManyFindings: an update of what is wrong in many places is judged in linear
// time, and only the first findings are rendered.
func TestManyFindings(t *testing.T) {
	const many = 50_000
	wrong := Rules[pair]{{Name: "Many", Judge: func(p *pair) field.ErrorList {
		errs := make(field.ErrorList, 0, many)
		for i := range many {
			errs = append(errs, field.Invalid(field.NewPath("ids").Index(i), p.a, "no"))
		}
		return errs
	}}}
	var w Warnings
	found, err := wrong.Judge(t.Context(), &pair{a: 1}, &pair{a: 1}, &w)
	if err != nil || len(found) != 0 || len(w.Texts) != maxWarnings+1 || w.Texts[maxWarnings] != "and 49992 more" {
		t.Errorf("%d findings, %d warnings, %v", len(found), len(w.Texts), err)
	}
	if found, err = wrong.Judge(t.Context(), &pair{a: 2}, &pair{a: 1}, &w); err != nil || len(found) != many {
		t.Errorf("%d findings, %v", len(found), err)
	}
	if found[maxFindings-1].Message == "" || found[maxFindings].Message != "" {
		t.Errorf("sentences were rendered that nobody is told: %q", found[maxFindings].Message)
	}
}

// TestDeadline: rules do not go on when the time is over.
func TestDeadline(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	judged := 0
	count := func(*pair) field.ErrorList { judged++; cancel(); return nil }
	_, err := Rules[pair]{{Name: "A", Judge: count}, {Name: "B", Judge: count}}.Judge(ctx, &pair{}, nil, &Warnings{})
	if !errors.Is(err, context.Canceled) || judged != 1 {
		t.Errorf("%d rules were judged by, and then %v", judged, err)
	}
}

// TestAlone: what relies on a rule is not judged where it denies.
func TestAlone(t *testing.T) {
	rules := slices.Clone(pairRules)
	rules[0].Alone = true
	found, err := rules.Judge(t.Context(), &pair{0, 0}, nil, &Warnings{})
	if names := Names(found); err != nil || !slices.Equal(names, []string{"A"}) {
		t.Errorf("found by %v, %v", names, err)
	}
}
