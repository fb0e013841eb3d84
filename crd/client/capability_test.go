package client_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"tkestack.io/tapp/crd/client"
)

// nodeServer answers lists of nodes as the API server does from etcd: each page has looked
// at one node, and may be empty although nodes that match follow.
type nodeServer struct {
	zones []string // of the nodes; "-": it has no label
	code  int      // of all answers, unless 0
	asked []string
}

func (s *nodeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	s.asked = append(s.asked, fmt.Sprintf("%s %s limit %s as %s", r.Method, r.URL.Path, q.Get("limit"), r.Header.Get("Accept")))
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	if s.code != 0 {
		w.WriteHeader(s.code)
		_ = json.NewEncoder(w).Encode(metav1.Status{Status: metav1.StatusFailure, Code: int32(s.code), Reason: metav1.StatusReasonForbidden})
		return
	}
	selector, err := labels.Parse(q.Get("labelSelector"))
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	at := 0
	_, _ = fmt.Sscan(q.Get("continue"), &at)
	list := metav1.PartialObjectMetadataList{}
	if at < len(s.zones) {
		node := metav1.PartialObjectMetadata{}
		if s.zones[at] != "-" {
			node.Labels = map[string]string{"topology.kubernetes.io/zone": s.zones[at]}
		}
		if selector.Matches(labels.Set(node.Labels)) {
			list.Items = append(list.Items, node)
		}
		if at+1 < len(s.zones) {
			list.Continue = fmt.Sprint(at + 1)
		}
	}
	_ = json.NewEncoder(w).Encode(list)
}

// TestEveryNodeHasZone: by the label's key alone, as kube-scheduler goes by it.
func TestEveryNodeHasZone(t *testing.T) {
	for name, c := range map[string]struct {
		server    nodeServer
		want      bool
		forbidden bool
	}{
		"no nodes":                    {server: nodeServer{}},
		"all have one":                {server: nodeServer{zones: []string{"a", "b", "a"}}, want: true},
		"one":                         {server: nodeServer{zones: []string{"a"}}, want: true},
		"an empty one is one":         {server: nodeServer{zones: []string{"a", ""}}, want: true},
		"none has":                    {server: nodeServer{zones: []string{"-", "-"}}},
		"the first one has none":      {server: nodeServer{zones: []string{"-", "a", "b"}}},
		"the last one has none":       {server: nodeServer{zones: []string{"a", "b", "-"}}},
		"they may not be looked at":   {server: nodeServer{zones: []string{"a"}, code: http.StatusForbidden}, forbidden: true},
		"the one in between has none": {server: nodeServer{zones: []string{"a", "-", "b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(&c.server)
			defer server.Close()
			core, err := corev1client.NewForConfig(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeProtobuf}})
			if err != nil {
				t.Fatal(err)
			}
			got, err := client.EveryNodeHasZone(t.Context(), core.RESTClient())
			if got != c.want || apierrors.IsForbidden(err) != c.forbidden || err != nil != c.forbidden {
				t.Errorf("got %t and error %v", got, err)
			}
			const want = "GET /api/v1/nodes limit 1 as application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
			if i := slices.IndexFunc(c.server.asked, func(ask string) bool { return ask != want }); i >= 0 {
				t.Errorf("it asked for %s", c.server.asked[i])
			}
		})
	}
}
