package state

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSocketsAreShortInDeepDirectories(t *testing.T) {
	d, err := Open(filepath.Join(t.TempDir(), strings.Repeat("deep/", 40), ".devcluster"))
	if err != nil {
		t.Fatal(err)
	}
	// The longest is a kubelet's.
	socket := filepath.Join("/var/lib", filepath.Base(d.Runtime), filepath.Base(d.Node("node60")), "kubelet/pod-resources/kubelet.sock")
	if len(socket) > 107 {
		t.Errorf("%s has %d bytes", socket, len(socket))
	}
}

func TestOneDirectoryIsOneCluster(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	a, errA := Open(filepath.Join(dir, ".devcluster"))
	b, errB := Open(filepath.Join(link, ".devcluster"))
	c, errC := Open(filepath.Join(dir, "other"))
	if errA != nil || errB != nil || errC != nil {
		t.Fatal(errA, errB, errC)
	}
	if a != b {
		t.Errorf("%v and %v are the same directory", a, b)
	}
	if a.ID == c.ID {
		t.Error("two directories share an ID")
	}
}

func TestRecord(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	d := Dir{Root: filepath.Join(t.TempDir(), "state"), Runtime: filepath.Join(os.TempDir(), Prefix+"01234567"), ID: "01234567"}
	if _, ok, err := d.Load(); ok || err != nil {
		t.Fatalf("found a record (%v) where none is", err)
	}
	if err := d.Create(); err != nil {
		t.Fatal(err)
	}
	want := Record{Root: d.Root, Slot: 7, Nodes: 2, Simulated: 20, Boot: "b"}
	if err := d.Save(want); err != nil {
		t.Fatal(err)
	}
	if got, ok, err := d.Load(); got != want || !ok || err != nil {
		t.Errorf("got %+v, %v, %v", got, ok, err)
	}
	other := Dir{Root: "/other", Runtime: filepath.Join(os.TempDir(), Prefix+"76543210")}
	if !other.Taken()[7] || d.Taken()[7] {
		t.Error("slot 7 is taken for others, and not for its owner")
	}
	if err := os.Chmod(d.Runtime, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := d.Create(); err == nil {
		t.Error("used a runtime directory that anybody may write")
	}
	if err := d.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(d.Logs()); err != nil {
		t.Errorf("logs must stay: %v", err)
	}
}
