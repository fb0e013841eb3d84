package ids

import (
	"slices"
	"testing"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

func TestOf(t *testing.T) {
	for name, c := range map[string]struct {
		replicas *int32
		ordinals *tappv1.Ordinals
		all      []int
		last     int
		why      string
	}{
		"nothing given":     {nil, nil, []int{0}, 0, "spec.replicas is 1"},
		"replicas":          {new(int32(3)), nil, []int{0, 1, 2}, 2, "spec.replicas is 3"},
		"a start of 0":      {new(int32(2)), &tappv1.Ordinals{}, []int{0, 1}, 1, "spec.replicas is 2"},
		"a start":           {new(int32(3)), &tappv1.Ordinals{Start: 5}, []int{5, 6, 7}, 7, "spec.ordinals.start is 5 and spec.replicas is 3"},
		"none from a start": {new(int32(0)), &tappv1.Ordinals{Start: 5}, []int{}, 5, "spec.ordinals.start is 5 and spec.replicas is 0"},
		"the highest":       {new(int32(2)), &tappv1.Ordinals{Start: Max - 1}, []int{Max - 1, Max}, Max, "spec.ordinals.start is 2147483646 and spec.replicas is 2"},
		"negative":          {new(int32(-2)), nil, []int{}, 0, "spec.replicas is -2"},
	} {
		t.Run(name, func(t *testing.T) {
			r := Of(&tappv1.TAppSpec{Replicas: c.replicas, Ordinals: c.ordinals})
			if all := r.All(); !slices.Equal(all, c.all) {
				t.Errorf("they are %v, want %v", all, c.all)
			}
			if r.Last() != c.last || r.Why() != c.why {
				t.Errorf("the last is %d, because %s; want %d, because %s", r.Last(), r.Why(), c.last, c.why)
			}
			for _, id := range append([]int{c.last + 1, r.Start - 1}, c.all...) {
				if r.Has(id) != slices.Contains(c.all, id) {
					t.Errorf("%d is one of %v: %t", id, c.all, r.Has(id))
				}
			}
		})
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]int{"0": 0, "7": 7, "12": 12, "2147483647": Max} {
		if id, ok := Parse(text); !ok || id != want {
			t.Errorf("%q is read as %d, %t", text, id, ok)
		}
	}
	for _, text := range []string{"", "01", "00", "+1", "-1", " 1", "1.0", "a", "99999999999999999999"} {
		if id, ok := Parse(text); ok {
			t.Errorf("%q is taken for the id %d", text, id)
		}
	}
}
