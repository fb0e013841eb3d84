package engine

import (
	"fmt"
	"os"
	"syscall"
)

// maxSeconds of processor time; the kernel ends the process then.
const maxSeconds = 120

// arena is what Go reserves of addresses at once, and a bit.
const arena = 128 << 20

// confine bounds the memory that this process may map, and lets it open nothing more:
// neither files nor connections. If memory is short, it is the first to be killed.
func confine(memory int64) error {
	// Best effort: a kernel without it, or /proc that is read only, loses the order only.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0o600)
	if err := limit(syscall.RLIMIT_DATA, uint64(memory)); err != nil {
		return err
	}
	// Linux does not count what is mapped in the place of a reservation, which is how Go takes
	// memory, until the next mapping: one allocation of any size would pass. Addresses are
	// counted at once; Go has reserved many at its start.
	addresses, err := addressSpace()
	if err != nil {
		return err
	}
	if err := limit(syscall.RLIMIT_AS, addresses+uint64(memory)+arena); err != nil {
		return err
	}
	// Whoever started this process ends it long before; but it may be gone itself.
	if err := limit(syscall.RLIMIT_CPU, maxSeconds); err != nil {
		return err
	}
	return limit(syscall.RLIMIT_NOFILE, 3)
}

// addressSpace is how many bytes of addresses this process has.
func addressSpace() (uint64, error) {
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, fmt.Errorf("reading how large this process is: %w", err)
	}
	var pages uint64
	if _, err := fmt.Sscan(string(raw), &pages); err != nil {
		return 0, fmt.Errorf("reading how large this process is: %w", err)
	}
	return pages * uint64(os.Getpagesize()), nil
}

func limit(resource int, value uint64) error {
	var now syscall.Rlimit
	if err := syscall.Getrlimit(resource, &now); err != nil {
		return err
	}
	value = min(value, now.Max)
	return syscall.Setrlimit(resource, &syscall.Rlimit{Cur: value, Max: value})
}
