package api

import (
	"bufio"
	"io"
	"testing"
	"time"
)

// TestSlowReaders: many that take little keep little in memory, though each of them is sent the
// instances as they were at another time.
func TestSlowReaders(t *testing.T) {
	const slow, most = 3, 1 << 20 // the list has more than 2 MB
	s := serveCrowd(t, manyInstances, Limits{Write: time.Hour}, true)
	fast, err := s.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = fast.Body.Close() }()
	seen := make(chan string, slow+1)
	go func() {
		marks := []string{"event: health"}
		for range slow {
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
		s.moved <- i
		<-seen
	}
	used := liveMemory() - empty
	t.Logf("%d slow readers keep %d KB each", slow, used>>10/slow)
	if used > slow*most {
		t.Errorf("that is more than %d KB", most>>10)
	}
}
