//go:build cluster

package failover

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/crd/bases"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/audit"
	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/test/gen"
)

var holdsTApps = regexp.MustCompile(`(?m)^tapp_schema_held\{kind="TApp"\} 1$`)

// holds waits until the leader holds all TApps, or does not.
func (f *fleet) holds(want bool) {
	f.rig.Helper()
	f.rig.Eventually(fmt.Sprintf("the leader holds TApps: %v", want), func(ctx context.Context) error {
		page, err := f.leader.Get(ctx, "/metrics")
		return cluster.When(err != nil || holdsTApps.MatchString(page) != want, fmt.Sprint(err))
	})
}

// putSchema has the API server serve the schema of TApps without these fields of the spec.
func putSchema(r *rig, without ...string) {
	r.Helper()
	crds, err := bases.CRDs(tappv1.Kind)
	if err != nil || len(crds) != 1 {
		r.Fatal(len(crds), err)
	}
	for i := range crds[0].Spec.Versions {
		spec := crds[0].Spec.Versions[i].Schema.OpenAPIV3Schema.Properties["spec"]
		for _, field := range without {
			delete(spec.Properties, field)
		}
	}
	text, err := json.Marshal(crds[0])
	if err != nil {
		r.Fatal(err)
	}
	if _, err := r.TryKubectlWith(string(text), "replace", "--filename", "-"); err != nil { // there is none yet
		r.KubectlWith(string(text), "create", "--filename", "-")
	}
	r.Eventually("TApps are served", func(context.Context) error {
		_, err := r.TryKubectl("get", "tapps")
		return err
	})
}

// TestOlderSchema: an older CustomResourceDefinition is applied over ours, as by another chart's copy, and loses
// spec.ordinals, which a TApp uses: by what is left its instances have other ids. Nothing happens until the right one is
// back, under the next leader too; and then everything is as before.
func TestOlderSchema(t *testing.T) {
	r := newRig(t)
	putSchema(r)
	r.Cleanup(func() { putSchema(r) })
	requests := r.FollowAudit()
	f := newFleet(r, 2, "--create-crd=false")
	tapp := gen.TApp("held", gen.Replicas(3), gen.Default(gen.Simulated()))
	tapp.Spec.Ordinals = &tappv1.Ordinals{Start: 5}
	if _, err := r.TApps.Create(r.Context(), tapp, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ready := func(n int) {
		t.Helper()
		r.Eventually(fmt.Sprintf("%d instances are ready, and the status says so", n), func(ctx context.Context) error {
			got := r.Kubectl("get", "tapp", "held", "--output=jsonpath={.status.readyReplicas} {.status.conditions[?(@.type==\"Progressing\")].status}")
			return cluster.When(got != fmt.Sprint(n, " False"), got)
		})
	}
	ready(3)
	before := r.Starts("app=held")
	if len(before) != 3 {
		t.Fatalf("pods %v", before)
	}

	putSchema(r, "ordinals")
	f.holds(true)
	if got := r.Kubectl("get", "tapp", "held", "--output=jsonpath={.spec.ordinals}"); got != "" {
		t.Errorf("the API server still serves %s", got)
	}
	was := f.leader
	was.kill()
	f.leads(was)
	f.holds(true)
	r.Eventually("it is told of", func(ctx context.Context) error {
		got := r.Kubectl("get", "configmap", tappv1.SchemasConfigMap, `--output=jsonpath={.data.tapps\.apps\.tkestack\.io\.held}`)
		return cluster.When(!regexp.MustCompile(`lacks spec\.ordinals\. .*--accept-schema=[0-9a-f]{16}$`).MatchString(got), got)
	})
	if now := r.Starts("app=held"); !maps.Equal(now, before) {
		t.Errorf("while TApps are held, the pods are\n%v\nand were\n%v", now, before)
	}

	putSchema(r)
	f.holds(false)
	if got := r.Kubectl("get", "tapp", "held", "--output=jsonpath={.spec.ordinals.start}"); got != "5" {
		t.Errorf("ordinals.start is %q", got)
	}
	r.Kubectl("patch", "tapp", "held", "--type=merge", `--patch={"spec":{"replicas":4}}`)
	ready(4)
	after := r.Starts("app=held")
	if _, ok := after["held-8"]; !ok {
		t.Errorf("the next instance is none of %v", after)
	}
	delete(after, "held-8")
	if !maps.Equal(after, before) {
		t.Errorf("the pods are\n%v\nand were\n%v", after, before)
	}
	for _, one := range r.Requests(requests, audit.Filter{}) {
		if one.Verb == "delete" && one.Resource == "pods" && one.Namespace == r.NS {
			t.Errorf("a pod was deleted: %s", one)
		}
	}
}
