package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// TestChart: the archive has the version of the source, and the artifact is what `helm pull` reads of a registry.
func TestChart(t *testing.T) {
	dir := t.TempDir()
	o := options{source: "../..", version: "v1.2.3", archive: filepath.Join(dir, "image.tar")}
	written, err := o.writeChart(dir)
	if err != nil {
		t.Fatal(err)
	}
	if names := filepath.Base(written[0]) + " " + filepath.Base(written[1]); names != "tapp-1.2.3.tgz tapp-chart-1.2.3.oci.tar" {
		t.Errorf("wrote %s", names)
	}
	packed := read(t, written[0])
	files := unpacked(t, packed)
	if text := files["tapp/Chart.yaml"]; !strings.Contains(text, "\nversion: 1.2.3\n") || !strings.Contains(text, "appVersion: v1.2.3\n") {
		t.Errorf("Chart.yaml is\n%s", text)
	}
	for _, name := range []string{"tapp/values.yaml", "tapp/values.schema.json", "tapp/templates/deployment.yaml", "tapp/files/crds/apps.tkestack.io_tapps.yaml"} {
		if files[name] == "" {
			t.Errorf("there is no %s", name)
		}
	}
	index, err := layout.ImageIndexFromPath(filepath.Join(dir, "chart"))
	if err != nil {
		t.Fatal(err)
	}
	list, err := index.IndexManifest()
	if err != nil || len(list.Manifests) != 1 || list.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "1.2.3" {
		t.Fatalf("the layout has %+v (%v)", list, err)
	}
	blob := func(h v1.Hash) []byte { return read(t, filepath.Join(dir, "chart", "blobs", h.Algorithm, h.Hex)) }
	var manifest v1.Manifest
	if err := json.Unmarshal(blob(list.Manifests[0].Digest), &manifest); err != nil {
		t.Fatal(err)
	}
	if manifest.Config.MediaType != chartConfig || len(manifest.Layers) != 1 || manifest.Layers[0].MediaType != chartContent {
		t.Errorf("the manifest is %+v", manifest)
	}
	if !bytes.Equal(blob(manifest.Layers[0].Digest), packed) {
		t.Error("the artifact has another archive")
	}
	var metadata struct{ Name, Version string }
	if err := json.Unmarshal(blob(manifest.Config.Digest), &metadata); err != nil || metadata.Name != "tapp" || metadata.Version != "1.2.3" {
		t.Errorf("the config is %+v (%v)", metadata, err)
	}
}

func unpacked(t *testing.T, packed []byte) map[string]string {
	t.Helper()
	zipped, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	out, r := map[string]string{}, tar.NewReader(zipped)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out[h.Name] = string(text)
	}
}

// TestChartVersion: a version that is none of a release becomes a prerelease that semver takes.
func TestChartVersion(t *testing.T) {
	for version, want := range map[string]string{
		"v1.2.3": "1.2.3", "1.2.3-rc.1": "1.2.3-rc.1", "0123456": "0.1.0-g0123456", "v1.2.3-4-gabc-dirty": "1.2.3-4-gabc-dirty", "1fcac46-dirty": "0.1.0-g1fcac46-dirty",
	} {
		if got := (options{version: version}).chartVersion("0.1.0"); got != want || !semver.MatchString(got) {
			t.Errorf("%s: %s, want %s", version, got, want)
		}
	}
}

// TestLicences: a module without a licence is an error.
func TestLicences(t *testing.T) {
	dir := t.TempDir()
	if err := addLicences(&bytes.Buffer{}, "m", dir); err == nil || err.Error() != "m has no file with a licence in "+dir {
		t.Errorf("got %v", err)
	}
	for _, name := range []string{"LICENSE-MIT", "NOTICE", "license_test.go", "README.md"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if err := addLicences(&out, "m", dir); err != nil {
		t.Fatal(err)
	}
	if want := "==== m: LICENSE-MIT ====\n\nLICENSE-MIT\n\n==== m: NOTICE ====\n\nNOTICE\n\n"; out.String() != want {
		t.Errorf("got %q", out.String())
	}
}
