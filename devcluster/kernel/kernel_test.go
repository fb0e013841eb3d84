package kernel

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tkestack.io/tapp/devcluster/process"
)

// machine has the settings of a fresh one, in files.
func machine(t *testing.T) Machine {
	t.Helper()
	dir := t.TempDir()
	m := Machine{Proc: filepath.Join(dir, "proc"), Record: filepath.Join(dir, "record.json")}
	for name := range changes() {
		write(t, m.path(name), "7\n")
	}
	if err := os.Remove(m.path("kernel/keys/root_maxkeys")); err != nil { // a kernel without it
		t.Fatal(err)
	}
	return m
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// kubelet starts: it writes what it wants.
func (m Machine) kubelet(t *testing.T, pid, arguments string) {
	t.Helper()
	for name, value := range settings {
		if _, err := os.Stat(m.path(name)); err == nil {
			write(t, m.path(name), value)
		}
	}
	write(t, filepath.Join(m.Proc, pid, "cmdline"), "/bin/kubelet\x00"+strings.ReplaceAll(arguments, " ", "\x00"))
}

func (m Machine) expect(t *testing.T, name, want string) {
	t.Helper()
	if got, err := m.get(name); err != nil || got != want {
		t.Errorf("%s is %s, %v, want %s", name, got, err, want)
	}
}

// TestRestore: the last of two clusters puts back what was before the first one, but what somebody changed meanwhile.
func TestRestore(t *testing.T) {
	m := machine(t)
	if err := m.Restore(); err != nil {
		t.Errorf("nothing was recorded: %v", err)
	}
	for _, pid := range []string{"10", "11"} {
		if err := m.Save(); err != nil {
			t.Fatal(err)
		}
		m.kubelet(t, pid, "--node-labels="+Mark+"=real")
	}
	write(t, m.path("kernel/panic"), "99")
	for n, pid := range []string{"10", "11"} {
		if err := os.RemoveAll(filepath.Join(m.Proc, pid)); err != nil {
			t.Fatal(err)
		}
		if err := m.Restore(); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			m.expect(t, "vm/overcommit_memory", "1") // the other cluster's kubelet needs it
		}
	}
	m.expect(t, "vm/overcommit_memory", "7")
	m.expect(t, "kernel/keys/root_maxbytes", "7")
	m.expect(t, instances, "7")
	m.expect(t, "kernel/panic", "99")
	if _, err := os.Stat(m.Record); !os.IsNotExist(err) {
		t.Errorf("the record stays: %v", err)
	}
}

const instances = "fs/inotify/max_user_instances"

// TestLimits: a limit is raised where it is lower, also when the record is there already.
func TestLimits(t *testing.T) {
	m := machine(t)
	for _, c := range []struct{ is, then, back string }{
		{"128", "1024", "128"},
		{"1024", "1024", "1024"},
		{"8192", "8192", "8192"},
		{"unlimited", "unlimited", "unlimited"},
	} {
		write(t, m.path(instances), c.is)
		for range 2 {
			if err := m.Save(); err != nil {
				t.Fatal(err)
			}
			m.expect(t, instances, c.then)
			write(t, m.path(instances), c.is)
		}
		if err := m.Save(); err != nil {
			t.Fatal(err)
		}
		if err := m.Restore(); err != nil {
			t.Fatal(err)
		}
		m.expect(t, instances, c.back)
	}
	if err := os.Remove(m.path(instances)); err != nil { // a kernel without it
		t.Fatal(err)
	}
	if err := errors.Join(m.Save(), m.Restore()); err != nil {
		t.Error(err)
	}
}

// TestRecordOfAnEarlierBoot says nothing of this one.
func TestRecordOfAnEarlierBoot(t *testing.T) {
	m := machine(t)
	write(t, m.Record, `{"boot":"another","settings":{"vm/overcommit_memory":"3"}}`)
	if err := m.Restore(); err != nil {
		t.Fatal(err)
	}
	m.expect(t, "vm/overcommit_memory", "7")
	write(t, m.Record, `{"boot":"another","settings":{"vm/overcommit_memory":"3"}}`)
	if err := m.Save(); err != nil {
		t.Fatal(err)
	}
	if r, err := m.read(); err != nil || r.Boot != process.Boot() || r.Settings["vm/overcommit_memory"] != "7" {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestAlone(t *testing.T) {
	m := machine(t)
	m.kubelet(t, "10", "--node-labels="+Mark+"=real")
	write(t, filepath.Join(m.Proc, "12", "cmdline"), "/usr/bin/vi\x00kubelet")
	if err := m.Alone(); err != nil {
		t.Error(err)
	}
	m.kubelet(t, "13", "--config=/var/lib/kubelet/config.yaml")
	const want = "another kubelet runs on this machine (process 13); it and real nodes would take sockets and settings from each other: use --nodes=sim, or another machine"
	if err := m.Alone(); err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
}
