package images

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// layer is a tar stream of one executable and an empty /tmp. It is read from the executable each time: the largest has
// 100 MB. It is not compressed: it never leaves the machine, and to compress costs more than to copy.
type layer struct {
	path, name string // the executable, here and in the image
	head, tail []byte // of the tar stream
	size       int64
	digest     v1.Hash
}

var _ v1.Layer = (*layer)(nil)

func newLayer(path, name string) (*layer, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("program: %w", err)
	}
	var head bytes.Buffer
	w := tar.NewWriter(&head)
	for _, h := range []*tar.Header{
		{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777},
		{Typeflag: tar.TypeReg, Name: name, Mode: 0o755, Size: info.Size()},
	} {
		h.Format, h.ModTime = tar.FormatUSTAR, time.Unix(0, 0)
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("layer of %s: %w", path, err)
		}
	}
	const block = 512
	padding := (block - info.Size()%block) % block
	l := &layer{path: path, name: name, head: head.Bytes(), tail: make([]byte, padding+2*block)} // two empty blocks end a tar stream
	stream, err := l.Uncompressed()
	if err != nil {
		return nil, err
	}
	defer func() { _ = stream.Close() }()
	if l.digest, l.size, err = v1.SHA256(stream); err != nil {
		return nil, fmt.Errorf("hash %s: %w", path, err)
	}
	return l, nil
}

func (l *layer) Digest() (v1.Hash, error)            { return l.digest, nil }
func (l *layer) DiffID() (v1.Hash, error)            { return l.digest, nil }
func (l *layer) Size() (int64, error)                { return l.size, nil }
func (l *layer) MediaType() (types.MediaType, error) { return types.OCIUncompressedLayer, nil }
func (l *layer) Compressed() (io.ReadCloser, error)  { return l.Uncompressed() }
func (l *layer) Uncompressed() (io.ReadCloser, error) {
	file, err := os.Open(l.path)
	if err != nil {
		return nil, fmt.Errorf("program: %w", err)
	}
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(l.head), file, bytes.NewReader(l.tail)), file}, nil
}
