package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/compression"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is "nonroot" of the usual small base images. It is a number, so that Kubernetes can tell that it is not root.
const user = "65532:65532"

// rootsFile is where Go looks for the roots of trust.
const rootsFile = "etc/ssl/certs/ca-certificates.crt"

// annotations describe the image, as https://github.com/opencontainers/image-spec/blob/main/annotations.md names them.
func (o options) annotations() map[string]string {
	a := map[string]string{
		"org.opencontainers.image.title":       "tapp",
		"org.opencontainers.image.description": "Runs applications whose instances have templates of their own on Kubernetes",
		"org.opencontainers.image.version":     o.version,
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.source":      "https://github.com/tkestack/tapp",
	}
	if o.revision != "" {
		a["org.opencontainers.image.revision"] = o.revision
	}
	return a
}

// index refers to the images of all platforms.
func (o options) index(programs []program) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range programs {
		image, err := o.image(p)
		if err != nil {
			return nil, fmt.Errorf("image for %s: %w", p.platform, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &p.platform}})
	}
	annotated, ok := mutate.Annotations(index, o.annotations()).(v1.ImageIndex)
	if !ok {
		return nil, fmt.Errorf("annotate the index: it became a %T", annotated)
	}
	return annotated, nil
}

func (o options) image(p program) (v1.Image, error) {
	roots, err := layer(file{name: rootsFile, mode: 0o644, content: rootsOfTrust()})
	if err != nil {
		return nil, fmt.Errorf("roots of trust: %w", err)
	}
	text, err := os.ReadFile(p.path)
	if err != nil {
		return nil, fmt.Errorf("program: %w", err)
	}
	tapp, err := layer(file{name: "tapp", mode: 0o755, content: text})
	if err != nil {
		return nil, fmt.Errorf("program: %w", err)
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	layers := []v1.Layer{roots}
	if len(o.licences) > 0 {
		texts, err := layer(file{name: licencesFile, mode: 0o644, content: o.licences})
		if err != nil {
			return nil, fmt.Errorf("licences: %w", err)
		}
		layers = append(layers, texts)
	}
	image, err := mutate.AppendLayers(base, append(layers, tapp)...)
	if err != nil {
		return nil, fmt.Errorf("add layers: %w", err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = p.platform.OS, p.platform.Architecture
	config.Config = v1.Config{
		Entrypoint: []string{"/tapp"},
		Env:        []string{"PATH=/", "SSL_CERT_FILE=/" + rootsFile},
		User:       user,
		WorkingDir: "/",
		Labels:     o.annotations(),
	}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return nil, fmt.Errorf("set the config: %w", err)
	}
	annotated, ok := mutate.Annotations(image, o.annotations()).(v1.Image)
	if !ok {
		return nil, fmt.Errorf("annotate: it became a %T", annotated)
	}
	return annotated, nil
}

// rootsOfTrust are those of Mozilla that a Go program would trust on a system without any: from the module that go.mod pins,
// not from this machine. Roots with a constraint cannot be written as PEM alone; those are left out.
func rootsOfTrust() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes all
		}
	}
	return out.Bytes()
}

// file is one of a layer.
type file struct {
	name    string
	mode    int64
	content []byte
}

// layer holds one file and the directories above it. Its compression is fixed by the version of the library.
func layer(f file) (v1.Layer, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	var above []string
	for dir := filepath.Dir(f.name); dir != "."; dir = filepath.Dir(dir) {
		above = append([]string{dir + "/"}, above...)
	}
	for _, dir := range above {
		if err := w.WriteHeader(header(dir, tar.TypeDir, 0o755, 0)); err != nil {
			return nil, err
		}
	}
	if err := w.WriteHeader(header(f.name, tar.TypeReg, f.mode, int64(len(f.content)))); err != nil {
		return nil, err
	}
	if _, err := w.Write(f.content); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(out.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer), tarball.WithCompression(compression.GZip), tarball.WithCompressedCaching)
}

// header of an entry of a tar file: of root, and of the beginning of time.
func header(name string, kind byte, mode, size int64) *tar.Header {
	return &tar.Header{Format: tar.FormatUSTAR, Name: name, Typeflag: kind, Mode: mode, Size: size, ModTime: time.Unix(0, 0)}
}

// writeArchive writes the index and all that it refers to as an OCI layout into dir, and that into the archive.
func (o options) writeArchive(index v1.ImageIndex, dir string) error {
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return fmt.Errorf("layout: %w", err)
	}
	if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": o.version})); err != nil {
		return fmt.Errorf("layout: %w", err)
	}
	return o.pack(dir)
}

// writeImage is writeArchive for what is no index.
func (o options) writeImage(image v1.Image, dir string) error {
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return fmt.Errorf("layout: %w", err)
	}
	if err := path.AppendImage(image, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": o.version})); err != nil {
		return fmt.Errorf("layout: %w", err)
	}
	return o.pack(dir)
}

// pack a directory into the archive.
func (o options) pack(dir string) error {
	out, err := os.Create(o.archive)
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	defer func() { _ = out.Close() }()
	w := tar.NewWriter(out)
	// In the order of the names.
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path) //nolint:gosec // in our own directory
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if err := w.WriteHeader(header(filepath.ToSlash(name), tar.TypeReg, 0o644, int64(len(content)))); err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	})
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	return nil
}
