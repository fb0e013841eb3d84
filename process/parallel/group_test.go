package parallel

import (
	"strings"
	"testing"
)

// TestGroup: a panic beside a request is the request's.
func TestGroup(t *testing.T) {
	var g Group
	done := make([]bool, 3)
	for i := range done {
		g.Do(func() {
			done[i] = true
			if i == 1 {
				panic("on purpose")
			}
		})
	}
	cause := func() (cause any) {
		defer func() { cause = recover() }()
		g.Wait()
		return nil
	}()
	if err, ok := cause.(error); !ok || !strings.HasPrefix(err.Error(), "on purpose\n") || !strings.Contains(err.Error(), "group_test.go") {
		t.Errorf("the panic is %v; want the one on purpose with the stack of where it was", cause)
	}
	for i, ran := range done {
		if !ran {
			t.Errorf("function %d did not run to its end", i)
		}
	}
}
