package stages

import (
	"flag"
	"testing"
)

// whole explores the spaces that `make model` does.
var whole = flag.Bool("whole", false, "explore the large spaces, too")

// TestStages: in no state of these spaces is anything wrong, and from each of them all ends well.
func TestStages(t *testing.T) {
	spaces := []limits{
		{edits: 2, concurrent: 1},
		{edits: 1, failures: 1, retries: 1, concurrent: 2},
		{edits: 1, failures: 1, concurrent: 1, rollback: true},
		{edits: 1, lowers: 1, cuts: 1, concurrent: 2},
	}
	if *whole {
		spaces = append(spaces,
			limits{edits: 2, failures: 1, retries: 1, concurrent: 1},
			limits{edits: 2, failures: 1, retries: 1, concurrent: 2, rollback: true},
			limits{edits: 3, concurrent: 1, apart: true},
			limits{edits: 2, lowers: 1, failures: 1, concurrent: 1},
			limits{edits: 2, lowers: 1, cuts: 1, concurrent: 2},
			limits{edits: 1, failures: 2, cuts: 1, retries: 1, concurrent: 2},
		)
	}
	for _, l := range spaces {
		x := &space{limits: l}
		err := x.explore()
		t.Logf("%+v: %d states, %d of a gate that waits, %d of a rollout that halted, %d on the way back", l, len(x.nodes), x.waits, x.halts, x.returns)
		switch {
		case err != nil:
			t.Errorf("%+v: %v", l, err)
		case x.waits == 0 || x.halts == 0 && l.failures > 0 && !l.rollback || x.returns == 0 && (l.edits > 1 || l.rollback):
			t.Errorf("%+v shows nothing", l)
		}
	}
}
