package engine

import (
	"os"
	"syscall"
)

// maxSeconds of processor time; the kernel ends the process then.
const maxSeconds = 120

// confine bounds the memory that this process may map, and lets it open nothing more:
// neither files nor connections. If memory is short, it is the first to be killed.
func confine(memory int64) error {
	// Best effort: a kernel without it, or /proc that is read only, loses the order only.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0o600)
	if err := limit(syscall.RLIMIT_DATA, uint64(memory)); err != nil {
		return err
	}
	// Whoever started this process ends it long before; but it may be gone itself.
	if err := limit(syscall.RLIMIT_CPU, maxSeconds); err != nil {
		return err
	}
	return limit(syscall.RLIMIT_NOFILE, 3)
}

func limit(resource int, value uint64) error {
	var now syscall.Rlimit
	if err := syscall.Getrlimit(resource, &now); err != nil {
		return err
	}
	value = min(value, now.Max)
	return syscall.Setrlimit(resource, &syscall.Rlimit{Cur: value, Max: value})
}
