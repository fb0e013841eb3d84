// Package kubeapi talks to the API server in plain HTTP and JSON: the few calls that starting a cluster needs do not
// justify client-go, which would multiply the time to compile this program.
package kubeapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// Client calls one API server as one user.
type Client struct {
	server string
	http   *http.Client
}

// Options name the server and the files with the user's credentials.
type Options struct {
	Server, CA, Cert, Key string
}

// New returns a Client.
func New(o Options) (*Client, error) {
	pair, err := tls.LoadX509KeyPair(o.Cert, o.Key)
	if err != nil {
		return nil, fmt.Errorf("credentials for the API server: %w", err)
	}
	ca, err := os.ReadFile(o.CA)
	if err != nil {
		return nil, fmt.Errorf("credentials for the API server: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	transport := &http.Transport{ // without a proxy: the server is on this machine
		TLSClientConfig:     &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
		MaxIdleConnsPerHost: 16,
		ForceAttemptHTTP2:   true,
	}
	return &Client{server: o.Server, http: &http.Client{Transport: transport, Timeout: 30 * time.Second}}, nil
}

// StatusError is an answer other than 2xx.
type StatusError struct {
	Code    int
	Message string
}

func (e *StatusError) Error() string { return fmt.Sprintf("%d: %s", e.Code, e.Message) }

// Get reads path into answer, unless that is nil.
func (c *Client) Get(ctx context.Context, path string, answer any) error {
	return c.do(ctx, http.MethodGet, path, "", nil, answer)
}

// Create posts a YAML or JSON document to a collection.
func (c *Client) Create(ctx context.Context, path string, document []byte) error {
	return c.do(ctx, http.MethodPost, path, "application/yaml", document, nil)
}

// Apply creates or changes an object on the server side, taking over fields that others own.
func (c *Client) Apply(ctx context.Context, path string, document []byte) error {
	return c.do(ctx, http.MethodPatch, path+"?fieldManager=devcluster&force=true", "application/apply-patch+yaml", document, nil)
}

// Delete deletes an object.
func (c *Client) Delete(ctx context.Context, path string) error {
	return c.do(ctx, http.MethodDelete, path, "", nil, nil)
}

func (c *Client) do(ctx context.Context, method, path, contentType string, body []byte, answer any) error {
	request, err := http.NewRequestWithContext(ctx, method, c.server+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	request.Header.Set("User-Agent", "devcluster")
	request.Header.Set("Accept", "application/json")
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err // says method and address already
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %w", method, path, statusError(response.StatusCode, data))
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(data, answer); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

func statusError(code int, data []byte) error {
	var status struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(data, &status) != nil || status.Message == "" {
		status.Message = strings.TrimSpace(string(data))
	}
	return &StatusError{Code: code, Message: status.Message}
}
