package process

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Listens tells whether the process itself holds a Unix socket that was made at path, whoever has one there now.
func (r Record) Listens(path string) bool {
	sockets, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/unix", r.PID))
	if err != nil {
		return false
	}
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", r.PID))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(sockets)) {
		fields := strings.Fields(line) // the inode is followed by the path, where there is one
		if len(fields) != 8 || fields[7] != path {
			continue
		}
		if slices.ContainsFunc(files, func(file string) bool {
			target, err := os.Readlink(file)
			return err == nil && target == "socket:["+fields[6]+"]"
		}) {
			return true
		}
	}
	return false
}
