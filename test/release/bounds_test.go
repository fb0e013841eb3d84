//go:build cluster

package release

import (
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"tkestack.io/tapp/test/cluster"
)

// noise of so many bytes cannot be compressed.
func noise(size int) string {
	out := make([]byte, size)
	source := rand.NewChaCha8([32]byte{1})
	_, _ = source.Read(out)
	return string(out)
}

// TestCRDs: what crds/ of a chart has is there before the objects of its kinds, is never
// changed, and stays when the release goes, as helm leaves it.
func TestCRDs(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.control()
	group := r.namespace + ".example.com"
	files := func(description string) map[string]string {
		return with(map[string]string{
			"crds/webs.yaml": fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: webs.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {kind: Web, plural: webs, singular: web}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, description: %[2]s, properties: {spec: {type: object, properties: {word: {type: string}}}}}}}]
`, group, description),
			"templates/web.yaml": fmt.Sprintf("apiVersion: %s/v1\nkind: Web\nmetadata: {name: {{ .Release.Name }}}\nspec: {word: {{ .Values.greeting }}}\n", group),
		})
	}
	t.Cleanup(func() {
		_, _ = r.Command(context.WithoutCancel(t.Context()), "", "kubectl", "delete", "crd", "webs."+group, "--ignore-not-found", "--timeout=5m")
	})
	first, _ := pack(t, files("first"))
	r.podSet(raw(first), "greeting: one")
	r.says(well)
	same(t, "the object", r.kubectl("get", "webs."+group, "web", "--output=jsonpath={.spec.word}"), "one")

	second, _ := pack(t, files("second"))
	r.podSet(raw(second), "greeting: two")
	r.says(well)
	same(t, "the object", r.kubectl("get", "webs."+group, "web", "--output=jsonpath={.spec.word}"), "two")
	same(t, "helm history", r.history("web"), []string{"1 superseded web-1.2.3: Install complete", "2 deployed web-1.2.3: Upgrade complete"})
	crd := "--output=jsonpath={.spec.versions[0].schema.openAPIV3Schema.description}"
	same(t, "the definition", r.kubectl("get", "crd", "webs."+group, crd), "first")

	r.kubectl("delete", "advdeployment", "app", "--timeout=5m")
	same(t, "left", r.left(), []string(nil))
	same(t, "objects of the kind", r.kubectl("get", "webs."+group, "--output=name"), "")
	same(t, "the definition", r.kubectl("get", "crd", "webs."+group, crd), "first")
}

// TestLargePodSets: a podSet may have a chart whose record just fits into a Secret, and helm
// reads it. One that does not fit is refused with words, and what is deployed stays.
func TestLargePodSets(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.control()
	archive, _ := pack(t, with(map[string]string{"files/noise": noise(730 << 10)}))
	r.podSet(raw(archive), "greeting: one")
	r.says(well)
	if size := len(r.kubectl("get", "secret", "sh.helm.release.v1.web.v1", "--output=jsonpath={.data.release}")) / 4 * 3; size < 1_000_000 {
		t.Errorf("the record has %d bytes", size)
	}
	same(t, "helm history", r.history("web"), []string{"1 deployed web-1.2.3: Install complete"})

	r.podSet(raw(archive), "greeting: two\nnoise: "+base64.StdEncoding.EncodeToString([]byte(noise(100<<10))))
	r.says(`Refused: release "web": the cluster refuses Release "web": chart web-1.2.3: its record has `)
	r.says(" bytes, and a Secret holds 1048576: keep files out of the chart with .helmignore, or make values and manifests smaller")
	same(t, "helm history", r.history("web"), []string{"1 deployed web-1.2.3: Install complete"})
	same(t, "the object", r.kubectl("get", "configmap", "web-settings", "--output=jsonpath={.data.greeting}"), "one")
	r.kubectl("delete", "deployment", "web")
	cluster.Eventually(t, "what is deleted comes back from the record", func(context.Context) error {
		got := r.kubectl("get", "deployments", "--output=name")
		return cluster.When(!strings.HasPrefix(got, "deployment.apps/web"), got)
	})

	r.podSet(raw(archive), "greeting: three")
	r.says(well)
	same(t, "the object", r.kubectl("get", "configmap", "web-settings", "--output=jsonpath={.data.greeting}"), "three")
	r.kubectl("delete", "advdeployment", "app", "--timeout=5m")
	same(t, "left", r.left(), []string(nil))
}
