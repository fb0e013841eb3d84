//go:build cluster

package api

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"tkestack.io/tapp/api/server"
	apiv1 "tkestack.io/tapp/api/v1"
	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/test/gen"
)

// TestBadRequests: the code and the whole message of each.
func TestBadRequests(t *testing.T) {
	r := newRig(t)
	token, stranger, lister := r.viewer(), r.user("stranger"), r.user("lister", rule("get list", "apps.tkestack.io", "tapps"))
	r.Create(gen.TApp("web", gen.Replicas(1)))
	r.WaitReady("web")
	lone := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "lone", Labels: map[string]string{"tapp_instance_key": "0"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "demo:v1"}}}}
	if _, err := r.Kube.CoreV1().Pods(r.NS).Create(t.Context(), lone, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	of := "/api/v1/namespaces/" + r.NS
	account := func(name string) string { return "system:serviceaccount:" + r.NS + ":" + name }
	const header = "apiVersion: apps.tkestack.io/v1\nkind: TApp\n"
	for _, c := range []struct {
		name, method, path, token, body string
		code                            int
		message                         string
	}{
		{"nobody", "GET", of + "/tapps", "", "", 401, "give a bearer token, such as one of kubectl create token, or a client certificate of the cluster's CA"},
		{"forged", "GET", of + "/tapps", "forged", "", 401, "the token is not one that the API server knows, or it has expired"},
		{"long", "GET", of + "/tapps", strings.Repeat("x", 17<<10), "", 401, "the token is too long"},
		{"a stranger lists", "GET", of + "/tapps", stranger, "", 403, `tapps.apps.tkestack.io is forbidden: ` + account("stranger") + ` may not list tapps in namespace ` + r.NS},
		{"a stranger lists all", "GET", "/api/v1/tapps", stranger, "", 403, `tapps.apps.tkestack.io is forbidden: ` + account("stranger") + ` may not list tapps in all namespaces`},
		{"a stranger gets", "GET", of + "/tapps/web", stranger, "", 403, `tapps.apps.tkestack.io "web" is forbidden: ` + account("stranger") + ` may not get tapps in namespace ` + r.NS},
		{"a stranger asks for what there is not", "GET", of + "/tapps/none", stranger, "", 403, `tapps.apps.tkestack.io "none" is forbidden: ` + account("stranger") + ` may not get tapps in namespace ` + r.NS},
		{"instances without pods", "GET", of + "/tapps/web/instances", lister, "", 403, `pods is forbidden: ` + account("lister") + ` may not get pods in namespace ` + r.NS},
		{"a pod without pods", "GET", of + "/pods/web-0", lister, "", 403, `pods "web-0" is forbidden: ` + account("lister") + ` may not get pods in namespace ` + r.NS},
		{"a log without logs", "GET", of + "/pods/web-0/log", lister, "", 403, `pods/log "web-0" is forbidden: ` + account("lister") + ` may not get pods/log in namespace ` + r.NS},
		{"no such TApp", "GET", of + "/tapps/none", token, "", 404, `tapps.apps.tkestack.io "none" not found`},
		{"instances of no such TApp", "GET", of + "/tapps/none/instances", token, "", 404, `tapps.apps.tkestack.io "none" not found`},
		{"history of no such TApp", "GET", of + "/tapps/none/history", token, "", 404, `tapps.apps.tkestack.io "none" not found`},
		{"no such App", "GET", of + "/apps/none", token, "", 404, `apps.appcontroller.k8s.io "none" not found`},
		{"no such pod", "GET", of + "/pods/none", token, "", 404, `pods "none" not found`},
		{"a pod of nobody, with our label", "GET", of + "/pods/lone", token, "", 404, `pods "lone" is not of a TApp or an App`},
		{"its log", "GET", of + "/pods/lone/log", token, "", 404, `pods "lone" is not of a TApp or an App`},
		{"no such container", "GET", of + "/pods/web-0/log?container=side", token, "", 400, `pod web-0 has no container "side"; it has [main]`},
		{"a tail of words", "GET", of + "/pods/web-0/log?tail=many", token, "", 400, `the parameter tail is "many"; give a number from 0 to 10000`},
		{"a tail without end", "GET", of + "/pods/web-0/log?tail=10001", token, "", 400, `the parameter tail is "10001"; give a number from 0 to 10000`},
		{"no limit", "GET", of + "/tapps?limit=0", token, "", 400, `the parameter limit is "0"; give a number from 1 to 5000`},
		{"an unknown parameter", "GET", of + "/tapps?labelSelector=a", token, "", 400, `the route has no parameter "labelSelector"; it has limit, continue, watch`},
		{"a parameter where there is none", "GET", of + "/tapps/web/history?watch=1", token, "", 400, `the route has no parameter "watch"; it has none`},
		{"a name that is none", "GET", of + "/tapps/Web", token, "", 400, `the name "Web" is not one that Kubernetes has: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`},
		{"no such route", "GET", "/api/v1/secrets", token, "", 404, `there is no route /api/v1/secrets; /api/openapi.json lists them`},
		{"exec", "GET", of + "/pods/web-0/exec", token, "", 404, `there is no route ` + of + `/pods/web-0/exec; /api/openapi.json lists them`},
		{"a write", "DELETE", of + "/tapps/web", token, "", 405, of + `/tapps/web does not take DELETE: this API only reads`},
		{"a body without an object", "POST", of + "/tapps:preview", token, "", 400, `the body is empty; send a manifest of a TApp in YAML or JSON`},
		{"a body that is no YAML", "POST", of + "/tapps:preview", token, "a: [", 400, `the body is no manifest in YAML or JSON: error converting YAML to JSON: yaml: line 1: did not find expect...`},
		{"another kind", "POST", of + "/tapps:preview", token, "apiVersion: v1\nkind: Secret\n", 400, `the manifest is of a Secret of v1; send one of a TApp of apps.tkestack.io/v1`},
		{"an unknown field", "POST", of + "/tapps:preview", token, header + "metadata: {name: web}\nspec: {replica: 1}\n", 400, `the manifest is no TApp: error unmarshaling JSON: while decoding JSON: json: unknown field "replica"`},
		{"another namespace", "POST", of + "/tapps:preview", token, header + "metadata: {name: web, namespace: other}\n", 400, `metadata.namespace is "other", and the path has "` + r.NS + `"`},
		{"no name", "POST", of + "/tapps:preview", token, header + "spec: {}\n", 400, `metadata.name is "", which is no name that Kubernetes takes`},
		{"too much", "POST", of + "/tapps:preview", token, strings.Repeat("#", 3<<19+1), 413, `Request entity too large: a manifest may have 1572864 bytes`},
		{"a stranger's preview", "POST", of + "/tapps:preview", stranger, header + "metadata: {name: web}\n", 403, `tapps.apps.tkestack.io "web" is forbidden: ` + account("stranger") + ` may not get tapps in namespace ` + r.NS},
	} {
		response, body := r.ask(c.method, c.path, c.token, c.body)
		var status metav1.Status
		if err := json.Unmarshal([]byte(body), &status); err != nil || status.Kind != "Status" || status.Status != metav1.StatusFailure {
			t.Errorf("%s: %d %s", c.name, response.StatusCode, body)
			continue
		}
		if response.StatusCode != c.code || int(status.Code) != c.code || status.Message != c.message {
			t.Errorf("%s: got %d %s\nwant %d %s", c.name, response.StatusCode, status.Message, c.code, c.message)
		}
	}
}

