package release

import (
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	plan "tkestack.io/tapp/plan/release"
	"tkestack.io/tapp/test/sim/apiserver"
)

// What goes wrong with a write.
const (
	crashBefore = "crash before a write"
	crashAfter  = "crash after a write"
	lostAnswer  = "a write is done, and its answer lost"
	conflict    = "409 to a write"
	refusal     = "403 to a write"
)

func ways() []string {
	return []string{crashBefore, crashAfter, crashBefore, crashAfter, lostAnswer, conflict, refusal}
}

const (
	// mostStorm is how many steps faults last, mostCalm within how many there is rest after
	// them, and mostRest how many steps without a write are one.
	mostStorm = 160
	mostCalm  = 600
	mostRest  = 30
)

// world is one run.
type world struct {
	*apiserver.Server
	rng   *rand.Rand
	clock *clocktesting.FakeClock
	// peril is in how many writes one goes wrong; 0: none.
	peril   int
	replica *replica

	// want is what the AdvDeployment says; nil: it is being deleted. Its chart is a number.
	want  *plan.Want
	uid   types.UID
	chart int
	// retry asks for another try where a hook failed; asked counts what may lead to a record.
	retry string
	asked int
	made  int
	// gone says that a plan said so, and told what the last one waits for.
	gone bool
	told []string

	steps, wrote int
	lines        []string
	coverage     map[string]int
	failure      error
}

// Run makes one run.
func Run(t *testing.T, seed int64) Result {
	t.Helper()
	k, err := kinds()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{rng: rand.New(rand.NewPCG(uint64(seed), 1)), clock: clocktesting.NewFakeClock(time.Unix(1800000000, 0)), coverage: map[string]int{}}
	w.Server = apiserver.New(w.clock.Now, k)
	w.Watchers = append(w.Watchers, w.see)
	w.peril = 3 + w.rng.IntN(12)
	w.uid = w.NewUID()
	w.ask()
	for w.steps < mostStorm && w.failure == nil {
		w.step(true)
	}
	w.calm()
	h := fnv.New64a()
	_, _ = io.WriteString(h, strings.Join(w.lines, "\n"))
	return Result{Failure: w.failure, Trace: w.lines, Digest: h.Sum64(), Steps: w.steps, Coverage: w.coverage}
}

func (w *world) as(who string) apiserver.Actor { return apiserver.Actor{By: who, At: w.clock.Now()} }

func (w *world) say(format string, args ...any) {
	w.lines = append(w.lines, fmt.Sprintf("%4d  %s", w.steps, fmt.Sprintf(format, args...)))
}

func (w *world) fail(err error) {
	if w.failure == nil {
		w.failure = fmt.Errorf("step %d: %w", w.steps, err)
		w.say("FAILURE: %v", err)
	}
}

// fault of the next write; empty: none.
func (w *world) fault() string {
	if w.peril == 0 || w.rng.IntN(w.peril) > 0 {
		return ""
	}
	return ways()[w.rng.IntN(len(ways()))]
}

// step on: one thing happens.
func (w *world) step(stormy bool) {
	w.steps++
	w.clock.Step(time.Duration(1+w.rng.IntN(20)) * time.Second)
	if w.replica == nil || w.replica.dead {
		if err := w.start(); err != nil {
			w.fail(err)
		}
		return
	}
	if stormy && w.rng.IntN(12) == 0 {
		w.edit()
		return
	}
	if do := w.errand(); do != nil && w.rng.IntN(2) == 0 {
		do()
		return
	}
	w.sync()
}

// ask for a chart.
func (w *world) ask() {
	w.chart = w.rng.IntN(40)
	w.asked++
	w.want = &plan.Want{App: owner, Content: fmt.Sprintf("u1-%d", w.chart), Replicas: int32(w.rng.IntN(4))}
	w.say("user: chart %d, %d instances", w.chart, w.want.Replicas)
}

// edit is what users do: they want another chart or fewer instances, try again, hold a change
// back, or delete the AdvDeployment. When it is gone they make it again.
func (w *world) edit() {
	switch n := w.rng.IntN(11); {
	case w.want == nil && w.gone:
		w.uid, w.gone = w.NewUID(), false
		w.ask()
	case w.want == nil:
	case n < 5:
		w.ask()
	case n < 7:
		w.want.Replicas = int32(w.rng.IntN(4))
		w.say("user: %d instances", w.want.Replicas)
	case n < 8:
		w.retry = fmt.Sprint(w.steps)
		w.asked++
		w.say("user: tries again, %s", w.retry)
	case n < 9:
		w.want.Held = !w.want.Held
		w.say("user: held %v", w.want.Held)
	default:
		w.want = nil
		w.say("user: deletes it")
	}
}

// calm has nothing go wrong until there is rest.
func (w *world) calm() {
	w.say("from here on nothing goes wrong")
	w.peril = 0
	if w.want != nil {
		w.want.Held = false
	}
	for began := w.steps; w.failure == nil; {
		w.step(false)
		if w.steps-w.wrote > mostRest && w.errand() == nil {
			w.atRest()
			return
		}
		if w.steps-began > mostCalm {
			w.fail(fmt.Errorf("L2: no rest after %d steps without faults: %q", mostCalm, w.told))
		}
	}
}
