package kubeconfig

import (
	"encoding/base64"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/util/cert"
)

const good = `kind: Config
apiVersion: v1
current-context: ctx
contexts: [{name: ctx, context: {cluster: c, user: u}}, {name: other, context: {cluster: c, user: gone}}, {name: lost, context: {cluster: gone, user: u}}]
clusters: [{name: c, cluster: {server: "https://10.0.0.1:6443"}}, {name: unused, cluster: {server: "http://x", insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: secret}}, {name: unused, user: {exec: {command: sh, apiVersion: client.authentication.k8s.io/v1}}}]
`

// with replaces the first part of good.
func with(old, replacement string) string { return strings.Replace(good, old, replacement, 1) }

func user(fields string) string { return with("{token: secret}", "{"+fields+"}") }

func cluster(fields string) string { return with(`{server: "https://10.0.0.1:6443"}`, "{"+fields+"}") }

func server(url string) string { return cluster(`server: "` + url + `"`) }

func TestRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":              {"", "the kubeconfig is empty"},
		"huge":               {good + strings.Repeat("#", maxBytes), "the kubeconfig has " + strconv.Itoa(len(good)+maxBytes) + " bytes, more than the 262144 that one may have"},
		"no YAML":            {"a: [secret", "the kubeconfig is no YAML of kind Config"},
		"another kind":       {with("kind: Config", "kind: Secret"), "the kubeconfig is no YAML of kind Config"},
		"no context":         {with("current-context: ctx", ""), "current-context is empty; name the context to use"},
		"unknown context":    {with("current-context: ctx", "current-context: x"), `current-context is "x", and there is no such context`},
		"unknown cluster":    {with("current-context: ctx", "current-context: lost"), `context "lost" names cluster "gone", and there is no such cluster`},
		"unknown user":       {with("current-context: ctx", "current-context: other"), `context "other" names user "gone", and there is no such user`},
		"exec":               {user(`exec: {command: sh, apiVersion: client.authentication.k8s.io/v1}`), `user "u" has exec, which would run a program in the controller`},
		"exec beside token":  {user(`token: x, exec: {command: sh, apiVersion: client.authentication.k8s.io/v1}`), `user "u" has exec, which would run a program in the controller`},
		"auth provider":      {user(`auth-provider: {name: gcp}`), `user "u" has auth-provider, which would run a plugin in the controller`},
		"tokenFile":          {user(`tokenFile: /etc/passwd`), `user "u" has tokenFile, which would read a file of the controller; give token`},
		"client-certificate": {user(`client-certificate: /a`), `user "u" has client-certificate, which would read a file of the controller; give client-certificate-data`},
		"client-key":         {user(`client-key: /a`), `user "u" has client-key, which would read a file of the controller; give client-key-data`},
		"as":                 {user(`token: x, as: admin`), `user "u" has as, which would speak for somebody else`},
		"as-uid":             {user(`token: x, as-uid: "1"`), `user "u" has as-uid, which would speak for somebody else`},
		"as-groups":          {user(`token: x, as-groups: [a]`), `user "u" has as-groups, which would speak for somebody else`},
		"as-user-extra":      {user(`token: x, as-user-extra: {a: [b]}`), `user "u" has as-user-extra, which would speak for somebody else`},
		"nobody":             {user(``), `user "u" has no token and no client certificate`},
		"two ways":           {user(`token: x, username: a, password: b`), `user "u" has a token and a username; give one of them`},
		"half a pair":        {user(`client-certificate-data: YQ==`), `user "u" has only one of client-certificate-data and client-key-data`},
		"no pair":            {user(`client-certificate-data: YQ==, client-key-data: YQ==`), `client-certificate-data and client-key-data of user "u" are no pair`},
		"insecure":           {cluster(`server: "https://x", insecure-skip-tls-verify: true`), `cluster "c" has insecure-skip-tls-verify: anybody could answer in its place; give certificate-authority-data`},
		"file of a CA":       {cluster(`server: "https://x", certificate-authority: /a`), `cluster "c" names the file certificate-authority; give its content as certificate-authority-data`},
		"proxy-url":          {cluster(`server: "https://x", proxy-url: "http://y"`), `cluster "c" has a proxy-url, which would see where it is sent; it is not used`},
		"CA is none":         {cluster(`server: "https://x", certificate-authority-data: YQ==`), `certificate-authority-data of cluster "c" has no certificate`},
		"no server":          {cluster(``), `cluster "c" has no server`},
		"no URL":             {server("://"), `server of cluster "c" is no URL such as https://10.0.0.1:6443`},
		"no host":            {server("https://:6443"), `server of cluster "c" is no URL such as https://10.0.0.1:6443`},
		"http":               {server("http://x"), `server of cluster "c" is not https`},
		"a file":             {server("file://x/etc"), `server of cluster "c" is not https`},
		"credentials in URL": {server("https://a:b@x"), `server of cluster "c" has more than a host, a port and a path`},
		"query":              {server("https://x?a=b"), `server of cluster "c" has more than a host, a port and a path`},
		"loopback":           {server("https://127.0.0.1:6443"), `server of cluster "c" is 127.0.0.1, which is the hub's own machine and not a member`},
		"another loopback":   {server("https://127.9.9.9"), `server of cluster "c" is 127.9.9.9, which is the hub's own machine and not a member`},
		"loopback of IPv6":   {server("https://[::1]:6443"), `server of cluster "c" is ::1, which is the hub's own machine and not a member`},
		"mapped loopback":    {server("https://[::ffff:127.0.0.1]"), `server of cluster "c" is ::ffff:127.0.0.1, which is the hub's own machine and not a member`},
		"localhost":          {server("https://LocalHost.:6443"), `server of cluster "c" is LocalHost., which is the hub's own machine and not a member`},
		"below localhost":    {server("https://a.localhost"), `server of cluster "c" is a.localhost, which is the hub's own machine and not a member`},
		"metadata of clouds": {server("https://169.254.169.254"), `server of cluster "c" is 169.254.169.254, which is the hub's own machine and not a member`},
		"link-local of IPv6": {server("https://[fe80::1]"), `server of cluster "c" is fe80::1, which is the hub's own machine and not a member`},
		"unspecified":        {server("https://0.0.0.0"), `server of cluster "c" is 0.0.0.0, which is the hub's own machine and not a member`},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := Judge([]byte(c.text), false)
			if err == nil {
				t.Fatalf("taken: %+v", config)
			}
			if err.Error() != c.want {
				t.Errorf("got  %s\nwant %s", err, c.want)
			}
		})
	}
}

