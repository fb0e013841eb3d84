package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"sigs.k8s.io/yaml"
)

// Media types of charts in registries: https://helm.sh/docs/topics/registries
const (
	chartConfig  types.MediaType = "application/vnd.cncf.helm.config.v1+json"
	chartContent types.MediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

var semver = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)

// chartVersion is that of the source, if it is a released one, or else a prerelease of the chart's own.
func (o options) chartVersion(own string) string {
	if version := strings.TrimPrefix(o.version, "v"); semver.MatchString(version) {
		return version
	}
	return own + "-g" + regexp.MustCompile(`[^0-9A-Za-z-]+`).ReplaceAllString(o.version, "-")
}

// writeChart packs the chart as `helm package` does, with the version of the source, and writes it as an OCI artifact, too, as
// `helm push` would make it.
func (o options) writeChart(temp string) (files []string, err error) {
	dir := filepath.Join(o.source, "chart")
	text, err := os.ReadFile(filepath.Join(dir, "Chart.yaml"))
	if err != nil {
		return nil, fmt.Errorf("chart: %w", err)
	}
	metadata := map[string]any{}
	if err := yaml.Unmarshal(text, &metadata); err != nil {
		return nil, fmt.Errorf("chart: %w", err)
	}
	own, _ := metadata["version"].(string)
	version := o.chartVersion(own)
	metadata["version"], metadata["appVersion"] = version, o.version
	if text, err = yaml.Marshal(metadata); err != nil {
		return nil, fmt.Errorf("chart: %w", err)
	}
	packed, err := packChart(dir, text)
	if err != nil {
		return nil, fmt.Errorf("chart: %w", err)
	}
	archive := filepath.Join(filepath.Dir(o.archive), "tapp-"+version+".tgz")
	if err := os.WriteFile(archive, packed, 0o644); err != nil { //nolint:gosec // to be given to others
		return nil, fmt.Errorf("chart: %w", err)
	}
	config, err := json.Marshal(metadata)
	if err != nil {
		return nil, fmt.Errorf("chart: %w", err)
	}
	image, err := mutate.AppendLayers(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), chartConfig), static.NewLayer(packed, chartContent))
	if err != nil {
		return nil, fmt.Errorf("chart: %w", err)
	}
	artifact := filepath.Join(filepath.Dir(o.archive), "tapp-chart-"+version+".oci.tar")
	oci := options{version: version, archive: artifact}
	if err := oci.writeImage(&artifactImage{Image: image, config: config}, filepath.Join(temp, "chart")); err != nil {
		return nil, err
	}
	return []string{archive, artifact}, nil
}

// packChart makes the archive, in the order of the names and without times.
func packChart(dir string, metadata []byte) ([]byte, error) {
	var out bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(zipped)
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(path, ".tgz") || strings.HasSuffix(path, "~") {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		content := metadata
		if name != "Chart.yaml" {
			if content, err = os.ReadFile(path); err != nil { //nolint:gosec // in our own directory
				return err
			}
		}
		if err := w.WriteHeader(header("tapp/"+filepath.ToSlash(name), tar.TypeReg, 0o644, int64(len(content)))); err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	})
	if err := errors.Join(err, w.Close(), zipped.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// artifactImage has a config that is no image's.
type artifactImage struct {
	v1.Image
	config []byte
}

// RawConfigFile implements v1.Image.
func (a *artifactImage) RawConfigFile() ([]byte, error) { return a.config, nil }

// ConfigName implements v1.Image.
func (a *artifactImage) ConfigName() (v1.Hash, error) {
	sum := sha256.Sum256(a.config)
	return v1.NewHash(fmt.Sprintf("sha256:%x", sum))
}

// Manifest implements v1.Image.
func (a *artifactImage) Manifest() (*v1.Manifest, error) {
	m, err := a.Image.Manifest()
	if err != nil {
		return nil, err
	}
	m = m.DeepCopy()
	if m.Config.Digest, err = a.ConfigName(); err != nil {
		return nil, err
	}
	m.Config.Size = int64(len(a.config))
	return m, nil
}

// RawManifest implements v1.Image.
func (a *artifactImage) RawManifest() ([]byte, error) {
	m, err := a.Manifest()
	if err != nil {
		return nil, err
	}
	return json.Marshal(m)
}

// Digest implements v1.Image.
func (a *artifactImage) Digest() (v1.Hash, error) {
	raw, err := a.RawManifest()
	if err != nil {
		return v1.Hash{}, err
	}
	return v1.NewHash(fmt.Sprintf("sha256:%x", sha256.Sum256(raw)))
}

// Size implements v1.Image.
func (a *artifactImage) Size() (int64, error) {
	raw, err := a.RawManifest()
	return int64(len(raw)), err
}

// writeChecksums lists the SHA-256 of files, as `sha256sum --check` reads it.
func writeChecksums(file string, of []string) error {
	slices.Sort(of)
	var out strings.Builder
	for _, path := range of {
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("checksum: %w", err)
		}
		fmt.Fprintf(&out, "%x  %s\n", sha256.Sum256(text), filepath.Base(path))
	}
	if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil { //nolint:gosec // to be given to others
		return fmt.Errorf("checksums: %w", err)
	}
	return nil
}
