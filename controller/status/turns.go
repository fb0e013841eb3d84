package status

import (
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// A deferrable status is as much work for the API server as half a pod. It waits for its
// turn: the deferrable statuses of all objects of a kind together take at most one in
// turnShare of the time, which long writes use up soon. Then many objects are worked
// on, and most of them get to their end meanwhile, which is told at once.
const (
	turnShare = 20
	// turnInterval is how far apart two turns are at most: one large object is worked on as
	// often as many small ones.
	turnInterval = 5 * time.Second
	// turnBurst is how many turns need no waiting after a time without any: few objects that
	// are on their way are told of, however long one write took.
	turnBurst = 10
	// turnTimeout is how long a status waits for its turn at most.
	turnTimeout = time.Minute
)

// turns of the deferrable statuses of a kind.
type turns struct {
	limiter *rate.Limiter
	took    *atomic.Int64 // by the last status write, of whichever object, in ns
}

func newTurns() turns { return turns{rate.NewLimiter(0, turnBurst), new(atomic.Int64)} }

func (t turns) wrote(took time.Duration) { t.took.Store(int64(took)) }

// next is when a deferrable status may be written: after hold, or when there is a turn, which
// is taken, used or not.
func (t turns) next(now time.Time, hold time.Duration) time.Time {
	t.limiter.SetLimitAt(now, rate.Every(min(turnShare*time.Duration(t.took.Load()), turnInterval)))
	reserved := t.limiter.ReserveN(now, 1)
	wait := reserved.DelayFrom(now)
	if wait > turnTimeout {
		reserved.CancelAt(now)
		wait = turnTimeout
	}
	return now.Add(max(wait, hold))
}
