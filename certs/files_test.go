package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// mount is a directory as a kubelet mounts a Secret: the files are links into
// ..data, which is a link to a directory that is exchanged as a whole.
type mount struct {
	dir   string
	count int
}

func (m *mount) put(t *testing.T, files map[string][]byte) {
	t.Helper()
	m.count++
	version := fmt.Sprintf("..version-%d", m.count)
	if err := os.Mkdir(filepath.Join(m.dir, version), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(m.dir, version, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
		if m.count == 1 {
			if err := os.Symlink(filepath.Join("..data", name), filepath.Join(m.dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	old, _ := os.Readlink(filepath.Join(m.dir, "..data"))
	if err := os.Symlink(version, filepath.Join(m.dir, "..data_tmp")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(m.dir, "..data_tmp"), filepath.Join(m.dir, "..data")); err != nil {
		t.Fatal(err)
	}
	if old != "" {
		if err := os.RemoveAll(filepath.Join(m.dir, old)); err != nil {
			t.Fatal(err)
		}
	}
}

func (m *mount) options() FileOptions {
	return FileOptions{
		CertFile: filepath.Join(m.dir, "tls.crt"), KeyFile: filepath.Join(m.dir, "tls.key"), CAFile: filepath.Join(m.dir, "ca.crt"),
		Every: 2 * time.Millisecond,
	}
}

// serve answers requests with the certificates of s until the test ends.
func serve(t *testing.T, s *Source) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{
		TLSConfig: TLSConfig(s.GetCertificate), ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }),
	}
	ctx, cancel := context.WithCancel(t.Context())
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.Run(ctx) })
	group.Go(func() error { return server.ServeTLS(listener, "", "") })
	t.Cleanup(func() {
		cancel()
		_ = server.Close()
		if err := group.Wait(); err != nil && !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

func client(address string, roots *x509.CertPool, fresh bool) *http.Client {
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots, ServerName: hostname, MinVersion: tls.VersionTLS13},
		DisableKeepAlives: fresh, ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
	}}
}

// wait until check is true.
func wait(t *testing.T, what string, check func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(3 * time.Minute)
	for !check() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

func TestFilesAreExchangedWithoutAFailedRequest(t *testing.T) {
	now := time.Now()
	authority := newCA(t, "test", now.Add(-time.Hour), now.Add(time.Hour))
	m := &mount{dir: t.TempDir()}
	put := func(serial int64) {
		certificate, key := authority.issue(t, serial, time.Now().Add(-time.Second), time.Now().Add(10*time.Second))
		m.put(t, map[string][]byte{"tls.crt": certificate, "tls.key": key, "ca.crt": authority.pem})
	}
	put(1)
	source, err := Files(m.options())
	if err != nil {
		t.Fatal(err)
	}
	address := serve(t, source)
	wait(t, "there is a certificate", source.Ready)

	roots := x509.NewCertPool()
	roots.AddCert(authority.Certificate)
	ctx, stop := context.WithCancel(t.Context())
	var requests atomic.Int64
	group := errgroup.Group{}
	for i := range 16 {
		group.Go(func() error {
			c := client(address, roots, i%2 == 0)
			defer c.CloseIdleConnections()
			for ctx.Err() == nil {
				response, err := c.Get("https://" + hostname + "/")
				if err != nil {
					return err
				}
				if _, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK || i%2 == 1 && response.ProtoMajor != 2 {
					return fmt.Errorf("%s by HTTP/%d: %w", response.Status, response.ProtoMajor, err)
				}
				_ = response.Body.Close()
				requests.Add(1)
			}
			return nil
		})
	}
	served := func() int64 {
		c, err := source.GetCertificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		return c.Leaf.SerialNumber.Int64()
	}
	for serial := int64(2); serial <= 30; serial++ {
		put(serial)
		before := requests.Load()
		wait(t, "the new certificate is served", func() bool { return served() == serial })
		wait(t, "requests were answered with it", func() bool { return requests.Load() >= before+32 || ctx.Err() != nil })
	}
	stop()
	if err := group.Wait(); err != nil {
		t.Errorf("after %d requests: %v", requests.Load(), err)
	}
}

func TestFilesThatAreOfNoUse(t *testing.T) {
	now := time.Now()
	one, other := newCA(t, "one", now.Add(-time.Hour), now.Add(time.Hour)), newCA(t, "other", now.Add(-time.Hour), now.Add(time.Hour))
	certificate, key := one.issue(t, 1, now.Add(-time.Hour), now.Add(time.Hour))
	_, otherKey := one.issue(t, 2, now, now)
	for name, c := range map[string]struct {
		certificate, key, ca []byte
		want                 string
	}{
		"good":          {certificate, key, one.pem, ""},
		"no file":       {nil, key, one.pem, "--tlsCertFile DIR/tls.crt with --tlsKeyFile DIR/tls.key: open DIR/tls.crt: no such file or directory"},
		"no PEM":        {[]byte("x"), key, one.pem, "--tlsCertFile DIR/tls.crt with --tlsKeyFile DIR/tls.key: tls: failed to find any PEM data in certificate input"},
		"another key":   {certificate, otherKey, one.pem, "--tlsCertFile DIR/tls.crt with --tlsKeyFile DIR/tls.key: tls: private key does not match public key"},
		"swapped":       {key, certificate, one.pem, "--tlsCertFile DIR/tls.crt with --tlsKeyFile DIR/tls.key: tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched"},
		"no CA":         {certificate, key, nil, "--tlsCAFile: open DIR/ca.crt: no such file or directory"},
		"CA is no PEM":  {certificate, key, []byte("x"), "--tlsCAFile DIR/ca.crt: there is no certificate in it"},
		"of another CA": {certificate, key, other.pem, "--tlsCAFile DIR/ca.crt is not what signed the certificate: x509: certificate signed by unknown authority"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &mount{dir: t.TempDir()}
			files := map[string][]byte{}
			for file, content := range map[string][]byte{"tls.crt": c.certificate, "tls.key": c.key, "ca.crt": c.ca} {
				if content != nil {
					files[file] = content
				}
			}
			m.put(t, files)
			_, err := Files(m.options())
			got := ""
			if err != nil {
				got = strings.ReplaceAll(err.Error(), m.dir, "DIR")
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestFilesThatGoBadLeaveWhatIsServed(t *testing.T) {
	now := time.Now()
	authority := newCA(t, "test", now.Add(-time.Hour), now.Add(time.Hour))
	m := &mount{dir: t.TempDir()}
	put := func(serial int64, spoil bool) {
		certificate, key := authority.issue(t, serial, now.Add(-time.Hour), now.Add(time.Hour))
		if spoil {
			key = []byte("x")
		}
		m.put(t, map[string][]byte{"tls.crt": certificate, "tls.key": key, "ca.crt": authority.pem})
	}
	put(1, false)
	source, err := Files(m.options())
	if err != nil {
		t.Fatal(err)
	}
	serve(t, source)
	wait(t, "there is a certificate", source.Ready)
	put(2, true)
	put(3, false)
	wait(t, "the good one is served", func() bool {
		c, err := source.GetCertificate(nil)
		if err != nil || c.Leaf.SerialNumber.Int64() == 2 {
			t.Fatal("the bad one is served, or none: ", err)
		}
		return c.Leaf.SerialNumber.Int64() == 3
	})
}
