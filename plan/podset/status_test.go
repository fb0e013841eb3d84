package podset

import (
	"strings"
	"testing"
	"time"

	"tkestack.io/tapp/plan/rollout"
)

// TestStates of stages: each says what becomes of its podSets, also of those that go back.
func TestStates(t *testing.T) {
	at := new(time.Unix(1, 0))
	passed, begun := rollout.StageRecord{Started: at, Finished: at, Passed: true}, rollout.StageRecord{Started: at}
	well := rollout.StageRecord{Started: at, Well: at}
	stages := func(all ...rollout.Stage) []rollout.Stage { return all }
	changing := stages(rollout.Stage{Work: true, Record: passed}, rollout.Stage{Work: true, Record: begun}, rollout.Stage{Work: true}, rollout.Stage{})
	for name, c := range map[string]struct {
		d    rollout.Decision
		want string
	}{
		"in the second":               {rollout.Decision{State: rollout.Staged, Current: 1, Stages: changing}, "Done, Progressing, Pending, Nothing to do"},
		"halted":                      {rollout.Decision{State: rollout.Halted, Current: 1, Stages: changing}, "Done, Halted, Pending, Nothing to do"},
		"at a gate":                   {rollout.Decision{State: rollout.Waiting, Current: 0, Stages: stages(rollout.Stage{Work: true, Record: begun}, rollout.Stage{Work: true})}, "Waiting, Pending"},
		"it has to stay well":         {rollout.Decision{State: rollout.Staged, Stages: stages(rollout.Stage{Work: true, Record: well})}, "Soaking"},
		"it returns":                  {rollout.Decision{State: rollout.Returning, Current: -1, Stages: stages(rollout.Stage{Returning: 1}, rollout.Stage{})}, "Returning, Nothing to do"},
		"one returns, others change":  {rollout.Decision{State: rollout.Staged, Current: 1, Stages: stages(rollout.Stage{Returning: 1}, rollout.Stage{Work: true, Record: begun})}, "Returning, Progressing"},
		"it rolls back":               {rollout.Decision{State: rollout.RollingBack, Current: 1, Stages: stages(rollout.Stage{Work: true, Record: passed, Returning: 1}, rollout.Stage{Work: true, Record: begun, Returning: 1}, rollout.Stage{Work: true}, rollout.Stage{})}, "RollingBack, RollingBack, Pending, Nothing to do"},
		"the second has rolled back":  {rollout.Decision{State: rollout.RollingBack, Current: 1, Stages: stages(rollout.Stage{Work: true, Record: passed, Returning: 1}, rollout.Stage{Work: true, Record: begun}, rollout.Stage{Work: true})}, "RollingBack, RolledBack, Pending"},
		"it has rolled back":          {rollout.Decision{State: rollout.RolledBack, Current: 1, Stages: changing}, "RolledBack, RolledBack, Pending, Nothing to do"},
		"it rolls back before it ran": {rollout.Decision{State: rollout.RollingBack, Current: 0, Stages: stages(rollout.Stage{Work: true})}, "Pending"},
	} {
		t.Run(name, func(t *testing.T) {
			c.d.Record = &rollout.Record{}
			var got []string
			for _, stage := range RolloutStatus(&c.d).Stages {
				got = append(got, stage.State)
			}
			if text := strings.Join(got, ", "); text != c.want {
				t.Errorf("got  %s\nwant %s", text, c.want)
			}
		})
	}
}
