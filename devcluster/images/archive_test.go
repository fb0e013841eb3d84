package images

import (
	"archive/tar"
	"context"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func TestPushArchive(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")

	image, err := random.Image(100, 1)
	if err != nil {
		t.Fatal(err)
	}
	index, err := random.Index(100, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	for what, add := range map[string]func(layout.Path) error{
		"image": func(p layout.Path) error { return p.AppendImage(image) },
		"index": func(p layout.Path) error { return p.AppendIndex(index) },
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			path, err := layout.Write(dir, empty.Index)
			if err != nil {
				t.Fatal(err)
			}
			if err := add(path); err != nil {
				t.Fatal(err)
			}
			digest, err := PushArchive(context.Background(), host, archive(t, dir), []string{what + ":v1", "elsewhere.test/team/" + what + ":v2"})
			if err != nil {
				t.Fatal(err)
			}
			for _, reference := range []string{"library/" + what + ":v1", "team/" + what + ":v2"} {
				tag, err := name.NewTag(host+"/"+reference, name.Insecure)
				if err != nil {
					t.Fatal(err)
				}
				if have, err := remote.Head(tag); err != nil || have.Digest.String() != digest {
					t.Errorf("%s: %+v, %v; want %s", reference, have, err, digest)
				}
			}
		})
	}
}

func TestPushArchiveThatIsNone(t *testing.T) {
	empty := archive(t, t.TempDir())
	if _, err := PushArchive(context.Background(), "localhost:1", empty, []string{"x"}); err == nil || !strings.Contains(err.Error(), "is no archive in OCI layout") {
		t.Error(err)
	}
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("no archive"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := PushArchive(context.Background(), "localhost:1", text, []string{"x"}); err == nil || !strings.Contains(err.Error(), "unpack "+text) {
		t.Error(err)
	}
}

func archive(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "archive.tar")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(f)
	if err := w.AddFS(os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}
