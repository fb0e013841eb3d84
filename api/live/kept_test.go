package live

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

type thing struct{ ended chan struct{} }

func (t *thing) end() { close(t.ended) }

// TestKept: a thing goes on while somebody uses it and for a while after, and those who come
// meanwhile get the same.
func TestKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the while is over as soon as all wait for it
		k := kept[string, *thing]{linger: time.Hour, all: map[string]*holding[*thing]{}}
		begin := func(int) (*thing, error) { return &thing{make(chan struct{})}, nil }
		first, leave, _ := k.acquire("a", begin)
		again, leaveAgain, _ := k.acquire("a", begin)
		other, _, _ := k.acquire("b", begin)
		if again != first || other == first || k.count() != 2 {
			t.Fatalf("%p, %p and %p are %d", first, again, other, k.count())
		}
		ends := func(want bool) {
			t.Helper()
			if got := k.all["a"].timer != nil; got != want {
				t.Errorf("it is to end: %v, want %v", got, want)
			}
		}
		leave()
		leave() // the same user
		ends(false)
		leaveAgain()
		ends(true)
		if again, leave, _ = k.acquire("a", begin); again != first {
			t.Error("who comes back within the while gets another one")
		}
		ends(false)
		leave()
		<-first.ended
		if again, _, _ = k.acquire("a", begin); again == first || k.count() != 2 {
			t.Errorf("after the while %p is there again, of %d", again, k.count())
		}
		if _, _, err := k.acquire("c", func(int) (*thing, error) { return nil, errors.New("no") }); err == nil || k.count() != 2 {
			t.Errorf("%v, and %d are left", err, k.count())
		}
		k.close()
		<-other.ended
		<-again.ended
		if k.count() != 0 {
			t.Errorf("%d are left", k.count())
		}
	})
}
