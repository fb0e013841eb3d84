package plugin

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/ids"
)

// parseIDs reads ids and ranges of ids, such as "0-3,7", and returns the ids in
// ascending order, each once. It fails for ids that the TApp does not have.
func parseIDs(t *tappv1.TApp, args []string) ([]int, error) {
	found := map[int]struct{}{}
	for word := range strings.SplitSeq(strings.Join(args, ","), ",") {
		first, last, isRange := strings.Cut(word, "-")
		if !isRange {
			last = first
		}
		from, err := parseID(t, word, first)
		if err != nil {
			return nil, err
		}
		to, err := parseID(t, word, last)
		if err != nil {
			return nil, err
		}
		if to < from {
			return nil, fmt.Errorf("%q is no range of ids: it ends before it begins", word)
		}
		for id := from; id <= to; id++ {
			found[id] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

func parseID(t *tappv1.TApp, word, id string) (int, error) {
	num, ok := ids.Parse(id)
	if !ok {
		return 0, fmt.Errorf("%q is neither an instance id nor a range of ids; give for example 0-3,7", word)
	}
	if has := ids.Of(&t.Spec); !has.Has(num) {
		if has.Count <= 0 {
			return 0, fmt.Errorf("there is no instance %s of %s: spec.replicas is %d", id, t.Name, has.Count)
		}
		return 0, fmt.Errorf("there is no instance %s of %s: its instances are %s", id, t.Name, ids.Ranges(has.All()))
	}
	return num, nil
}
