package images

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// PushArchive pushes the image, or the images for several platforms, of an archive in OCI layout to the registry (host:port,
// plain HTTP) under every given name, and returns the digest.
func PushArchive(ctx context.Context, registry, archive string, references []string, options ...remote.Option) (string, error) {
	dir, err := os.MkdirTemp("", "devcluster-push-*")
	if err != nil {
		return "", fmt.Errorf("unpack %s: %w", archive, err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := unpack(archive, dir); err != nil {
		return "", fmt.Errorf("unpack %s: %w", archive, err)
	}
	content, err := open(dir)
	if err != nil {
		return "", fmt.Errorf("%s is no archive in OCI layout: %w", archive, err)
	}
	digest, err := content.Digest()
	if err != nil {
		return "", fmt.Errorf("digest of %s: %w", archive, err)
	}
	for _, reference := range references {
		tag, err := name.NewTag(registry+"/"+repository(reference), name.Insecure)
		if err != nil {
			return "", fmt.Errorf("name %s: %w", reference, err)
		}
		if err := content.write(tag, append(options, remote.WithContext(ctx))...); err != nil {
			return "", fmt.Errorf("push %s to %s: %w", reference, registry, err)
		}
	}
	return digest.String(), nil
}

// content is an image, or an index of such.
type content interface {
	Digest() (v1.Hash, error)
	write(name.Tag, ...remote.Option) error
}

type single struct{ v1.Image }

func (s single) write(tag name.Tag, o ...remote.Option) error {
	return remote.Write(tag, s.Image, o...)
}

type several struct{ v1.ImageIndex }

func (s several) write(tag name.Tag, o ...remote.Option) error {
	return remote.WriteIndex(tag, s.ImageIndex, o...)
}

// open returns the one thing that is in the layout, or if there are several, all of them.
func open(dir string) (content, error) {
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	if len(manifest.Manifests) != 1 {
		return several{index}, nil
	}
	only := manifest.Manifests[0]
	if only.MediaType.IsIndex() {
		nested, err := index.ImageIndex(only.Digest)
		return several{nested}, err
	}
	image, err := index.Image(only.Digest)
	return single{image}, err
}

// unpack writes the files of an archive into dir; os.Root keeps them there.
func unpack(archive, dir string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	reader := tar.NewReader(file)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		if err := write(root, header.Name, reader); err != nil {
			return err
		}
	}
}

func write(root *os.Root, path string, content io.Reader) error {
	if err := root.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := root.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Close())
}
