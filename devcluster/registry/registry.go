// Package registry is the image registry of a cluster. Nodes, and whatever runs in their pods, read from it at an address of
// the network; who may use the directory of the cluster writes to it, by a Unix socket.
package registry

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
)

// Serve serves images, whose content is in dir, until ctx ends.
func Serve(ctx context.Context, address, socket, dir string) error {
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the socket of an earlier registry: %w", err)
	}
	images := registry.New(registry.WithBlobHandler(registry.NewDiskBlobHandler(dir)), registry.Logger(log.New(os.Stderr, "", log.LstdFlags)))
	ended := make(chan error, 2)
	for _, l := range []struct {
		network, address string
		handler          http.Handler
	}{{"unix", socket, images}, {"tcp", address, readOnly(images)}} {
		listener, err := (&net.ListenConfig{}).Listen(ctx, l.network, l.address)
		if err != nil {
			return fmt.Errorf("serve images: %w", err)
		}
		server := &http.Server{Handler: l.handler, ReadHeaderTimeout: 10 * time.Second}
		go func() { ended <- server.Serve(listener) }()
		defer func() { _ = server.Close() }()
	}
	select {
	case err := <-ended:
		return fmt.Errorf("serve images: %w", err)
	case <-ctx.Done():
		return nil
	}
}

// readOnly refuses whatever is no question.
func readOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "this registry takes no writes from the network", http.StatusMethodNotAllowed)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Transport reaches the registry by its socket, whatever address a request names.
func Transport(socket string) http.RoundTripper {
	return &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
}
