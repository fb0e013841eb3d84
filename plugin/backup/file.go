package backup

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// writeFile has a function write a file that nobody else can read. It takes the place of one
// of the name when all of it is written.
func writeFile(name string, write func(io.Writer) error) error {
	made, err := os.CreateTemp(filepath.Dir(name), ".tapp-backup-*") // of mode 0600
	if err != nil {
		return fmt.Errorf("writing the backup: %w", err)
	}
	if err := write(made); err != nil {
		return errors.Join(err, made.Close(), os.Remove(made.Name()))
	}
	if err := errors.Join(made.Sync(), made.Close()); err != nil {
		return errors.Join(fmt.Errorf("writing the backup: %w", err), os.Remove(made.Name()))
	}
	if err := os.Rename(made.Name(), name); err != nil {
		return errors.Join(fmt.Errorf("writing the backup: %w", err), os.Remove(made.Name()))
	}
	return nil
}
