//go:build !linux

package engine

import "runtime/debug"

// confine asks the collector to keep within the bound: the hard limit is Linux' alone,
// where the controllers run.
func confine(memory int64) error {
	debug.SetMemoryLimit(memory)
	return nil
}
