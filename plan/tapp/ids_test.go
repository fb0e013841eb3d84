package tapp

import (
	"slices"
	"testing"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

func TestIDsOf(t *testing.T) {
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
		"the highest":       {new(int32(2)), &tappv1.Ordinals{Start: MaxID - 1}, []int{MaxID - 1, MaxID}, MaxID, "spec.ordinals.start is 2147483646 and spec.replicas is 2"},
		"negative":          {new(int32(-2)), nil, []int{}, 0, "spec.replicas is -2"},
	} {
		t.Run(name, func(t *testing.T) {
			ids := IDsOf(&tappv1.TAppSpec{Replicas: c.replicas, Ordinals: c.ordinals})
			if all := ids.All(); !slices.Equal(all, c.all) {
				t.Errorf("they are %v, want %v", all, c.all)
			}
			if ids.Last() != c.last || ids.Why() != c.why {
				t.Errorf("the last is %d, because %s; want %d, because %s", ids.Last(), ids.Why(), c.last, c.why)
			}
			for _, id := range append([]int{c.last + 1, ids.Start - 1}, c.all...) {
				if ids.Has(id) != slices.Contains(c.all, id) {
					t.Errorf("%d is one of %v: %t", id, c.all, ids.Has(id))
				}
			}
		})
	}
}
