package parallel

import (
	"fmt"
	"runtime/debug"
)

// Contain calls f, and returns a panic as an error with its stack: a bug that one object
// triggers must not take the others down. panicked is told of it.
func Contain(panicked func(), f func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			panicked()
			err = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		}
	}()
	return f()
}