// TestHead: HEAD answers as GET, without a body; what one has already is not sent again.
func TestHead(t *testing.T) {
	r := newRig(t)
	token := r.viewer()
	r.Create(gen.TApp("web", gen.Replicas(1)))
	r.WaitReady("web")
	of := "/api/v1/namespaces/" + r.NS
	for _, path := range []string{"/healthz", "/api/openapi.json", of + "/tapps", of + "/tapps/web", of + "/tapps/web/instances", of + "/tapps/web/instances?watch=1", of + "/tapps/web/history", of + "/tapps/web/events", of + "/apps", of + "/pods/web-0", of + "/pods/web-0/events"} {
		response, body := r.ask(http.MethodHead, path, token, "")
		if response.StatusCode != http.StatusOK || body != "" {
			t.Errorf("HEAD %s: %s %s", path, response.Status, body)
		}
		if tag := response.Header.Get("ETag"); tag != "" {
			if response, body := r.ask(http.MethodGet, path, token, "", "If-None-Match", tag); response.StatusCode != http.StatusNotModified || body != "" {
				t.Errorf("GET %s with its tag: %s %s", path, response.Status, body)
			}
		} else if !strings.Contains(path, "watch") && path != "/healthz" {
			t.Errorf("HEAD %s: no ETag", path)
		}
	}
}

// TestPartOfAll: who may not list all namespaces gets those of the namespaces that he may.
func TestPartOfAll(t *testing.T) {
	r := newRig(t)
	r.Create(gen.TApp("web", gen.Replicas(1)))
	other := cluster.New(t, "api")
	other.Create(gen.TApp("hidden", gen.Replicas(0)))
	token := r.viewer()
	stream := r.watch("/api/v1/tapps?watch=1", token)
	if e := stream.next(r, "list"); !strings.Contains(e.data, `"name":"web"`) || strings.Contains(e.data, "hidden") || !strings.HasSuffix(e.data, `"total":1}`) {
		t.Error(e.data)
	}
	list := get[apiv1.List[apiv1.TApp]](r, "/api/v1/tapps", token)
	if list.Total != 1 || len(list.Items) != 1 || list.Items[0].Name != "web" {
		t.Errorf("%+v", list)
	}
}

