package cgroup

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func write(t *testing.T, content string, path ...string) {
	t.Helper()
	file := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestVersion1(t *testing.T) {
	root := t.TempDir()
	for _, h := range []string{"systemd", "cpuset", "freezer", "cpu,cpuacct"} {
		write(t, "", root, h, "cgroup.procs")
	}
	write(t, "0-1\n", root, "cpuset", "cpuset.cpus")
	write(t, "0\n", root, "cpuset", "cpuset.mems")
	if err := os.Symlink("cpu,cpuacct", filepath.Join(root, "cpu")); err != nil {
		t.Fatal(err)
	}
	tree := Tree{Name: "tapp-x", root: root}
	// The kernel puts the files into a new cpuset.
	for _, dir := range []string{"tapp-x", "tapp-x/node1", "tapp-x/node1-daemons"} {
		write(t, "\n", root, "cpuset", dir, "cpuset.cpus")
		write(t, "\n", root, "cpuset", dir, "cpuset.mems")
	}
	if err := tree.Create("node1"); err != nil {
		t.Fatal(err)
	}
	if got := read(t, root, "cpuset", "tapp-x", "node1", "cpuset.cpus"); got != "0-1\n" {
		t.Errorf("cpuset has processors %q", got)
	}
	if !exists(filepath.Join(root, "cpu,cpuacct", "tapp-x", "node1")) {
		t.Error("no group for the processor")
	}
	if err := tree.AddDaemon("node1", 4242); err != nil {
		t.Fatal(err)
	}
	if got := read(t, root, "freezer", "tapp-x", "node1-daemons", "cgroup.procs"); got != "4242" {
		t.Errorf("daemons: %q", got)
	}
	write(t, "77\n", root, "freezer", "tapp-x", "node1", "kubepods", "pod1", "cgroup.procs")
	write(t, "78\n", root, "freezer", "tapp-x", "node2", "cgroup.procs")
	write(t, "1\n", root, "freezer", "tapp-xy", "cgroup.procs")
	if got := tree.processes("node1"); !slices.Equal(got, []int{77, 4242}) {
		t.Errorf("node1 has %v", got)
	}
	if got := tree.processes(""); !slices.Equal(got, []int{77, 78, 4242}) {
		t.Errorf("cluster has %v", got)
	}
	if got := (Tree{root: root}).processes(""); len(got) != 0 {
		t.Errorf("a tree without a name has %v", got)
	}
}

func TestVersion2PassesOnControllers(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"", "tapp-x", "tapp-x/node1"} {
		write(t, "memory\n", root, dir, "cgroup.controllers")
	}
	tree := Tree{Name: "tapp-x", root: root}
	if err := tree.Create("node1"); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"", "tapp-x", "tapp-x/node1"} {
		if got := read(t, root, dir, "cgroup.subtree_control"); got != "+memory" {
			t.Errorf("%s passes on %q", dir, got)
		}
	}
	if exists(filepath.Join(root, "tapp-x", "node1-daemons", "cgroup.subtree_control")) {
		t.Error("a group with processes cannot pass on controllers")
	}
	if err := tree.AddDaemon("node1", 4242); err != nil {
		t.Fatal(err)
	}
	if got := tree.processes("node1"); !slices.Equal(got, []int{4242}) {
		t.Errorf("node1 has %v", got)
	}
}
