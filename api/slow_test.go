package api

import (
	"bufio"
	"io"
	"testing"
	"time"
)

// TestSlowReaders: 100 of 10,000 instances that take little, all open at once, keep little in
// memory, though every tenth of them is sent the instances as they were at another time.
func TestSlowReaders(t *testing.T) {
	const slow, states, most = manyStreams, 10, 1 << 20 // the list has more than 2 MB
	before := liveMemory()
	s := serveCrowd(t, manyInstances, Limits{Write: time.Hour}, true)
	fast, err := s.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = fast.Body.Close() }()
	seen := make(chan string, states+1)
	go func() {
		marks := []string{"event: health"}
		for range states {
			marks = append(marks, "event: change")
		}
		_, _ = io.Copy(&waitsFor{marks: marks, seen: seen}, fast.Body)
	}()
	<-seen
	empty := liveMemory()
	for i := range slow {
		if _, err := bufio.NewReaderSize(s.openSlowly(t), 16).ReadString('\n'); err != nil { // it is being sent
			t.Fatal(err)
		}
		if (i+1)%(slow/states) == 0 {
			s.moved <- i
			<-seen
		}
	}
	all := liveMemory()
	used := all - empty
	t.Logf("%d slow readers keep %d KB each", slow, used>>10/slow)
	if used > states*most { // what is sent at one time is shared
		t.Errorf("that is more than %d KB for each of %d times", most>>10, states)
	}
	t.Logf("%d instances and %d slow streams take %d MB", manyInstances, slow, (all-before)>>20)
	if all-before > mostMemory {
		t.Errorf("that is more than %d MB", mostMemory>>20)
	}
}
