package loop

import "time"

// Events of one key come in storms: a rollout of 10,000 pods makes some 50,000
// of them, and each sync looks at all pods of its key. So an event waits for
// batch, to let others join it, and syncs of a key start no closer to each other
// than spacing times as long as the last one looked: however many events there are,
// a key spends at most 1/spacing of the time on looking at them. spacingMax
// bounds the wait. How long a sync writes does not count: it waits for the API
// server then, and the next wave of a rollout should not wait for it again.
const (
	batch      = 10 * time.Millisecond
	spacing    = 3
	spacingMax = 500 * time.Millisecond
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
	start  time.Time     // of the last sync
	looked time.Duration // by the last sync
	due    time.Time     // of the next sync; zero: nothing is enqueued
}

// schedule returns after how long to sync the key; false if that is enqueued
// already.
func (p *pace) schedule(key Key, now time.Time) (time.Duration, bool) {
	t := p.of(key)
	if !t.due.IsZero() {
		return 0, false
	}
	t.due = now.Add(batch)
	if next := t.next(); next.After(t.due) {
		t.due = next
	}
	return t.due.Sub(now), true
}

func (p *pace) began(key Key, now time.Time) {
	t := p.of(key)
	t.start, t.due = now, time.Time{}
}

func (p *pace) ended(key Key, looked time.Duration, now time.Time) {
	p.of(key).looked = looked
	if p.syncs++; p.syncs%sweepEvery == 0 {
		p.sweep(now)
	}
}

// sweep drops the keys that would not make anything wait.
func (p *pace) sweep(now time.Time) {
	for key, t := range p.keys {
		if t.start.Add(spacingMax).Before(now) && t.due.Before(now) {
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

// next is the earliest start of the next sync.
func (t *debounce) next() time.Time {
	return t.start.Add(min(spacing*t.looked, spacingMax))
}