// TestExpiry: a stream ends with a word when its token is not one any more, and when its
// user may not any more.
func TestExpiry(t *testing.T) {
	r := newRig(t, func(c *server.Config) {
		c.Limits.Recheck, c.Limits.Keep = 500*time.Millisecond, 250*time.Millisecond
	})
	r.Create(gen.TApp("web", gen.Replicas(1)))
	path := "/api/v1/namespaces/" + r.NS + "/tapps?watch=1"
	expiring := r.watch(path, r.user("expiring", rule("list", "apps.tkestack.io", "tapps")))
	expiring.next(r, "list")
	denied := r.watch(path, r.user("denied", rule("list", "apps.tkestack.io", "tapps")))
	denied.next(r, "list")
	if err := r.Kube.CoreV1().ServiceAccounts(r.NS).Delete(t.Context(), "expiring", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := r.Kube.RbacV1().RoleBindings(r.NS).Delete(t.Context(), "denied", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if e := expiring.next(r, "error"); !strings.Contains(e.data, `"code":401`) {
		t.Error(e.data)
	}
	if e := denied.next(r, "error"); !strings.Contains(e.data, `"code":403`) || !strings.Contains(e.data, "denied may not list tapps in namespace") {
		t.Error(e.data)
	}
	r.equals("tapp_http_streams", 0)
}

// TestTooMuch: wrong tokens, requests and streams are bounded.
func TestTooMuch(t *testing.T) {
	r := newRig(t, func(c *server.Config) {
		c.Limits.FailuresPerMinute, c.Limits.RequestsPerSecond, c.Limits.Streams, c.Limits.StreamsPerUser = 3, 5, 3, 2
	})
	token, second, third := r.viewer(), r.user("second", rule("list", "apps.tkestack.io", "tapps")), r.user("third", rule("list", "apps.tkestack.io", "tapps"))
	path := "/api/v1/namespaces/" + r.NS + "/tapps"
	refused := func(path, token, want string) {
		t.Helper()
		r.Eventually("429", func(context.Context) error {
			response, body := r.ask(http.MethodGet, path, token, "")
			if response.StatusCode != http.StatusTooManyRequests || response.Header.Get("Retry-After") == "" || !strings.Contains(body, want) {
				return fmt.Errorf("%s: %s", response.Status, body)
			}
			return nil
		})
	}
	for range 2 {
		r.watch(path+"?watch=1", token).next(r, "list")
	}
	refused(path+"?watch=1", token, "has 2 streams open, which is the most that one caller may have")
	r.watch(path+"?watch=1", second).next(r, "list")
	refused(path+"?watch=1", third, "3 streams are open, which is the most there may be")
	refused(path, token, "viewer sends more than 5 requests a second")
	refused(path, "forged", "too many wrong tokens came from this address; wait a while")
}

// TestClientCertificate: a certificate of the cluster's CA is as good as a token, and one of
// another CA is none.
func TestClientCertificate(t *testing.T) {
	r := newRig(t)
	config := rest.CopyConfig(r.Config)
	if err := rest.LoadTLSFiles(config); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(config.CertData, config.KeyData)
	if err != nil {
		t.Fatal(err)
	}
	r.client = newClient(pair)
	var who apiv1.User
	r.Eventually("the API knows the CA", func(context.Context) error {
		response, body := r.ask(http.MethodGet, "/api/v1/whoami", "", "")
		if response.StatusCode != http.StatusOK {
			r.client.CloseIdleConnections()
			return fmt.Errorf("%s %s", response.Status, body)
		}
		return json.Unmarshal([]byte(body), &who)
	})
	if who.User != pair.Leaf.Subject.CommonName || len(who.Groups) != len(pair.Leaf.Subject.Organization)+1 {
		t.Errorf("%+v, want %s", who, pair.Leaf.Subject)
	}
	if list := get[apiv1.List[apiv1.TApp]](r, "/api/v1/namespaces/"+r.NS+"/tapps", ""); list.Total != 0 {
		t.Errorf("%+v", list)
	}
	r.client = newClient(foreign(t, who.User))
	response, err := r.do(t.Context(), http.MethodGet, "/api/v1/whoami", "", "")
	if err != nil { // the handshake failed
		return
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusUnauthorized { // the client kept a certificate to itself that the server does not ask for
		t.Errorf("with a certificate of another CA: %s", response.Status)
	}
}

// foreign is a certificate that nobody signed but itself.
func foreign(t *testing.T, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name, Organization: []string{"system:masters"}}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
