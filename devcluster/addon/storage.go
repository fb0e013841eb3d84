package addon

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"tkestack.io/tapp/devcluster/pki"
	"tkestack.io/tapp/devcluster/process"
	"tkestack.io/tapp/devcluster/slot"
	"tkestack.io/tapp/devcluster/storage"
)

// EnsureStorage makes claims get volumes: it creates the storage classes, and starts what provisions.
func (a Addons) EnsureStorage(ctx context.Context) error {
	if err := a.apply(ctx, "", storage.Classes); err != nil {
		return fmt.Errorf("apply storage classes: %w", err)
	}
	return a.StartStorage(ctx)
}

// StartStorage starts what provisions, and waits until its caches are filled.
func (a Addons) StartStorage(ctx context.Context) error {
	root := a.Dir.Data("volumes")
	if err := os.MkdirAll(root, 0o750); err != nil {
		return fmt.Errorf("start %s: %w", Storage, err)
	}
	address := "127.0.0.1:" + strconv.Itoa(a.Slot.Port(slot.Storage))
	_, err := a.Processes.Ensure(ctx, process.Spec{
		Name: Storage, Path: filepath.Join(a.Dir.Bin(), "storage"),
		Args: []string{"--kubeconfig=" + a.PKI.Kubeconfig(pki.Storage), "--root=" + root, "--health=" + address},
	})
	if err != nil {
		return err
	}
	return a.waitHTTP(ctx, Storage, "http://"+address+"/readyz", time.Minute)
}
