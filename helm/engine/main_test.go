package engine_test

import (
	"fmt"
	"maps"
	"os"
	"testing"

	"tkestack.io/tapp/helm"
	"tkestack.io/tapp/helm/engine"
	"tkestack.io/tapp/test/gen"
)

// TestMain lets this program be the child process, as main does.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == helm.Command {
		if err := engine.Serve(os.Stdin, os.Stdout, os.Stderr); err != nil {
			fmt.Fprintln(os.Stderr, "Error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// archive packs files as a chart; a chart without Chart.yaml gets one.
func archive(t testing.TB, files map[string]string) []byte {
	t.Helper()
	raw := map[string]string{"web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.2.3\n"}
	maps.Copy(raw, gen.Below("web", files))
	return gen.Archive(t, raw)
}
