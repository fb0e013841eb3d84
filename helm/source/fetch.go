package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"
)

const (
	maxRedirects = 5
	maxHeader    = 64 << 10
)

// client makes connections for one repository, whose credentials are for one host.
func (s *Source) client(r *Repository, host string) (*http.Client, error) {
	config, err := r.tls()
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second, ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		return s.judge(address)
	}}
	transport := &http.Transport{
		DialContext: dialer.DialContext, TLSClientConfig: config, TLSHandshakeTimeout: 10 * time.Second,
		ForceAttemptHTTP2: true, MaxResponseHeaderBytes: maxHeader, MaxIdleConnsPerHost: 1, IdleConnTimeout: 10 * time.Second,
	}
	if s.options.AllowPrivate {
		transport.Proxy = http.ProxyFromEnvironment
	}
	return &http.Client{Transport: &guard{next: transport, repository: r, host: host, others: r.others}, CheckRedirect: checkRedirect}, nil
}

func checkRedirect(next *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	if next.URL.Scheme != "https" && via[len(via)-1].URL.Scheme == "https" {
		return fmt.Errorf("a redirect from https to %s", place(next.URL))
	}
	return nil
}

// guard adds the repository's credentials to requests for its host, and takes any
// others' away.
type guard struct {
	next       http.RoundTripper
	repository *Repository
	host       string
	others     repositories
}

func (g *guard) RoundTrip(request *http.Request) (*http.Response, error) {
	own := strings.EqualFold(request.URL.Host, g.host)
	switch sent := request.Header.Get("Authorization"); {
	case !own && strings.HasPrefix(sent, "Basic "):
		// A registry whose tokens come from another host.
		there := g.others.atHost(request.URL.Host)
		if there == nil || there.Username == "" {
			return nil, fmt.Errorf("%s gives the tokens of %s, and credentials go to no other host: give it an entry of its own in the repositories file", request.URL.Host, g.host)
		}
		request = request.Clone(request.Context())
		request.SetBasicAuth(there.Username, there.Password)
	case !own && sent != "":
		request = request.Clone(request.Context())
		request.Header.Del("Authorization")
	case own && sent == "" && g.repository.Username != "" && request.URL.Scheme == "https" && !strings.HasPrefix(g.repository.URL, "oci://"):
		// A registry is asked by oras, which answers its challenge.
		request = request.Clone(request.Context())
		request.SetBasicAuth(g.repository.Username, g.repository.Password)
	}
	return g.next.RoundTrip(request)
}

func (g *guard) CloseIdleConnections() {
	if c, ok := g.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// get fetches a body of at most so many bytes.
func get(ctx context.Context, client *http.Client, target *url.URL, most int64) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, errors.New("it is no URL")
	}
	request.Header.Set("User-Agent", "tapp")
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", place(target), bare(err))
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: the server says %d %s", place(target), response.StatusCode, http.StatusText(response.StatusCode))
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, most+1))
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", place(target), bare(err))
	}
	if int64(len(body)) > most {
		return nil, fmt.Errorf("GET %s: it has more than %d bytes", place(target), most)
	}
	return body, nil
}

// place is a URL without what may be secret in it.
func place(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// bare takes the URL, which may have signatures in its query, from what http says.
func bare(err error) error {
	var e *url.Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}
