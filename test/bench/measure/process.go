package measure

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of CPU times in /proc: Linux shows it as 10 ms on every machine.
const tick = 10 * time.Millisecond

// Usage of one process.
type Usage struct {
	CPU time.Duration
	// Resident memory now, and the most since the last ResetPeak, in bytes.
	Resident, Peak int64
}

// UsageOf reads what the process has used.
func UsageOf(pid int) (Usage, error) {
	var u Usage
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return u, fmt.Errorf("measure process %d: %w", pid, err)
	}
	// The name of the program, in parentheses, may hold anything.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const user, system = 11, 12
	if len(fields) <= system {
		return u, fmt.Errorf("measure process %d: %q is too short", pid, stat)
	}
	for _, i := range []int{user, system} {
		ticks, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return u, fmt.Errorf("measure process %d: %w", pid, err)
		}
		u.CPU += time.Duration(ticks) * tick
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return u, fmt.Errorf("measure process %d: %w", pid, err)
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		var kib int64
		if _, err := fmt.Sscanf(value, "%d kB", &kib); err != nil {
			continue
		}
		switch name {
		case "VmRSS":
			u.Resident = kib << 10
		case "VmHWM":
			u.Peak = kib << 10
		}
	}
	return u, nil
}

// CommandLine is how the process of a program in a directory was started.
func CommandLine(bin, program string) ([]string, error) {
	found, err := find(bin, program)
	if err != nil {
		return nil, err
	}
	pid, ok := found[program]
	if !ok {
		return nil, fmt.Errorf("there is no process of %s", filepath.Join(bin, program))
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return nil, fmt.Errorf("read the command line of %s: %w", program, err)
	}
	return strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00"), nil
}

// ResetPeak lets the peak begin at what is resident now.
func ResetPeak(pid int) error {
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
		return fmt.Errorf("reset the peak of process %d: %w", pid, err)
	}
	return nil
}

// parts of the cluster whose CPU is measured.
var parts = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"}

// find returns the processes of these programs in a directory: name to id.
func find(bin string, programs ...string) (map[string]int, error) {
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	found := map[string]int{}
	for _, path := range paths {
		line, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) || err != nil && strings.Contains(err.Error(), "no such process") {
			continue // it has just ended
		}
		if err != nil {
			return nil, fmt.Errorf("list processes: %w", err)
		}
		program, _, _ := strings.Cut(string(line), "\x00")
		if filepath.Dir(program) != bin || !slices.Contains(programs, filepath.Base(program)) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			return nil, fmt.Errorf("list processes: %w", err)
		}
		found[filepath.Base(program)] = pid
	}
	return found, nil
}
