package process

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// identity names a process in a way that is never reused, and is "" if there is no such process (a zombie is none).
func identity(pid int) string {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return ""
	}
	// The second field, the name, is in parentheses and may hold anything; the rest is plain.
	_, rest, ok := cutLast(string(data), ") ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return ""
	}
	return Boot() + "/" + fields[19] // start time in clock ticks since boot
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// Boot names the current boot of the machine.
func Boot() string {
	data, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(data))
}

// findCommand returns the process with exactly this command line, or 0.
func findCommand(argv []string) int {
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil || len(data) == 0 {
			continue
		}
		if slices.Equal(strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00"), argv) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			return pid
		}
	}
	return 0
}
