package loop

import "time"

// Events of one key come in storms: a rollout of 10,000 pods makes some 50,000 of them,
// and each sync looks at all pods of its key. So each sync uses up some of the key's
// time, counted from its start. It is the most of:
//
//	batch more than the sync took
//	shortSpacing times as long as it looked, but shortMax at most
//	spacing times as long as it looked, but spacingMax at most
//
// However many events there are, a key spends at most 1/spacing of the time on looking at
// them; one of 1,000 pods, which takes some 3 ms, 1/shortSpacing. How long a sync writes
// is not multiplied: it waits for the API server then, and the next wave of a rollout
// should not wait for it again.
//
//	the key                                              its event is handled
//	used less time up than went by, but for half credit  at once
//	used more up, so there is a storm                    when that time is over but for credit, and after batch
//	any, and others wait for a worker                    when that time is over, and after batch
//
// So a user who changes a few instances waits for nothing, and what comes in a storm or
// to a busy controller is batched.
const (
	batch        = 10 * time.Millisecond
	shortSpacing = 10
	shortMax     = 50 * time.Millisecond
	spacing      = 3
	spacingMax   = 500 * time.Millisecond
	// credit is some ten small syncs in a row.
	credit = 200 * time.Millisecond
	// sweepEvery is after how many syncs keys that need not wait any more are dropped.
	sweepEvery = 256
)

// pace says when keys are due. Its user locks.
type pace struct {
	keys  map[Key]*debounce
	syncs int
}

// debounce of a key: when its next sync may start.
type debounce struct {
	start time.Time // of the last sync
	used  time.Time // until when the syncs have used the time up
	due   time.Time // of the next sync; zero: nothing is enqueued
}

// schedule returns after how long to sync the key; false if that is enqueued already.
// backlog says whether keys wait for a worker.
func (p *pace) schedule(key Key, now time.Time, backlog bool) (time.Duration, bool) {
	t := p.of(key)
	if !t.due.IsZero() {
		return 0, false
	}
	switch {
	case backlog:
		t.due = later(now.Add(batch), t.used)
	case t.used.Add(-credit / 2).After(now): // what comes with this event is handled with it
		t.due = later(now.Add(batch), t.used.Add(-credit))
	default:
		t.due = now
	}
	return t.due.Sub(now), true
}

func (p *pace) began(key Key, now time.Time) {
	t := p.of(key)
	t.start, t.due = now, time.Time{}
}

func (p *pace) ended(key Key, looked time.Duration, now time.Time) {
	t := p.of(key)
	took := now.Sub(t.start)
	t.used = later(t.used, t.start).Add(max(took+batch, min(shortSpacing*looked, shortMax), min(spacing*looked, spacingMax)))
	if p.syncs++; p.syncs%sweepEvery == 0 {
		p.sweep(now)
	}
}

// sweep drops the keys that would not make anything wait.
func (p *pace) sweep(now time.Time) {
	for key, t := range p.keys {
		if t.used.Before(now) && t.due.Before(now) {
			delete(p.keys, key)
		}
	}
}

func (p *pace) of(key Key) *debounce {
	t := p.keys[key]
	if t == nil {
		t = &debounce{}
		p.keys[key] = t
	}
	return t
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
