package measure

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"tkestack.io/tapp/test/bench/record"
)

// starts is how often a program is started; the worst one counts.
const starts = 5

// Start measures a process that only starts and ends: all that the program links, of which
// nothing works.
func Start(ctx context.Context, binary string) (record.Micro, error) {
	out := record.Micro{Name: record.Start}
	for range starts {
		begin := time.Now()
		process := exec.CommandContext(ctx, binary, "--version")
		if err := process.Run(); err != nil {
			return out, fmt.Errorf("start %s: %w", binary, err)
		}
		out.Nanos = max(out.Nanos, float64(time.Since(begin)))
		usage, ok := process.ProcessState.SysUsage().(*syscall.Rusage)
		if !ok {
			return out, errors.New("this system does not tell the memory of a process that has ended")
		}
		out.Bytes = max(out.Bytes, float64(usage.Maxrss)*1024)
	}
	return out, nil
}
