// Package kernel keeps what real nodes change of the machine: settings of the kernel that belong to no namespace. The first
// cluster on the machine records them, and the last one puts them back.
package kernel

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"tkestack.io/tapp/devcluster/process"
	"tkestack.io/tapp/devcluster/state"
)

// settings that a kubelet writes when it starts, unless they have these values (setupKernelTunables in
// k8s.io/kubernetes/pkg/kubelet/cm).
var settings = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// limits that are often too low for several clusters beside each other, and what they are raised to. Each containerd, kubelet and
// API server watches files by a handful of inotify instances, and containerd does not start without its own ("too many open files").
var limits = map[string]int{
	"fs/inotify/max_user_instances": 1024,
}

// changes are all settings that real nodes change, with the values that they get.
func changes() map[string]string {
	all := maps.Clone(settings)
	for name, value := range limits {
		all[name] = strconv.Itoa(value)
	}
	return all
}

// Machine is where the settings and the processes of a machine are.
type Machine struct {
	// Proc is /proc.
	Proc string
	// Record is the file in which the settings are kept.
	Record string
}

// Here is the machine that this runs on.
func Here() Machine {
	return Machine{Proc: "/proc", Record: filepath.Join(os.TempDir(), fmt.Sprintf(".%skernel-%d.json", state.Prefix, os.Geteuid()))}
}

// record of the settings, which a boot resets.
type record struct {
	Boot     string            `json:"boot"`
	Settings map[string]string `json:"settings"`
}

// Save records the settings, unless an earlier cluster did since the machine started, and raises the limits. The caller has the
// lock "kubelets".
func (m Machine) Save() error {
	if r, err := m.read(); err == nil && r.Boot == process.Boot() {
		return m.raise(r)
	}
	r := record{Boot: process.Boot(), Settings: map[string]string{}}
	for name := range changes() {
		value, err := m.get(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a kernel without it
		}
		if err != nil {
			return fmt.Errorf("read a setting of the kernel: %w", err)
		}
		r.Settings[name] = value
	}
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("record the kernel's settings: %w", err)
	}
	if err := state.WriteFile(m.Record, text, 0o600); err != nil {
		return err
	}
	return m.raise(r)
}

// raise the limits that are recorded, and lower. One that may not be written stays as it is: it may do for one cluster.
func (m Machine) raise(r record) error {
	for name, least := range limits {
		if _, recorded := r.Settings[name]; !recorded {
			continue
		}
		text, err := m.get(name)
		if err != nil {
			return fmt.Errorf("read a limit of the kernel: %w", err)
		}
		if is, err := strconv.Atoi(text); err != nil || is >= least {
			continue
		}
		err = os.WriteFile(m.path(name), []byte(strconv.Itoa(least)), 0o600)
		if err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) {
			return fmt.Errorf("raise a limit of the kernel: %w", err)
		}
	}
	return nil
}

// Restore puts back what a kubelet or Save wrote, and nobody else changed since, unless a kubelet of another cluster still runs. The
// caller has the lock "kubelets".
func (m Machine) Restore() error {
	r, err := m.read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	ours, _, err := m.kubelets()
	if err != nil || len(ours) > 0 {
		return err
	}
	if r.Boot == process.Boot() {
		var errs []error
		changed := changes()
		for name, value := range r.Settings {
			is, err := m.get(name)
			if err == nil && is == changed[name] && is != value {
				err = os.WriteFile(m.path(name), []byte(value), 0o600)
			}
			errs = append(errs, err)
		}
		if err := errors.Join(errs...); err != nil {
			return fmt.Errorf("put back the kernel's settings: %w", err)
		}
	}
	return os.Remove(m.Record)
}

func (m Machine) read() (r record, err error) {
	text, err := os.ReadFile(m.Record)
	if err != nil {
		return r, fmt.Errorf("read the kernel's settings: %w", err)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("read the kernel's settings in %s: %w", m.Record, err)
	}
	return r, nil
}

func (m Machine) path(name string) string { return filepath.Join(m.Proc, "sys", name) }

func (m Machine) get(name string) (string, error) {
	text, err := os.ReadFile(m.path(name))
	return strings.TrimSpace(string(text)), err
}

// Mark stands in the command line of kubelets of development clusters: it is the label that they give their nodes.
const Mark = "devcluster.tkestack.io/node"

// Alone returns an error if a kubelet runs on the machine that is no development cluster's: both would use /var/lib/kubelet.
func (m Machine) Alone() error {
	_, others, err := m.kubelets()
	if err != nil || len(others) == 0 {
		return err
	}
	return fmt.Errorf("another kubelet runs on this machine (process %d); it and real nodes would take sockets and settings from each other: use --nodes=sim, or another machine", others[0])
}

// kubelets that run, by process id: those of development clusters, and others.
func (m Machine) kubelets() (ours, others []int, err error) {
	entries, err := os.ReadDir(m.Proc)
	if err != nil {
		return nil, nil, fmt.Errorf("list processes: %w", err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		line, err := os.ReadFile(filepath.Join(m.Proc, e.Name(), "cmdline"))
		if err != nil {
			continue // it has ended
		}
		program, arguments, _ := strings.Cut(string(line), "\x00")
		switch {
		case filepath.Base(program) != "kubelet":
		case strings.Contains(arguments, Mark):
			ours = append(ours, pid)
		default:
			others = append(others, pid)
		}
	}
	return ours, others, nil
}
