package engine_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"tkestack.io/tapp/helm"
	"tkestack.io/tapp/helm/engine"
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
	for name, text := range files {
		raw["web/"+name] = text
	}
	return pack(t, raw)
}

func pack(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
