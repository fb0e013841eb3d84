// Package process starts programs that outlive us, and later finds them again for certain.
//
// A process id alone says nothing: ids are reused. A record therefore holds the id with the process's start time and the
// boot of the machine (its identity), and the command line. It is written twice: before the start, without an id, and
// right after it. So even if we are killed in between, the process can be found by its command line, which holds paths of
// this cluster and of no other.
package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"tkestack.io/tapp/devcluster/poll"
	"tkestack.io/tapp/devcluster/state"
)

// Spec says how to run a program.
type Spec struct {
	Name      string
	Path      string
	Args      []string
	Namespace string // a file: the network namespace to run in, "" is the machine's
	Started   func(pid int) error
}

func (s Spec) argv() []string { return append([]string{s.Path}, s.Args...) }

func (s Spec) program() string {
	path, err := filepath.EvalSymlinks(s.Path)
	if err != nil {
		return s.Path // starting it will tell
	}
	return path
}

// Record is a process that was started.
type Record struct {
	Name     string    `json:"name"`
	PID      int       `json:"pid"` // 0 while it is being started
	Identity string    `json:"identity"`
	Argv     []string  `json:"argv"`
	Program  string    `json:"program"` // the file behind Argv[0], which may be a link
	Started  time.Time `json:"started"`
}

// Alive tells whether exactly this process still runs.
func (r Record) Alive() bool {
	return r.PID != 0 && r.Identity != "" && identity(r.PID) == r.Identity
}

// Table is the set of processes of one cluster.
type Table struct {
	Dir  string // of records
	Logs string
	Home string // the processes' home and working directory
}

func (t Table) path(name string) string { return filepath.Join(t.Dir, name+".json") }

// Logfile is where the process writes.
func (t Table) Logfile(name string) string { return filepath.Join(t.Logs, name+".log") }

// Records returns all that were started and not stopped, in the order of their names.
func (t Table) Records() ([]Record, error) {
	paths, err := filepath.Glob(filepath.Join(t.Dir, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	slices.Sort(paths)
	var records []Record
	for _, path := range paths {
		if r, ok := t.Find(strings.TrimSuffix(filepath.Base(path), ".json")); ok {
			records = append(records, r)
		}
	}
	return records, nil
}

// Find returns the record of a process, with its id found again if it was never noted.
func (t Table) Find(name string) (Record, bool) {
	data, err := os.ReadFile(t.path(name))
	if err != nil {
		return Record{}, false
	}
	var r Record
	if json.Unmarshal(data, &r) != nil {
		return Record{}, false
	}
	if r.PID == 0 {
		r.PID = findCommand(r.Argv)
		r.Identity = identity(r.PID)
	}
	return r, true
}

// Alive tells whether the named process runs.
func (t Table) Alive(name string) bool {
	r, ok := t.Find(name)
	return ok && r.Alive()
}

// Ensure starts the process unless it runs already, the same program with the same arguments; it tells whether it had to.
func (t Table) Ensure(ctx context.Context, s Spec) (started bool, err error) {
	if r, ok := t.Find(s.Name); ok && r.Alive() {
		if slices.Equal(r.Argv, s.argv()) && r.Program == s.program() {
			return false, nil
		}
		if err := t.Stop(ctx, 5*time.Second, s.Name); err != nil {
			return false, err
		}
	}
	return true, t.start(s)
}

func (t Table) start(s Spec) error {
	log, err := os.OpenFile(t.Logfile(s.Name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("start %s: %w", s.Name, err)
	}
	defer func() { _ = log.Close() }() // the process has its own
	r := Record{Name: s.Name, Argv: s.argv(), Program: s.program(), Started: time.Now()}
	if err := t.save(r); err != nil {
		return err
	}
	argv := r.Argv
	if s.Namespace != "" {
		// Not `ip netns exec`: it mounts a fresh /sys, which hides the cgroups. nsenter replaces itself by the program.
		argv = append([]string{"nsenter", "--net=" + s.Namespace}, argv...)
	}
	// Not CommandContext: the process shall outlive us.
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, t.Home
	cmd.Env = []string{"PATH=" + SearchPath(), "HOME=" + t.Home, "LANG=C.UTF-8"} // and no proxies
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return errors.Join(fmt.Errorf("start %s: %w", s.Name, err), os.Remove(t.path(s.Name)))
	}
	r.PID = cmd.Process.Pid
	r.Identity = identity(r.PID)
	// While we live we are its parent: without this it would stay a zombie after its end.
	go func() { _ = cmd.Wait() }()
	if err := t.save(r); err != nil {
		return err
	}
	if s.Started != nil {
		return s.Started(r.PID)
	}
	return nil
}

func (t Table) save(r Record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("record %s: %w", r.Name, err)
	}
	return state.WriteFile(t.path(r.Name), append(data, '\n'), 0o600)
}

// Stop ends processes: it asks all of them, and after grace it kills those that are left. With no grace it kills at once.
func (t Table) Stop(ctx context.Context, grace time.Duration, names ...string) error {
	var running []Record
	for _, name := range names {
		if r, ok := t.Find(name); ok && r.Alive() {
			running = append(running, r)
		}
	}
	if grace > 0 {
		signal(running, syscall.SIGTERM)
		// Whoever ignores us is killed below.
		_ = waitGone(ctx, running, grace)
	}
	signal(running, syscall.SIGKILL)
	if err := waitGone(ctx, running, 10*time.Second); err != nil {
		return err
	}
	for _, name := range names {
		if err := os.Remove(t.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("forget %s: %w", name, err)
		}
	}
	return nil
}

func signal(records []Record, s syscall.Signal) {
	for _, r := range records {
		if r.Alive() {
			_ = syscall.Kill(r.PID, s) // gone in this instant: fine
		}
	}
}

func waitGone(ctx context.Context, records []Record, timeout time.Duration) error {
	return poll.Until(ctx, "processes to end", timeout, 20*time.Millisecond, func(context.Context) error {
		for _, r := range records {
			if r.Alive() {
				return fmt.Errorf("%s (process %d) is still there", r.Name, r.PID)
			}
		}
		return nil
	})
}

// Died returns an error, with the end of the log, if the process that was started has ended by itself.
func (t Table) Died(name string) error {
	if t.Alive(name) {
		return nil
	}
	return fmt.Errorf("%s has ended; the last lines of %s:\n%s", name, t.Logfile(name), tail(t.Logfile(name), 8))
}

func tail(path string, lines int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// SearchPath is PATH with the directories of system programs, which users who are not root lack.
func SearchPath() string {
	path := os.Getenv("PATH")
	for _, dir := range []string{"/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin"} {
		if !slices.Contains(filepath.SplitList(path), dir) {
			path += string(filepath.ListSeparator) + dir
		}
	}
	return path
}
