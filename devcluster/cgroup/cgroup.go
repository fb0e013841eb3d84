// Package cgroup keeps what belongs to a cluster's real nodes together in control groups: the pods, below a group for each
// node, and the nodes' daemons. So everything that was ever started there can be found and ended, whatever became of its
// parents. Version 1 (many hierarchies) and version 2 (one) of the kernel's interface both work.
package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"tkestack.io/tapp/devcluster/poll"
)

const mountpoint = "/sys/fs/cgroup"

// Tree is a cluster's groups, under one name at the top of every hierarchy.
type Tree struct {
	Name string
	root string // of the file system; tests have their own
}

// daemons is the name of the group for a node's daemons, beside that for its pods.
func daemons(node string) string { return node + "-daemons" }

// Path of a node's group, as a kubelet's cgroupRoot wants it.
func (t Tree) Path(node string) string { return "/" + t.Name + "/" + node }

func (t Tree) mountpoint() string {
	if t.root != "" {
		return t.root
	}
	return mountpoint
}

func (t Tree) unified() bool { return exists(filepath.Join(t.mountpoint(), "cgroup.controllers")) }

// hierarchies are the directories in which groups are made.
func (t Tree) hierarchies() []string {
	if t.unified() {
		return []string{t.mountpoint()}
	}
	entries, _ := os.ReadDir(t.mountpoint())
	var found []string
	for _, e := range entries {
		dir := filepath.Join(t.mountpoint(), e.Name())
		// A link (cpu -> cpu,cpuacct) is another name for a hierarchy that we see anyway.
		if e.IsDir() && exists(filepath.Join(dir, "cgroup.procs")) {
			found = append(found, dir)
		}
	}
	return found
}

// Create makes the group for a node's pods, and the one for its daemons.
func (t Tree) Create(node string) error {
	hierarchies := t.hierarchies()
	if len(hierarchies) == 0 {
		return fmt.Errorf("control groups are not mounted at %s", t.mountpoint())
	}
	for _, h := range hierarchies {
		if t.unified() {
			delegate(h)
		}
		for _, dir := range []string{t.Name, filepath.Join(t.Name, node), filepath.Join(t.Name, daemons(node))} {
			if err := create(filepath.Join(h, dir)); err != nil {
				return err
			}
			if t.unified() && filepath.Base(dir) != daemons(node) {
				delegate(filepath.Join(h, dir))
			}
		}
	}
	return nil
}

func create(dir string) error {
	if err := os.Mkdir(dir, 0o750); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("create control group: %w", err)
	}
	// Version 1 refuses processes in a cpuset without processors and memory.
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		if current, err := os.ReadFile(filepath.Join(dir, file)); err != nil || strings.TrimSpace(string(current)) != "" {
			continue
		}
		value, err := os.ReadFile(filepath.Join(filepath.Dir(dir), file))
		if err != nil || strings.TrimSpace(string(value)) == "" {
			continue // version 2 inherits
		}
		if err := os.WriteFile(filepath.Join(dir, file), value, 0o600); err != nil { //nolint:gosec // below the mount point
			return fmt.Errorf("set up control group: %w", err)
		}
	}
	return nil
}

// delegate passes on all controllers to the groups below, one by one because a machine may lack some.
func delegate(dir string) {
	controllers, _ := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	for _, c := range strings.Fields(string(controllers)) {
		_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+c), 0o600) //nolint:gosec // below the mount point
	}
}

// AddDaemon moves a process into the group for a node's daemons; what it starts stays there too.
func (t Tree) AddDaemon(node string, pid int) error {
	dir := t.daemons(node)
	if dir == "" {
		return fmt.Errorf("control groups are not mounted at %s", t.mountpoint())
	}
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o600); err != nil {
		return fmt.Errorf("move process into control group: %w", err)
	}
	return nil
}

// daemons returns one directory: in version 1 that of a hierarchy which systemd leaves alone, and which limits nothing.
func (t Tree) daemons(node string) string {
	if t.unified() {
		return filepath.Join(t.mountpoint(), t.Name, daemons(node))
	}
	hierarchies := t.hierarchies()
	for _, name := range []string{"freezer", "pids", "devices"} {
		if h := filepath.Join(t.mountpoint(), name); slices.Contains(hierarchies, h) {
			return filepath.Join(h, t.Name, daemons(node))
		}
	}
	return ""
}

// Kill ends all processes in the group of a node, or in all groups if node is "".
func (t Tree) Kill(ctx context.Context, node string) error {
	return poll.Until(ctx, "processes in control groups to end", 20*time.Second, 20*time.Millisecond, func(context.Context) error {
		pids := t.processes(node)
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL) // gone in this instant: fine
		}
		if len(pids) > 0 {
			return fmt.Errorf("%d are left: %v", len(pids), pids)
		}
		return nil
	})
}

// processes lists what runs in the groups. The dead whom nobody has buried do not count.
func (t Tree) processes(node string) []int {
	found := map[int]bool{}
	t.walk(node, func(dir string) {
		data, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		for _, field := range strings.Fields(string(data)) {
			if pid, err := strconv.Atoi(field); err == nil && pid > 0 && !zombie(pid) {
				found[pid] = true
			}
		}
	})
	var pids []int
	for pid := range found {
		pids = append(pids, pid)
	}
	slices.Sort(pids)
	return pids
}

func zombie(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	i := strings.LastIndex(string(data), ") ")
	return i >= 0 && strings.HasPrefix(string(data[i+2:]), "Z")
}

// Remove deletes the groups of a node, or all if node is "". The kernel may need a moment after the last process.
func (t Tree) Remove(ctx context.Context, node string) error {
	return poll.Until(ctx, "control groups to become empty", 10*time.Second, 50*time.Millisecond, func(context.Context) error {
		var errs []error
		t.walk(node, func(dir string) {
			if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		})
		return errors.Join(errs...)
	})
}

// walk visits groups, children before their parents.
func (t Tree) walk(node string, visit func(dir string)) {
	if t.Name == "" {
		return // never the whole machine
	}
	below := []string{""}
	if node != "" {
		below = []string{node, daemons(node)}
	}
	for _, h := range t.hierarchies() {
		for _, name := range below {
			visitTree(filepath.Join(h, t.Name, name), visit)
		}
	}
}

func visitTree(root string, visit func(dir string)) {
	var dirs []string
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		return nil // what vanishes meanwhile is what we want
	})
	slices.Reverse(dirs)
	for _, dir := range dirs {
		visit(dir)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
