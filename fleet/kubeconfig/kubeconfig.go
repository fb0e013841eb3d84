// Package kubeconfig judges kubeconfigs that others wrote. One that could run a program,
// read a file, or speak for somebody else is refused: whoever may write it would have
// what the controller has. It is pure: nothing is dialled or read.
package kubeconfig

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// maxBytes of a kubeconfig.
const maxBytes = 256 << 10

// Judge makes a configuration of what the current context of a kubeconfig names, or says
// in one sentence why not. allowLocal lets the server have a loopback or link-local
// address.
func Judge(text []byte, allowLocal bool) (*rest.Config, error) {
	switch {
	case len(text) == 0:
		return nil, errors.New("the kubeconfig is empty")
	case len(text) > maxBytes:
		return nil, fmt.Errorf("the kubeconfig has %d bytes, more than the %d that one may have", len(text), maxBytes)
	}
	config, err := clientcmd.Load(text)
	if err != nil {
		// The error may quote the text, and with it a token.
		return nil, errors.New("the kubeconfig is no YAML of kind Config")
	}
	name := config.CurrentContext
	if name == "" {
		return nil, errors.New("current-context is empty; name the context to use")
	}
	context := config.Contexts[name]
	if context == nil {
		return nil, fmt.Errorf("current-context is %q, and there is no such context", name)
	}
	cluster := config.Clusters[context.Cluster]
	if cluster == nil {
		return nil, fmt.Errorf("context %q names cluster %q, and there is no such cluster", name, context.Cluster)
	}
	user := config.AuthInfos[context.AuthInfo]
	if user == nil {
		return nil, fmt.Errorf("context %q names user %q, and there is no such user", name, context.AuthInfo)
	}
	if err := judgeCluster(context.Cluster, cluster, allowLocal); err != nil {
		return nil, err
	}
	if err := judgeUser(context.AuthInfo, user); err != nil {
		return nil, err
	}
	return &rest.Config{
		Host:        cluster.Server,
		BearerToken: user.Token, Username: user.Username, Password: user.Password,
		TLSClientConfig: rest.TLSClientConfig{
			ServerName: cluster.TLSServerName, CAData: cluster.CertificateAuthorityData,
			CertData: user.ClientCertificateData, KeyData: user.ClientKeyData,
		},
	}, nil
}

func judgeCluster(name string, c *api.Cluster, allowLocal bool) error {
	switch {
	case c.InsecureSkipTLSVerify:
		return fmt.Errorf("cluster %q has insecure-skip-tls-verify: anybody could answer in its place; give certificate-authority-data", name)
	case c.CertificateAuthority != "":
		return fmt.Errorf("cluster %q names the file certificate-authority; give its content as certificate-authority-data", name)
	case c.ProxyURL != "":
		return fmt.Errorf("cluster %q has a proxy-url, which would see where it is sent; it is not used", name)
	}
	if len(c.CertificateAuthorityData) > 0 && !x509.NewCertPool().AppendCertsFromPEM(c.CertificateAuthorityData) {
		return fmt.Errorf("certificate-authority-data of cluster %q has no certificate", name)
	}
	server, err := url.Parse(c.Server)
	switch {
	case c.Server == "":
		return fmt.Errorf("cluster %q has no server", name)
	case err != nil || server.Hostname() == "":
		return fmt.Errorf("server of cluster %q is no URL such as https://10.0.0.1:6443", name)
	case server.Scheme != "https":
		return fmt.Errorf("server of cluster %q is not https", name)
	case server.User != nil || server.RawQuery != "" || server.Fragment != "":
		return fmt.Errorf("server of cluster %q has more than a host, a port and a path", name)
	case !allowLocal && IsLocalHost(server.Hostname()):
		return fmt.Errorf("server of cluster %q is %s, which is the hub's own machine and not a member", name, server.Hostname())
	}
	return nil
}

func judgeUser(name string, u *api.AuthInfo) error {
	for _, field := range []struct {
		has         bool
		field, does string
	}{
		{u.Exec != nil, "exec", "would run a program in the controller"},
		{u.AuthProvider != nil, "auth-provider", "would run a plugin in the controller"},
		{u.TokenFile != "", "tokenFile", "would read a file of the controller; give token"},
		{u.ClientCertificate != "", "client-certificate", "would read a file of the controller; give client-certificate-data"},
		{u.ClientKey != "", "client-key", "would read a file of the controller; give client-key-data"},
		{u.Impersonate != "", "as", "would speak for somebody else"},
		{u.ImpersonateUID != "", "as-uid", "would speak for somebody else"},
		{len(u.ImpersonateGroups) > 0, "as-groups", "would speak for somebody else"},
		{len(u.ImpersonateUserExtra) > 0, "as-user-extra", "would speak for somebody else"},
	} {
		if field.has {
			return fmt.Errorf("user %q has %s, which %s", name, field.field, field.does)
		}
	}
	certificate, key := len(u.ClientCertificateData) > 0, len(u.ClientKeyData) > 0
	switch {
	case certificate != key:
		return fmt.Errorf("user %q has only one of client-certificate-data and client-key-data", name)
	case !certificate && u.Token == "" && u.Username == "":
		return fmt.Errorf("user %q has no token and no client certificate", name)
	case u.Token != "" && u.Username != "":
		return fmt.Errorf("user %q has a token and a username; give one of them", name)
	}
	if certificate {
		if _, err := tls.X509KeyPair(u.ClientCertificateData, u.ClientKeyData); err != nil {
			return fmt.Errorf("client-certificate-data and client-key-data of user %q are no pair", name)
		}
	}
	return nil
}

// IsLocalHost says whether a host, as a URL has it, names the machine itself or its link.
// Names are judged again by IsLocal when they are dialled.
func IsLocalHost(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && IsLocal(address)
}

// IsLocal says whether an address is that of the machine itself, or of its link, where
// clouds serve credentials.
func IsLocal(a netip.Addr) bool {
	a = a.Unmap()
	return a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsLinkLocalMulticast() || a.IsInterfaceLocalMulticast() || a.IsMulticast() || a.IsUnspecified()
}
