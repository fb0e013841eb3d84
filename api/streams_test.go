package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/rest"

	"tkestack.io/tapp/api/access"
)

// streamsOf opens streams of the instances of a crowd.
type streamsOf struct {
	*crowd
	api   *API
	front *httptest.Server
}

// serveCrowd serves an API of a crowd, whose connections have small buffers where asked for.
func serveCrowd(t *testing.T, instances int, limits Limits, small bool) *streamsOf {
	t.Helper()
	s := &streamsOf{crowd: newCrowd(instances)}
	back := httptest.NewServer(s.crowd)
	var err error
	s.api, err = New(t.Context(), Options{Config: &rest.Config{Host: back.URL}, Authenticator: access.Loopback{Token: "t"}, Authorizer: access.Loopback{}, Registry: prometheus.NewRegistry(), Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	s.front = httptest.NewUnstartedServer(s.api)
	if small {
		s.front.Listener = smallBuffers{s.front.Listener}
	}
	s.front.Start()
	t.Cleanup(func() {
		s.front.CloseClientConnections()
		s.front.Close()
		s.api.Close()
		back.CloseClientConnections()
		back.Close()
	})
	return s
}

// smallBuffers take little of what nobody reads.
type smallBuffers struct{ net.Listener }

func (l smallBuffers) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if tcp, ok := conn.(*net.TCPConn); ok {
		return conn, errors.Join(err, tcp.SetWriteBuffer(16<<10))
	}
	return conn, err
}

const instancesPath = "/api/v1/namespaces/ns/tapps/big/instances?watch=1"

func (s *streamsOf) open(ctx context.Context) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.front.URL+instancesPath, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer t")
	return s.front.Client().Do(request)
}

// openSlowly opens a stream that takes nothing but what its small buffer has room for, and what
// the test reads.
func (s *streamsOf) openSlowly(t *testing.T) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.front.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if tcp, ok := conn.(*net.TCPConn); ok {
		if err := tcp.SetReadBuffer(16 << 10); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.WriteString(conn, "GET "+instancesPath+" HTTP/1.1\r\nHost: api\r\nAuthorization: Bearer t\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	return conn
}

// read until a text comes.
func read(body io.Reader, text string) error {
	lines := bufio.NewReader(body)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return fmt.Errorf("before %q came: %w", text, err)
		}
		if strings.Contains(line, text) {
			return nil
		}
	}
}

// TestThousandStreams: so many are served from one watch of the API server, all of them see a change,
// one more is refused, and nothing is counted when they have gone.
func TestThousandStreams(t *testing.T) {
	const most = 1000
	s := serveCrowd(t, 50, Limits{Streams: most, StreamsPerUser: most, RequestsPerSecond: 2 * most}, false)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	var open []*http.Response
	defer func() {
		for _, r := range open {
			_ = r.Body.Close()
		}
	}()
	for range most {
		response, err := s.open(ctx)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatal(response, err)
		}
		open = append(open, response)
	}
	if response, err := s.open(ctx); err != nil || response.StatusCode != http.StatusTooManyRequests || response.Header.Get("Retry-After") == "" {
		t.Errorf("one more: %v %v", response, err)
	} else {
		_ = response.Body.Close()
	}
	for id := range 20 {
		s.moved <- id
	}
	var reading sync.WaitGroup
	failed := make(chan error, most)
	for _, r := range open {
		reading.Go(func() {
			if err := read(r.Body, `"Pending":20`); err != nil {
				failed <- err
			}
		})
	}
	reading.Wait()
	close(failed)
	for err := range failed {
		t.Error(err)
	}
	if n := s.api.topics.Watches(); n != 2 {
		t.Errorf("there are %d watches, want those of TApps and of pods", n)
	}
	leave()
	if err := eventually(func() error {
		if n := s.api.streams.Count(); n != 0 {
			return fmt.Errorf("%d streams are counted", n)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// TestSlowReader: one that takes nothing is dropped, and harms no other.
func TestSlowReader(t *testing.T) {
	s := serveCrowd(t, manyInstances, Limits{Write: 200 * time.Millisecond}, true)
	s.openSlowly(t)
	other, err := s.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Body.Close() }()
	seen := make(chan error, 1)
	go func() { seen <- read(other.Body, `"Pending":1`) }()
	if err := eventually(func() error {
		if n := testutil.ToFloat64(s.api.metrics.ended.WithLabelValues("slow")); n != 1 {
			return fmt.Errorf("%v streams were dropped for being slow", n)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	s.moved <- 0
	if err := <-seen; err != nil {
		t.Errorf("the other one: %v", err)
	}
	if n := s.api.streams.Count(); n != 1 {
		t.Errorf("%d streams are counted, want 1", n)
	}
}
