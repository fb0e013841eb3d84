package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"golang.org/x/net/netutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"

	"tkestack.io/tapp/api"
	"tkestack.io/tapp/api/access"
	"tkestack.io/tapp/certs"
	"tkestack.io/tapp/process"
)

// maxConnections at a time.
const maxConnections = 4096

// server serves an API by TLS 1.3.
type server struct {
	api          *api.API
	certificates *certs.Source
	clients      *clientCAs
	readiness    process.Readiness
}

// serve answers requests until ctx ends.
func (s *server) serve(ctx context.Context, listener net.Listener) error {
	srv := &http.Server{ //nolint:gosec // ServeTLS sets the timeout of headers
		Handler:     s.api,
		TLSConfig:   s.clients.config(certs.TLSConfig(s.certificates.GetCertificate)),
		IdleTimeout: 2 * time.Minute,
		HTTP2:       &http.HTTP2Config{SendPingTimeout: api.Heartbeat, PingTimeout: api.Heartbeat},
	}
	klog.FromContext(ctx).Info("Serving the API", "address", listener.Addr().String())
	err := process.ServeTLS(ctx, srv, netutil.LimitListener(listener, maxConnections), func() {
		s.readiness.End()
		s.api.EndStreams() // streams end with a word
	})
	s.api.Close()
	if err != nil {
		return fmt.Errorf("serving the API: %w", err)
	}
	return nil
}

// The ConfigMap in which the API server publishes the CA of its clients' certificates.
const (
	clientCANamespace = "kube-system"
	clientCAConfigMap = "extension-apiserver-authentication"
	clientCAKey       = "client-ca-file"
	clientCAEvery     = time.Minute
)

// clientCAs are those that sign certificates of callers.
type clientCAs struct {
	// file has them in PEM; empty: the API server's are read.
	file string
	core corev1client.CoreV1Interface

	mu   sync.Mutex
	pool *x509.CertPool
}

// config takes certificates of callers that one of the CAs has signed, and needs none.
func (c *clientCAs) config(server *tls.Config) *tls.Config {
	outer := server.Clone()
	outer.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		c.mu.Lock()
		pool := c.pool
		c.mu.Unlock()
		if pool == nil {
			return nil, nil
		}
		current := server.Clone()
		current.ClientAuth, current.ClientCAs = tls.VerifyClientCertIfGiven, pool
		return current, nil
	}
	return outer
}

// run reads the CAs again and again until ctx ends.
func (c *clientCAs) run(ctx context.Context) error {
	every := time.NewTicker(clientCAEvery)
	defer every.Stop()
	told := ""
	for {
		pool, err := c.read(ctx)
		if err == nil {
			c.mu.Lock()
			c.pool = pool
			c.mu.Unlock()
			told = ""
		} else if text := err.Error(); text != told && ctx.Err() == nil {
			told = text
			klog.FromContext(ctx).Info("The CA of client certificates is not known; callers need a token", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
		}
	}
}

func (c *clientCAs) read(ctx context.Context) (*x509.CertPool, error) {
	var bundle []byte
	if c.file != "" {
		var err error
		if bundle, err = os.ReadFile(c.file); err != nil {
			return nil, fmt.Errorf("--client-ca-file: %w", err)
		}
	} else {
		ctx, cancel := context.WithTimeout(ctx, access.ReviewTimeout)
		defer cancel()
		object, err := c.core.ConfigMaps(clientCANamespace).Get(ctx, clientCAConfigMap, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("reading the CA of the API server's clients: %w", err)
		}
		bundle = []byte(object.Data[clientCAKey])
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(bundle) {
		return nil, errors.New("there is no CA of client certificates")
	}
	return pool, nil
}
