package source

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"

	"tkestack.io/tapp/helm"
)

// maxChartfile bounds the Chart.yaml of an archive.
const maxChartfile = 256 << 10

// identity reads name and version from the Chart.yaml of an archive. All else in it is
// left to the process that renders it.
func identity(archive []byte) (name, version string, err error) {
	unpacked, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return "", "", errors.New("it is no archive of a chart: no gzip")
	}
	files := tar.NewReader(io.LimitReader(unpacked, helm.MaxUnpacked))
	for {
		header, err := files.Next()
		if err != nil {
			return "", "", errors.New("it is no archive of a chart: there is no Chart.yaml in it")
		}
		folder, file, ok := strings.Cut(header.Name, "/")
		if !ok || folder == "" || file != "Chart.yaml" {
			continue
		}
		raw, err := io.ReadAll(io.LimitReader(files, maxChartfile))
		if err != nil {
			return "", "", fmt.Errorf("reading its Chart.yaml: %w", err)
		}
		var content struct{ Name, Version string }
		if err := yaml.Unmarshal(raw, &content); err != nil || content.Name == "" || content.Version == "" {
			return "", "", errors.New("its Chart.yaml has no name or no version")
		}
		return content.Name, content.Version, nil
	}
}
