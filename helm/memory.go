package helm

import (
	"fmt"
	"os"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// leastMemory is what a child process needs to render a small chart.
const leastMemory = 96 << 20

// memory is how much one child process may have now: what was asked for, and no more
// than its share of what the container has left. Kubernetes ends all of a container
// whose limit is passed, this process too.
func (r *Renderer) memory() (int64, error) {
	limit, err := memlimit.FromCgroup()
	if err != nil {
		// There is no container, or it has no limit.
		return r.limits.Memory, nil
	}
	return share(r.limits, int64(min(limit, 1<<62)), resident())
}

// share of a container's memory for one child process. A tenth is left for what this
// process may take meanwhile.
func share(limits Limits, container, own int64) (int64, error) {
	part := (container/10*9 - own) / int64(limits.AtOnce)
	if part < leastMemory {
		return 0, fmt.Errorf("charts cannot be rendered: the container has %d MiB of memory, of which this process uses %d: raise its limit",
			container>>20, own>>20)
	}
	return min(limits.Memory, part), nil
}

// resident is the memory of this process; 0: it is not known.
func resident() int64 {
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(raw), &size, &pages); err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
