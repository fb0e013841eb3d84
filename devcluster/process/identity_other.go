//go:build !linux

package process

import (
	"os/exec"
	"strconv"
	"strings"
)

// identity names a process in a way that is hardly ever reused, and is "" if there is no such process.
func identity(pid int) string {
	out, err := exec.Command("ps", "-o", "stat=,lstart=", "-p", strconv.Itoa(pid)).Output()
	fields := strings.Fields(string(out))
	if err != nil || len(fields) < 2 || strings.HasPrefix(fields[0], "Z") {
		return ""
	}
	return strings.Join(fields[1:], " ")
}

// Boot is unknown here; the start time of a process holds the date.
func Boot() string { return "" }

// findCommand returns the process with this command line, or 0.
func findCommand(argv []string) int {
	out, err := exec.Command("ps", "-axww", "-o", "pid=,command=").Output()
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(out)) {
		pid, command, _ := strings.Cut(strings.TrimSpace(line), " ")
		if command == strings.Join(argv, " ") {
			n, _ := strconv.Atoi(pid)
			return n
		}
	}
	return 0
}
