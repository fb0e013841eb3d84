// Package state knows where a cluster keeps its files, and remembers what was started.
//
// Two directories belong to a cluster. The state directory (`.devcluster` in the checkout) is the user's: kubeconfig, logs,
// programs, and the bulky data. The runtime directory is short, because the path of a Unix socket has at most 107 bytes,
// and outside of the checkout, so that `down` still knows what to stop after `git clean`: sockets, kubelets' directories,
// the records of processes, and the record of the cluster itself.
package state

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Prefix begins the name of everything on the machine that is not a file in the state directory.
const Prefix = "tapp-"

// Dir is the pair of directories.
type Dir struct {
	Root    string // absolute
	Runtime string
	ID      string // 8 hex digits, told apart by path and user
}

// Open names the directories for the cluster in root; it creates nothing.
func Open(root string) (Dir, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return Dir{}, fmt.Errorf("state directory: %w", err)
	}
	// Two names of one directory must not become two clusters in it.
	if parent, err := filepath.EvalSymlinks(filepath.Dir(root)); err == nil {
		root = filepath.Join(parent, filepath.Base(root))
	}
	sum := sha256.Sum256([]byte(root + "\x00" + strconv.Itoa(os.Geteuid())))
	id := hex.EncodeToString(sum[:4])
	return Dir{Root: root, ID: id, Runtime: filepath.Join(runtimeBase(), Prefix+id)}, nil
}

func runtimeBase() string {
	if os.Geteuid() == 0 {
		return "/var/lib" // not /run: kubelets keep emptyDir volumes there, and /run is memory
	}
	return os.TempDir()
}

// Name is unique on the machine, for control groups.
func (d Dir) Name() string { return Prefix + d.ID }

// Kubeconfig is the user's.
func (d Dir) Kubeconfig() string { return filepath.Join(d.Root, "kubeconfig") }

// Logs has one file for each process, and the audit log.
func (d Dir) Logs() string { return filepath.Join(d.Root, "logs") }

// Bin has the programs, as links into the cache.
func (d Dir) Bin() string { return filepath.Join(d.Root, "bin") }

// PKI has keys and certificates.
func (d Dir) PKI() string { return filepath.Join(d.Root, "pki") }

// Data is what components write (etcd, registry, containerd of a node), each in its own directory.
func (d Dir) Data(component ...string) string {
	return filepath.Join(append([]string{d.Root, "data"}, component...)...)
}

// Config has the components' configuration files.
func (d Dir) Config() string { return filepath.Join(d.Root, "config") }

// Processes has the records of running processes.
func (d Dir) Processes() string { return filepath.Join(d.Runtime, "processes") }

// Namespaces has the names of network namespaces.
func (d Dir) Namespaces() string { return filepath.Join(d.Runtime, "netns") }

// Node is the runtime directory of a real node.
func (d Dir) Node(name string) string { return filepath.Join(d.Runtime, name) }

// Create makes the directories. Where other users may write (the temporary directory) it insists that the runtime
// directory is ours alone.
func (d Dir) Create() error {
	if err := os.Mkdir(d.Runtime, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("create runtime directory: %w", err)
	}
	info, err := os.Lstat(d.Runtime)
	if err != nil {
		return fmt.Errorf("check runtime directory: %w", err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || int(owner.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("runtime directory %s is not ours alone", d.Runtime)
	}
	for _, dir := range []string{d.Root, d.Bin(), d.Logs(), d.Config(), d.Processes()} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return fmt.Errorf("create state directory: %w", err)
		}
	}
	return nil
}

// Remove deletes all but what is useful afterwards: logs and programs. Nothing may be mounted in there any more.
func (d Dir) Remove() error {
	return errors.Join(
		os.RemoveAll(d.Data()), os.RemoveAll(d.Config()), os.RemoveAll(d.PKI()),
		os.RemoveAll(d.Kubeconfig()), os.RemoveAll(d.Runtime))
}
