package controller

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"tkestack.io/tapp/controller/loop"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// TestPolicy: what the leader goes by is in the ConfigMap, by server-side apply.
func TestPolicy(t *testing.T) {
	const coreAPI = `{"kind":"APIResourceList","resources":[{"name":"pods"},{"name":"pods/resize"}]}`
	for name, c := range map[string]struct {
		namespace string
		away      time.Duration // so long the API server cannot be reached
		code      int           // of the answer to the write
		body      string
		written   bool
		log       string
	}{
		"published":           {namespace: "tapp-system", code: 200, written: true},
		"once it is back":     {namespace: "tapp-system", away: time.Minute, code: 200, written: true, log: "The API server is away; trying again"},
		"not allowed":         {namespace: "tapp-system", code: 403, body: forbidden, written: true, log: "The policy is not published"},
		"a bug":               {namespace: "tapp-system", code: 200, body: "panic", written: true, log: "panic: on purpose"},
		"no namespace known":  {log: "The policy is not published: this runs in no pod"},
		"nobody can be asked": {namespace: "tapp-system", away: 1000 * time.Hour, log: "The API server is away; trying again"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var written []byte
				core := corev1client.NewForConfigOrDie(answering(func(r *http.Request) (int, string) {
					if time.Since(began) < c.away {
						return 0, ""
					}
					if r.Method == http.MethodGet {
						return 200, coreAPI
					}
					if path := r.Method + " " + r.URL.String(); path != "PATCH http://api/api/v1/namespaces/tapp-system/configmaps/tapp-policy?fieldManager=tapp-controller&force=true" {
						t.Errorf("request %s", path)
					}
					written, _ = io.ReadAll(r.Body)
					if c.body == "panic" {
						panic("on purpose")
					}
					if c.body != "" {
						return c.code, c.body
					}
					return c.code, string(written)
				}))
				logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.Verbosity(1), ktesting.BufferLogs(true)))
				ctx, cancel := context.WithTimeout(klog.NewContext(t.Context(), logger), time.Hour)
				defer cancel()
				p := policyPublisher{core: core, namespace: c.namespace, contain: (*loop.Metrics)(nil).Container("policy"), policy: tappv1.PublishedPolicy{
					DeletePodAfterAppFinish: true, NodeLostAfter: metav1.Duration{Duration: 5 * time.Minute}}}
				p.publish(ctx)
				if log := logger.GetSink().(ktesting.Underlier).GetBuffer().String(); !strings.Contains(log, c.log) || c.log == "" && log != "" {
					t.Errorf("logged %q, want %q", log, c.log)
				}
				if !c.written {
					if written != nil {
						t.Errorf("wrote %s", written)
					}
					return
				}
				var got corev1.ConfigMap
				const want = `{"deletePodAfterAppFinish":true,"nodeLostAfter":"5m0s","resize":true}`
				if err := json.Unmarshal(written, &got); err != nil || got.Data[tappv1.PolicyKey] != want {
					t.Errorf("wrote %s (%v), want %s", written, err, want)
				}
			})
		})
	}
}

// TestPolicyIsTheFlags: what is published is what the controller was told.
func TestPolicyIsTheFlags(t *testing.T) {
	c := Defaults()
	c.Controllers, c.REST = Kinds(), &rest.Config{Host: "http://api"}
	c.DeletePodAfterAppFinish, c.NodeLostAfter, c.TrackingLabel, c.Election.Namespace = false, time.Hour, "example.com/app", "ns"
	replica, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	tapps, ok := Find[*tapps](replica)
	want := tappv1.PublishedPolicy{NodeLostAfter: metav1.Duration{Duration: time.Hour}, TrackingLabel: "example.com/app"}
	if !ok || tapps.publisher.policy != want || tapps.publisher.namespace != "ns" {
		t.Errorf("publishes %+v in %q, want %+v in ns", tapps.publisher.policy, tapps.publisher.namespace, want)
	}
}
