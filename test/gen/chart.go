package gen

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"slices"
	"testing"
)

// Archive packs files by their paths, as `helm package` packs a chart.
func Archive(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := pack(&out, files); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func pack(to *bytes.Buffer, files map[string]string) error {
	zip := gzip.NewWriter(to)
	archive := tar.NewWriter(zip)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name]))}); err != nil {
			return fmt.Errorf("packing %s: %w", name, err)
		}
		if _, err := archive.Write([]byte(files[name])); err != nil {
			return fmt.Errorf("packing %s: %w", name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("packing: %w", err)
	}
	return zip.Close()
}

// Below puts files into a folder, such as that of a chart.
func Below(folder string, files map[string]string) map[string]string {
	out := make(map[string]string, len(files))
	for name, text := range files {
		out[folder+"/"+name] = text
	}
	return out
}
