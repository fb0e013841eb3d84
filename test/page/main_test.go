//go:build cluster

package page

import (
	"context"
	"fmt"
	"os"
	"testing"
)

// suite is what the tests share.
var suite struct{ browser context.Context }

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	browser, stop, err := chromium(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, "page tests:", err)
		return 1
	}
	defer stop()
	suite.browser = browser
	return m.Run()
}
