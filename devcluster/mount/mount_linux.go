package mount

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
)

// Clear unmounts everything at and below the paths.
func Clear(paths ...string) error {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("list mounts: %w", err)
	}
	var errs []error
	for _, point := range below(string(data), paths) {
		// Lazily: the processes that used it are dead, but the kernel may not have noticed yet.
		if err := syscall.Unmount(point, syscall.MNT_DETACH); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOENT) {
			errs = append(errs, fmt.Errorf("unmount %s: %w", point, err))
		}
	}
	return errors.Join(errs...)
}

// Is tells whether something is mounted at path.
func Is(path string) bool {
	data, err := os.ReadFile("/proc/self/mountinfo")
	return err == nil && slices.Contains(below(string(data), []string{path}), path)
}
