package turns

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// Twenty goroutines wait for one instant, and go on in the order in which they began to.
func TestOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Clock{}
		until := time.Now().Add(time.Second)
		var order []int
		for i := range 20 {
			timer := c.NewTimer(time.Second)
			go func() {
				<-timer.C()
				order = append(order, i)
			}()
		}
		synctest.Wait()
		c.Advance(until.Add(time.Second), nil)
		if !slices.IsSorted(order) || len(order) != 20 {
			t.Errorf("went on in the order %v", order)
		}
	})
}

func TestTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Clock{}
		began := time.Now()
		stopped, again, ticker, now := c.NewTimer(time.Second), c.NewTimer(time.Second), c.NewTicker(time.Second), c.NewTimer(0)
		select {
		case <-now.C():
		default:
			t.Error("a timer of no time does not fire at once")
		}
		if !stopped.Stop() || stopped.Stop() || !again.Reset(3*time.Second) {
			t.Error("what was waiting was not, or what was not was")
		}
		ticks := 0
		for range 4 {
			c.Advance(began.Add(time.Duration(ticks+1)*time.Second+time.Millisecond), nil)
			select {
			case <-ticker.C():
				ticks++
			default:
			}
		}
		ticker.Stop()
		if ticks != 4 {
			t.Errorf("%d ticks in 4 s", ticks)
		}
		select {
		case at := <-again.C():
			if after := at.Sub(began); after < 3*time.Second || after > 3*time.Second+time.Millisecond {
				t.Errorf("fired after %v, want 3 s", after)
			}
		default:
			t.Error("a timer that was reset does not fire")
		}
		select {
		case <-stopped.C():
			t.Error("a timer that was stopped fires")
		default:
		}
	})
}

// Something that comes ends an Advance early.
func TestActivity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, activity, began := &Clock{}, make(chan struct{}, 1), time.Now()
		go func() {
			c.Sleep(time.Second)
			activity <- struct{}{}
		}()
		synctest.Wait()
		c.Advance(began.Add(time.Minute), activity)
		if went := time.Since(began); went < time.Second || went > 2*time.Second {
			t.Errorf("%v went by, want 1 s", went)
		}
		select {
		case activity <- struct{}{}:
		default:
			t.Error("it was not taken")
		}
		c.Advance(began.Add(time.Minute), activity)
		if went := time.Since(began); went > 2*time.Second {
			t.Errorf("%v went by, want no more", went)
		}
	})
}
