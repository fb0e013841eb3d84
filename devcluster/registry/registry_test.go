package registry

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"tkestack.io/tapp/devcluster/poll"
)

// TestServe: writes pass by the socket only, and what they wrote is read at the address.
func TestServe(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address, dir := l.Addr().String(), t.TempDir()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "s")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, address, socket, dir) }()
	err = poll.Until(t.Context(), "registry", time.Minute, 10*time.Millisecond, func(context.Context) error {
		response, err := http.Get("http://" + address + "/v2/")
		if err != nil {
			return err
		}
		return response.Body.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
	image, err := random.Image(100, 1)
	if err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(address+"/library/nginx:1.8.3", name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(tag, image); err == nil {
		t.Error("the network can write")
	}
	if _, err := remote.Head(tag); err == nil {
		t.Error("something was written")
	}
	if err := remote.Write(tag, image, remote.WithTransport(Transport(socket))); err != nil {
		t.Fatal(err)
	}
	want, _ := image.Digest()
	if got, err := remote.Head(tag); err != nil || got.Digest != want {
		t.Errorf("%v, %v", got, err)
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		request, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+"/v2/library/nginx/manifests/1.8.3", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: %s, %v", method, response.Status, err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
