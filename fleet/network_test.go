package fleet

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// TestReceived: a member whose answer nobody reads yet can send so much of it and no more.
func TestReceived(t *testing.T) {
	type sent struct {
		bytes int
		err   error
	}
	done := make(chan sent, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		// It is cut off here once it cannot go on; a server that can send all of it never gets there.
		if err := control.SetWriteDeadline(time.Now().Add(2 * time.Second)); err != nil {
			done <- sent{err: err}
			return
		}
		all := sent{}
		for chunk := make([]byte, 4<<10); all.bytes < 64*received && all.err == nil; {
			var n int
			n, all.err = w.Write(chunk)
			all.bytes += n
		}
		done <- all
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()

	over := newWires(true)
	transport, err := over.Transport(&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, Dial: over.Dial})
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	// The server keeps some, too, before it hands it on.
	if got := <-done; !errors.Is(got.err, os.ErrDeadlineExceeded) || got.bytes > received+64<<10 || response.ProtoMajor != 2 {
		t.Errorf("HTTP/%d: sent %d bytes, then %v", response.ProtoMajor, got.bytes, got.err)
	}
}
