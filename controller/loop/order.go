package loop

import (
	"sync"

	"k8s.io/client-go/util/workqueue"
)

// overtaking is how many keys under way go before one that is not, if both wait.
const overtaking = 4

// order is the order in which due keys are handed out. What is under way goes before
// what has not begun: of a thousand rollouts that start at once each would otherwise
// take its first step, then each its second, and whatever is out of service between two
// steps would be so for as long as all of them take. A share is left to the others, so
// that nothing waits for ever. It implements workqueue.Queue, whose user locks.
type order struct {
	begun, others workqueue.Queue[Key]
	overtaken     int // keys in a row that went before one that waits

	mu       sync.Mutex // of what syncs return
	underWay map[Key]struct{}
}

func newOrder() *order {
	return &order{begun: workqueue.DefaultQueue[Key](), others: workqueue.DefaultQueue[Key](), underWay: map[Key]struct{}{}}
}

// set the progress of a key. What waits already keeps its place.
func (o *order) set(key Key, p Progress) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch p {
	case UnderWay:
		o.underWay[key] = struct{}{}
	case AtRest:
		delete(o.underWay, key)
	}
}

func (o *order) isUnderWay(key Key) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, is := o.underWay[key]
	return is
}

// Push adds a key to its part of the order.
func (o *order) Push(key Key) {
	if o.isUnderWay(key) {
		o.begun.Push(key)
	} else {
		o.others.Push(key)
	}
}

// Touch does nothing: progress is set while a key is worked on, and waits nowhere.
func (o *order) Touch(Key) {}

// Len counts the keys that wait.
func (o *order) Len() int { return o.begun.Len() + o.others.Len() }

// Pop takes the next key.
func (o *order) Pop() Key {
	switch {
	case o.others.Len() == 0:
		return o.begun.Pop()
	case o.begun.Len() == 0 || o.overtaken == overtaking:
		o.overtaken = 0
		return o.others.Pop()
	}
	o.overtaken++
	return o.begun.Pop()
}
