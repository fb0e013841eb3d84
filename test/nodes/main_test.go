//go:build cluster

package nodes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	code, err := runSuite(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "nodes:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func runSuite(m *testing.M) (code int, err error) {
	if err := connect(); err != nil {
		return 1, err
	}
	stop, err := startController(context.Background())
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	return m.Run(), nil
}
