package parallel

import (
	"errors"
	"strings"
	"testing"
)

// TestContain: a panic is told of and becomes an error with its stack; an error stays itself.
func TestContain(t *testing.T) {
	told := 0
	contain := func(f func() error) error { return Contain(func() { told++ }, f) }
	failed := errors.New("on purpose")
	if err := contain(func() error { return failed }); !errors.Is(err, failed) || told != 0 {
		t.Errorf("%v, told %d times", err, told)
	}
	if err := contain(func() error { return nil }); err != nil || told != 0 {
		t.Errorf("%v, told %d times", err, told)
	}
	err := contain(func() error { panic("by a bug") })
	if err == nil || told != 1 || !strings.HasPrefix(err.Error(), "panic: by a bug\n") || !strings.Contains(err.Error(), "contain_test.go") {
		t.Errorf("%v, told %d times", err, told)
	}
}
