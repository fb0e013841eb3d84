package measure

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"tkestack.io/tapp/test/bench/record"
)

// Machine describes the one that this runs on.
func Machine(kubernetes string) (record.Machine, error) {
	m := record.Machine{Cores: runtime.NumCPU(), Go: runtime.Version(), Kubernetes: kubernetes}
	var err error
	if m.CPU, err = field("/proc/cpuinfo", "model name"); err != nil {
		return m, err
	}
	memory, err := field("/proc/meminfo", "MemTotal")
	if err != nil {
		return m, err
	}
	if _, err := fmt.Sscanf(memory, "%d kB", &m.Memory); err != nil {
		return m, fmt.Errorf("describe the machine: memory %q: %w", memory, err)
	}
	m.Memory <<= 10
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return m, fmt.Errorf("describe the machine: %w", err)
	}
	m.System = "Linux " + strings.TrimSpace(string(release)) + ", " + runtime.GOARCH
	return m, nil
}

// Boot is made up by the kernel when the machine starts.
func Boot() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("tell this start of the machine from others: %w", err)
	}
	return strings.TrimSpace(string(id)), nil
}

// field returns the first one of its name; empty if there is none.
func field(path, name string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("describe the machine: %w", err)
	}
	for line := range strings.Lines(string(data)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value), nil
		}
	}
	return "", nil
}

// Load of the machine in the last minute: how many processes ran or wanted to.
func Load() (float64, error) {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, fmt.Errorf("reading the load of the machine: %w", err)
	}
	var load float64
	if _, err := fmt.Sscan(string(text), &load); err != nil {
		return 0, fmt.Errorf("reading the load of the machine: %w", err)
	}
	return load, nil
}
