package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"tkestack.io/tapp/devcluster/slot"
)

// Record is what was started, as far as it cannot be read from the cluster itself.
type Record struct {
	Root      string    `json:"root"` // the state directory
	Slot      slot.Slot `json:"slot"`
	Nodes     int       `json:"nodes"`     // real nodes; 0 = simulated nodes only
	Simulated int       `json:"simulated"` // simulated nodes
	// Kubernetes is the minor version of the control plane; empty: the usual one.
	Kubernetes string `json:"kubernetes,omitempty"`
	// APIOnly tells that there are no nodes, and nothing but etcd and the API server.
	APIOnly bool `json:"apiOnly,omitempty"`
	// CertManager tells whether cert-manager belongs to the cluster.
	CertManager bool `json:"certManager,omitempty"`
	// MetricsServer tells whether metrics-server does.
	MetricsServer bool `json:"metricsServer,omitempty"`
	// NodeGrace is how long a node may be silent; 0: as usual.
	NodeGrace time.Duration `json:"nodeGrace,omitempty"`
	Boot      string        `json:"boot"` // nothing of an earlier boot of the machine is alive
}

const recordFile = "cluster.json"

// Load returns the record, and false if there is none.
func (d Dir) Load() (Record, bool, error) {
	return load(filepath.Join(d.Runtime, recordFile))
}

func load(path string) (Record, bool, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, false, nil
	}
	if err != nil {
		return Record{}, false, fmt.Errorf("read record of the cluster: %w", err)
	}
	var r Record
	if err := json.Unmarshal(data, &r); err != nil {
		return Record{}, false, fmt.Errorf("read record of the cluster %s: %w", path, err)
	}
	return r, true, nil
}

// Save writes the record.
func (d Dir) Save(r Record) error {
	r.Root = d.Root
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("write record of the cluster: %w", err)
	}
	return WriteFile(filepath.Join(d.Runtime, recordFile), append(data, '\n'), 0o644)
}

// Taken returns the slots of all other clusters that we can see on this machine.
func (d Dir) Taken() map[slot.Slot]bool {
	taken := map[slot.Slot]bool{}
	for _, base := range []string{"/var/lib", os.TempDir()} {
		paths, _ := filepath.Glob(filepath.Join(base, Prefix+"????????", recordFile))
		for _, path := range paths {
			if filepath.Dir(path) == d.Runtime {
				continue
			}
			// Another user's record is unreadable: his ports tell us of him.
			if r, ok, err := load(path); ok && err == nil {
				taken[r.Slot] = true
			}
		}
	}
	return taken
}

// Preferred is the slot that this cluster would like: the same every time.
func (d Dir) Preferred() slot.Slot {
	var n uint32
	_, _ = fmt.Sscanf(d.ID, "%08x", &n)
	return slot.Slot(n % slot.Count)
}

// WriteFile replaces a file as a whole: a reader, or a crash, sees the old or the new content.
func WriteFile(path string, data []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(mode), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(f.Name()))
	}
	return nil
}
