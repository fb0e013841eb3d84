package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Caller asks `tapp api` that the chart has installed, as a service account of the rig's
// namespace. It speaks to the pod, whose certificate is for the Service.
type Caller struct {
	rig    *Rig
	client *http.Client
	host   string
	token  string
	// Pod that answers.
	Pod *corev1.Pod
}

// NewCaller makes the account, which has no rights yet. The chart's release and its namespace
// say which pod to ask; without roots its certificate is not verified.
func (r *Rig) NewCaller(account, release, namespace string, roots *x509.CertPool) *Caller {
	r.Helper()
	ctx, accounts := r.Context(), r.Kube.CoreV1().ServiceAccounts(r.NS)
	if _, err := accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{}); err != nil {
		r.Fatal(err)
	}
	token, err := accounts.CreateToken(ctx, account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		r.Fatal(err)
	}
	pods, err := r.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + release + ",app.kubernetes.io/component=api"})
	if err != nil || len(pods.Items) != 1 {
		r.Fatalf("the pods of the API: %v %v", pods, err)
	}
	c := &Caller{rig: r, host: release + "-api." + namespace + ".svc", token: token.Status.Token, Pod: &pods.Items[0]}
	c.dial(roots, func() string { return net.JoinHostPort(c.Pod.Status.PodIP, "8443") })
	return c
}

// dial addresses of this function, which is called for each connection.
func (c *Caller) dial(roots *x509.CertPool, to func() string) {
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, InsecureSkipVerify: roots == nil, MinVersion: tls.VersionTLS13},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, to())
		},
	}
	c.rig.Cleanup(transport.CloseIdleConnections)
	c.client = &http.Client{Transport: transport}
}

// At is the same account at another server of the API, whose certificate is not verified.
func (c *Caller) At(address string) *Caller {
	out := *c
	out.dial(nil, func() string { return address })
	return &out
}

// Open a route. The caller closes the body.
func (c *Caller) Open(ctx context.Context, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+c.host+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	return c.client.Do(request)
}

// Tells waits until a route answers with this code and a text that has all words.
func (c *Caller) Tells(path string, code int, words ...string) {
	c.rig.Helper()
	c.rig.Eventually("GET "+path, func(ctx context.Context) error {
		response, err := c.Open(ctx, path)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(response.Body)
		if err = errors.Join(err, response.Body.Close()); err != nil {
			return err
		}
		missing := response.StatusCode != code || slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(string(body), w) })
		return When(missing, fmt.Sprintf("%s %s", response.Status, body))
	})
}