func TestTaken(t *testing.T) {
	certificate, key, err := cert.GenerateSelfSignedCertKey("x", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.StdEncoding.EncodeToString
	for name, c := range map[string]struct {
		text  string
		local bool
	}{
		"token; what other contexts name does not matter": {good, false},
		"a name and a path":  {server("https://api.example.com/k8s/clusters/c-1"), false},
		"basic":              {user("username: a, password: b"), false},
		"client certificate": {user("client-certificate-data: " + encode(certificate) + ", client-key-data: " + encode(key)), false},
		"CA":                 {cluster("server: https://x, tls-server-name: api, certificate-authority-data: " + encode(certificate)), false},
		"private network":    {server("https://192.168.1.1"), false},
		"loopback by flag":   {server("https://127.0.0.1:6443"), true},
	} {
		config, err := Judge([]byte(c.text), c.local)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if config.ExecProvider != nil || config.AuthProvider != nil || config.BearerTokenFile != "" || config.CAFile != "" || config.CertFile != "" || config.KeyFile != "" || config.Insecure || config.Proxy != nil {
			t.Errorf("%s: got %+v", name, config)
		}
	}
	config, err := Judge([]byte(good), false)
	if err != nil || config.Host != "https://10.0.0.1:6443" || config.BearerToken != "secret" {
		t.Errorf("got %+v, %v", config, err)
	}
}

func TestIsLocal(t *testing.T) {
	for address, want := range map[string]bool{"10.0.0.1": false, "::ffff:10.0.0.1": false, "::ffff:127.0.0.1": true, "::ffff:0.0.0.0": true, "224.0.0.1": true, "ff02::1": true, "2001:db8::1": false, "fd00::1": false} {
		if got := IsLocal(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: got %v", address, got)
		}
	}
}
