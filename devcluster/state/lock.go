package state

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"tkestack.io/tapp/devcluster/poll"
)

// Lock waits until no other command works on the cluster. The kernel releases it if we die.
func (d Dir) Lock(ctx context.Context, waiting func()) (unlock func(), err error) {
	if err := os.MkdirAll(d.Root, 0o750); err != nil {
		return nil, fmt.Errorf("create state directory: %w", err)
	}
	return LockFile(ctx, filepath.Join(d.Root, "lock"), waiting)
}

// LockMachine waits until no command on another cluster of the user's does what name stands for.
func LockMachine(ctx context.Context, name string) (unlock func(), err error) {
	return LockFile(ctx, filepath.Join(os.TempDir(), fmt.Sprintf(".%s%s-%d.lock", Prefix, name, os.Geteuid())), func() {})
}

// LockFile locks the file at path, creating it if needed; it calls waiting once if somebody else holds the lock.
func LockFile(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	told := false
	err = poll.Until(ctx, "lock "+path, time.Hour, 200*time.Millisecond, func(context.Context) error {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR):
			return poll.Stop(err)
		case !told:
			told = true
			waiting()
		}
		return errors.New("held by another process")
	})
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil
}
