package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

var architectures = []string{"amd64", "arm64"}

// build makes both files, with this test in the place of the program.
func build(t *testing.T) (options, v1.ImageIndex) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	o := options{version: "v1.2.3", revision: "abc", archive: filepath.Join(dir, "image.tar"), sbom: filepath.Join(dir, "sbom.json")}
	var programs []program
	for _, architecture := range architectures {
		programs = append(programs, program{platform: v1.Platform{OS: "linux", Architecture: architecture}, path: self})
	}
	index, err := o.index(programs)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.writeArchive(index, filepath.Join(dir, "layout")); err != nil {
		t.Fatal(err)
	}
	if err := o.writeSBOM(programs); err != nil {
		t.Fatal(err)
	}
	written, err := layout.ImageIndexFromPath(filepath.Join(dir, "layout"))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(written); err != nil {
		t.Fatal(err)
	}
	return o, index
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestEqualSourcesGiveEqualFiles(t *testing.T) {
	one, _ := build(t)
	two, _ := build(t)
	if !bytes.Equal(read(t, one.archive), read(t, two.archive)) || !bytes.Equal(read(t, one.sbom), read(t, two.sbom)) {
		t.Error("they differ")
	}
}

func TestImage(t *testing.T) {
	_, index := build(t)
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Manifests) != len(architectures) || manifest.Annotations["org.opencontainers.image.version"] != "v1.2.3" {
		t.Errorf("%+v", manifest)
	}
	for i, d := range manifest.Manifests {
		if d.Platform.String() != "linux/"+architectures[i] {
			t.Errorf("%d: %s", i, d.Platform)
		}
		image, err := index.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		c := config.Config
		if c.User != "65532:65532" || c.Entrypoint[0] != "/tapp" || c.Labels["org.opencontainers.image.revision"] != "abc" || !config.Created.IsZero() {
			t.Errorf("%+v", config)
		}
		if got := files(t, image); len(got) != 2 || got["tapp"] != 0o755 || got[rootsFile] != 0o644 {
			t.Errorf("files: %v", got)
		}
	}
}

// files are the modes of those in all layers.
func files(t *testing.T, image v1.Image) map[string]int64 {
	t.Helper()
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int64{}
	for _, l := range layers {
		stream, err := l.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		for r := tar.NewReader(stream); ; {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if h.Typeflag == tar.TypeReg {
				found[h.Name] = h.Mode
			}
		}
		_ = stream.Close()
	}
	return found
}

func TestSBOM(t *testing.T) {
	o, _ := build(t)
	var bom cyclonedx.BOM
	if err := json.Unmarshal(read(t, o.sbom), &bom); err != nil {
		t.Fatal(err)
	}
	if bom.Metadata.Component.Version != "v1.2.3" || len(*bom.Metadata.Component.Components) != len(architectures) {
		t.Errorf("%+v", bom.Metadata.Component)
	}
	found := map[string]bool{}
	for _, c := range *bom.Components {
		if c.PackageURL != "pkg:golang/"+c.Name+"@"+c.Version || c.Name != "std" && c.Hashes == nil {
			t.Errorf("%+v", c)
		}
		found[c.Name] = true
	}
	for _, name := range []string{"std", rootsModule, "github.com/google/go-containerregistry"} {
		if !found[name] {
			t.Errorf("%s is not in it", name)
		}
	}
}

// A program that has become too large is no release.
func TestLargest(t *testing.T) {
	p := program{platform: v1.Platform{OS: "linux", Architecture: "arm64"}, path: filepath.Join(t.TempDir(), "tapp")}
	if err := os.WriteFile(p.path, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, largest := range []int64{0, 5} {
		if err := (options{largest: largest}).judge(p); err != nil {
			t.Errorf("of %d: %v", largest, err)
		}
	}
	if err := (options{largest: 4}).judge(p); err == nil || err.Error() != "the program for linux/arm64 has 5 bytes, and may have 4: something large was linked" {
		t.Error(err)
	}
}
