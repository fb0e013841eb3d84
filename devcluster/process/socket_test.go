package process

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

func TestListens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	ours, stranger := Record{PID: os.Getpid()}, Record{PID: os.Getppid()}
	if ours.Listens(path) {
		t.Error("nobody listens yet")
	}
	first, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	if !ours.Listens(path) || stranger.Listens(path) {
		t.Errorf("we: %v, the process that started us: %v; want us alone", ours.Listens(path), stranger.Listens(path))
	}
	if ours.Listens(path[:len(path)-1]) || ours.Listens(filepath.Dir(path)) {
		t.Error("another path was taken for ours")
	}
	// As a kubelet does to another's.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if !ours.Listens(path) {
		t.Error("a socket whose file was deleted is still held")
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if ours.Listens(path) || (Record{}).Listens(path) {
		t.Error("the socket was closed")
	}
}
