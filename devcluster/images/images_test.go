package images

import (
	"archive/tar"
	"bytes"
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
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func TestPush(t *testing.T) {
	var requests bytes.Buffer
	server := httptest.NewServer(registry.New(registry.Logger(log.New(&requests, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	coreDNS := filepath.Join(t.TempDir(), "addons")
	if err := os.WriteFile(coreDNS, bytes.Repeat([]byte("dns"), 1000), 0o755); err != nil {
		t.Fatal(err)
	}
	var lines []string
	o := Options{Registry: host, CacheDir: t.TempDir(), ModuleDir: "..", Addons: coreDNS, Log: func(s string) { lines = append(lines, s) }}
	if err := Push(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	if len(lines) != 3 {
		t.Errorf("first time: %q", lines)
	}

	digests := map[string]v1.Hash{}
	for _, reference := range References(true) {
		tag, err := name.NewTag(host+"/"+repository(reference), name.Insecure)
		if err != nil {
			t.Fatal(err)
		}
		image, err := remote.Image(tag)
		if err != nil {
			t.Fatalf("%s: %v", reference, err)
		}
		checkLayer(t, image)
		digests[reference], _ = image.Digest()
		config, err := image.ConfigFile()
		if err != nil || config.OS != "linux" || config.Architecture == "" || strings.Trim(config.Config.User, "0123456789") != "" {
			t.Errorf("%s: config %+v, %v", reference, config, err)
		}
	}
	seen := map[v1.Hash]string{}
	for reference, digest := range digests {
		if other, found := seen[digest]; found && !strings.HasPrefix(other+reference, DemoV1) {
			t.Errorf("%s and %s are the same", reference, other)
		}
		seen[digest] = reference
	}
	if digests[DemoV1] != digests[DemoV1Same] || len(seen) != len(digests)-1 {
		t.Error("demo:v1 and demo:v1-same are the one pair of equal digests")
	}

	// Again, from a new cache: nothing is new.
	requests.Reset()
	lines, o.CacheDir = nil, t.TempDir()
	if err := Push(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	if lines[len(lines)-1] != "images: 0 pushed" || strings.Contains(requests.String(), "PUT") {
		t.Errorf("second time: %q\n%s", lines, requests.String())
	}
	lines = nil
	if err := Push(context.Background(), o); err != nil || len(lines) != 1 {
		t.Errorf("third time: %q, %v", lines, err)
	}
}

// checkLayer reads the one layer back, as a node does.
func checkLayer(t *testing.T, image v1.Image) {
	t.Helper()
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatal(layers, err)
	}
	stream, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Close() }()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if got, _, err := v1.SHA256(stream); err != nil || got != config.RootFS.DiffIDs[0] {
		t.Errorf("layer %s, %v; the config says %s", got, err, config.RootFS.DiffIDs[0])
	}
}

func TestLayerIsATarStream(t *testing.T) {
	for _, size := range []int{0, 1, 512, 513} {
		path := filepath.Join(t.TempDir(), "x")
		content := bytes.Repeat([]byte("x"), size)
		if err := os.WriteFile(path, content, 0o755); err != nil {
			t.Fatal(err)
		}
		l, err := newLayer(path, "bin/x")
		if err != nil {
			t.Fatal(err)
		}
		stream, err := l.Compressed()
		if err != nil {
			t.Fatal(err)
		}
		r := tar.NewReader(stream)
		var names []string
		for {
			h, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, h.Name)
			if got, err := io.ReadAll(r); err != nil || h.Name == "bin/x" && !bytes.Equal(got, content) {
				t.Errorf("%d bytes of content, %v", len(got), err)
			}
		}
		if strings.Join(names, " ") != "tmp/ bin/x" || l.size%512 != 0 {
			t.Errorf("%q in %d bytes", names, l.size)
		}
		if err := stream.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestRepository(t *testing.T) {
	for reference, want := range map[string]string{
		"nginx:1.7.9": "library/nginx:1.7.9", Pause: "pause:3.10", CoreDNS: "coredns/coredns:v1.15.0",
		"tkestack/x:1": "tkestack/x:1", "localhost/x:1": "x:1", "r:5000/x:1": "x:1",
	} {
		if got := repository(reference); got != want {
			t.Errorf("%s: %s, want %s", reference, got, want)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	err := Push(context.Background(), Options{Registry: "localhost:1"})
	if err == nil || !strings.Contains(err.Error(), "CacheDir") || !strings.Contains(err.Error(), "ModuleDir") {
		t.Error(err)
	}
	o := Options{Registry: "localhost:1", CacheDir: t.TempDir(), ModuleDir: t.TempDir()}
	if err := Push(context.Background(), o); err == nil || !strings.Contains(err.Error(), Pause) {
		t.Error(err)
	}
}
