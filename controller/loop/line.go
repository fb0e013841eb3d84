package loop

import (
	"sync"

	"k8s.io/client-go/util/workqueue"
)

// overtaking is how many keys under way go before one that is not, if both wait.
const overtaking = 4

// line is the order in which due keys are handed out. What is under way goes before
// what has not begun: of a thousand rollouts that start at once each would otherwise
// take its first step, then each its second, and whatever is out of service between two
// steps would be so for as long as all of them take. A share is left to the others, so
// that nothing waits for ever. It implements workqueue.Queue, whose user locks.
type line struct {
	ahead, behind workqueue.Queue[Key]
	overtaken     int // keys in a row that went before one that waits

	mu       sync.Mutex // of what syncs tell
	underWay map[Key]struct{}
}

func newLine() *line {
	return &line{ahead: workqueue.DefaultQueue[Key](), behind: workqueue.DefaultQueue[Key](), underWay: map[Key]struct{}{}}
}

// tell says whether a key is under way. What waits already keeps its place.
func (l *line) tell(key Key, underWay bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if underWay {
		l.underWay[key] = struct{}{}
	} else {
		delete(l.underWay, key)
	}
}

func (l *line) isUnderWay(key Key) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, is := l.underWay[key]
	return is
}

// Push adds a key to its part of the line.
func (l *line) Push(key Key) {
	if l.isUnderWay(key) {
		l.ahead.Push(key)
	} else {
		l.behind.Push(key)
	}
}

// Touch does nothing: a key is told of while it is worked on, and waits nowhere then.
func (l *line) Touch(Key) {}

// Len counts the keys that wait.
func (l *line) Len() int { return l.ahead.Len() + l.behind.Len() }

// Pop takes the next key.
func (l *line) Pop() Key {
	switch {
	case l.behind.Len() == 0:
		return l.ahead.Pop()
	case l.ahead.Len() == 0 || l.overtaken == overtaking:
		l.overtaken = 0
		return l.behind.Pop()
	}
	l.overtaken++
	return l.ahead.Pop()
}
