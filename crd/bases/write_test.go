package bases_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// withSpec is the least TApp that the API server takes, with more in its spec.
func withSpec(t testing.TB, more string) map[string]any {
	t.Helper()
	object := parse(t, `
apiVersion: apps.tkestack.io/v1
kind: TApp
metadata: {name: a}
spec:
  template:
    metadata: {labels: {app: a}}
    spec: {containers: [{name: main, image: a:1}]}
`)
	maps.Copy(object["spec"].(map[string]any), parse(t, more))
	return object
}

// withPod is the same with more in its pod template's spec.
func withPod(t testing.TB, more string) map[string]any {
	t.Helper()
	object := withSpec(t, "")
	template := object["spec"].(map[string]any)["template"].(map[string]any)
	maps.Copy(template["spec"].(map[string]any), parse(t, more))
	return object
}

func parse(t testing.TB, text string) map[string]any {
	t.Helper()
	content, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	object := map[string]any{}
	if err := utiljson.Unmarshal(content, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

// decode reads a stored object as our informers do.
func decode(object map[string]any) (*tappv1.TApp, error) {
	content, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	tapp := &tappv1.TApp{}
	return tapp, utiljson.Unmarshal(content, tapp)
}

// TestTutorial: the manifests of tkestack/tapp's tutorial are stored as they are,
// with the status of what nobody has looked at.
func TestTutorial(t *testing.T) {
	files, err := filepath.Glob("../../test/e2e/testdata/tutorial-*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			f, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = f.Close() }()
			for decoder := utilyaml.NewYAMLOrJSONDecoder(f, 4096); ; {
				var raw runtime.RawExtension
				if err := decoder.Decode(&raw); errors.Is(err, io.EOF) {
					return
				} else if err != nil {
					t.Fatal(err)
				}
				object := parse(t, string(raw.Raw))
				if object["kind"] != tappv1.Kind {
					continue
				}
				want := runtime.DeepCopyJSON(object)
				want["status"] = parse(t, "{observedGeneration: -1}")
				if err := server(t).write(t.Context(), object, nil); err != nil {
					t.Error(err)
				}
				if !reflect.DeepEqual(object, want) {
					t.Errorf("the API server changed the object to %v", object)
				}
				if _, err := decode(object); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestAccepted: what the original or Kubernetes accepts is stored, and nothing is
// added to a template.
func TestAccepted(t *testing.T) {
	for name, object := range map[string]map[string]any{
		"nothing but a template":          withSpec(t, ``),
		"no replicas":                     withSpec(t, `replicas: 0`),
		"percentages":                     withSpec(t, `updateStrategy: {maxUnavailable: 20%, forceUpdate: {maxUnavailable: 1}}`),
		"budgets for the controller":      withSpec(t, `updateStrategy: {maxUnavailable: -3, forceUpdate: {maxUnavailable: many}}`),
		"ids for the controller":          withSpec(t, `{templates: {"01": "", x: none}, statuses: {"-1": Killed}}`),
		"every status":                    withSpec(t, `statuses: {"0": NotCreated, "1": Running, "2": Unknown, "3": PodSucc}`),
		"a template without pod":          withSpec(t, `templatePool: {empty: {}}`),
		"both spellings":                  withSpec(t, `{defaultTemplateName: a, DefaultTemplateName: b}`),
		"a template from Go":              withSpec(t, `templatePool: {go: {metadata: {creationTimestamp: null}, spec: {containers: [{name: a, resources: {}}]}}}`),
		"a dated template":                withSpec(t, `templatePool: {go: {metadata: {creationTimestamp: "2020-01-01T00:00:00Z"}}}`),
		"a claim from Go":                 withSpec(t, `volumeClaimTemplates: [{metadata: {name: www, creationTimestamp: null}, spec: {resources: {requests: {storage: 1Gi}}}, status: {phase: Pending}}]`),
		"numbers as quantities":           withPod(t, `containers: [{name: a, resources: {limits: {cpu: 0.5, memory: 1e9}, requests: {cpu: 1, memory: "1E2"}}}]`),
		"texts as quantities":             withPod(t, `overhead: {a: "1", b: "+0.5", c: .5Gi, d: 5., e: 1e-3, f: 100m}`),
		"a port without protocol":         withPod(t, `containers: [{name: a, ports: [{containerPort: 80}]}]`),
		"one port twice":                  withPod(t, `containers: [{name: a, ports: [{containerPort: 80, name: a}, {containerPort: 80, name: b}]}]`),
		"one variable twice":              withPod(t, `containers: [{name: a, env: [{name: A}, {name: A, value: b}]}]`),
		"one pull secret twice":           withPod(t, `imagePullSecrets: [{name: a}, {name: a}, {}]`),
		"one host alias twice":            withPod(t, `hostAliases: [{ip: 1.2.3.4, hostnames: [a]}, {ip: 1.2.3.4, hostnames: [b]}]`),
		"probes by number and by name":    withPod(t, `containers: [{name: a, livenessProbe: {httpGet: {port: http}}, readinessProbe: {tcpSocket: {port: 80}}}]`),
		"references that have no default": withPod(t, `volumes: [{name: a, configMap: {}}, {name: b, rbd: {image: a, monitors: []}}, {name: c, iscsi: {iqn: a, lun: 0, targetPortal: a}}]`),
		"values for Kubernetes to reject": withPod(t, `{restartPolicy: Sometimes, evictionResponders: [{name: "", priority: -1}], terminationGracePeriodSeconds: -5}`),
	} {
		t.Run(name, func(t *testing.T) {
			before := runtime.DeepCopyJSON(object)
			if err := server(t).write(t.Context(), object, nil); err != nil {
				t.Fatal(err)
			}
			for _, field := range []string{"template", "templatePool", "volumeClaimTemplates"} {
				stored, sent := object["spec"].(map[string]any)[field], before["spec"].(map[string]any)[field]
				if !reflect.DeepEqual(stored, sent) {
					t.Errorf("the API server changed %s from %v to %v", field, sent, stored)
				}
			}
			if _, err := decode(object); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestRejected: the message of each rejection says what is wrong.
func TestRejected(t *testing.T) {
	for name, test := range map[string]struct {
		object map[string]any
		why    string
	}{
		"negative replicas":     {withSpec(t, `replicas: -1`), "spec.replicas in body should be greater than or equal to 0"},
		"replicas over int32":   {withSpec(t, `replicas: 3000000000`), "spec.replicas"},
		"a reserved name":       {withSpec(t, `templatePool: {default: {}}`), "the name default is reserved for spec.template"},
		"an unknown status":     {withSpec(t, `statuses: {"1": Dead}`), "spec.statuses.1: Unsupported value"},
		"an unknown policy":     {withSpec(t, `updateStrategy: {inPlaceUpdate: {policy: Never}}`), "spec.updateStrategy.inPlaceUpdate.policy: Unsupported value"},
		"a misspelt field":      {withSpec(t, `updatestrategy: {}`), "unknown fields: [spec.updatestrategy]"},
		"a misspelt pod field":  {withPod(t, `restartpolicy: Never`), "unknown fields: [spec.template.spec.restartpolicy]"},
		"no containers":         {withSpec(t, `templatePool: {a: {spec: {}}}`), "spec.templatePool.a.spec.containers: Required value"},
		"one container twice":   {withPod(t, `containers: [{name: a}, {name: a}]`), "Duplicate value"},
		"a budget over int32":   {withSpec(t, `updateStrategy: {maxUnavailable: 3000000000}`), "spec.updateStrategy.maxUnavailable"},
		"a port over int32":     {withPod(t, `containers: [{name: a, livenessProbe: {httpGet: {port: 3000000000}}}]`), "livenessProbe.httpGet.port"},
		"text as a quantity":    {withPod(t, `overhead: {cpu: much}`), "spec.template.spec.overhead.cpu"},
		"true as a quantity":    {withPod(t, `overhead: {cpu: true}`), "spec.template.spec.overhead.cpu"},
		"an object as quantity": {withPod(t, `overhead: {cpu: {}}`), "spec.template.spec.overhead.cpu"},
		"a list as quantity":    {withPod(t, `overhead: {cpu: [1]}`), "spec.template.spec.overhead.cpu"},
		"a huge exponent":       {withPod(t, `overhead: {cpu: "1e999999999"}`), "spec.template.spec.overhead.cpu"},
	} {
		t.Run(name, func(t *testing.T) {
			err := server(t).write(t.Context(), test.object, nil)
			if err == nil || !strings.Contains(err.Error(), test.why) {
				t.Errorf("rejected with %v, want %q", err, test.why)
			}
		})
	}
}

// TestBounds: what instances and templates are named in has as many entries as the constants
// say, and no more.
func TestBounds(t *testing.T) {
	many := func(entries int, value any) map[string]any {
		out := make(map[string]any, entries)
		for n := range entries {
			out[strconv.Itoa(n)] = value
		}
		return out
	}
	pod := withSpec(t, "")["spec"].(map[string]any)["template"]
	for field, test := range map[string]struct {
		most  int
		value any
	}{
		"templates":    {tappv1.MaxEntries, "a"},
		"statuses":     {tappv1.MaxEntries, "Killed"},
		"templatePool": {tappv1.MaxTemplates, pod},
	} {
		object := withSpec(t, "")
		spec := object["spec"].(map[string]any)
		spec[field] = many(test.most, test.value)
		if err := server(t).write(t.Context(), object, nil); err != nil {
			t.Errorf("%d entries of %s: %v", test.most, field, err)
		}
		spec[field] = many(test.most+1, test.value)
		if err, want := server(t).write(t.Context(), object, nil), fmt.Sprintf("spec.%s: Too many: %d: must have at most %d items", field, test.most+1, test.most); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d entries of %s: %v, want %q", test.most+1, field, err, want)
		}
	}
}

// TestImmutable: the API server itself refuses what would abandon pods or claims.
func TestImmutable(t *testing.T) {
	const (
		claimA = `volumeClaimTemplates: [{metadata: {name: a}, spec: {resources: {requests: {storage: 1Gi}}}}]`
		larger = `volumeClaimTemplates: [{metadata: {name: a}, spec: {resources: {requests: {storage: 2Gi}}}}]`
		claimB = `volumeClaimTemplates: [{metadata: {name: b}, spec: {resources: {requests: {storage: 1Gi}}}}]`
	)
	for name, test := range map[string]struct{ from, to, why string }{
		"serviceName stays":     {`serviceName: a`, `serviceName: a`, ""},
		"serviceName emptied":   {``, `serviceName: ""`, ""},
		"serviceName changed":   {`serviceName: a`, `serviceName: b`, "spec.serviceName: Invalid value"},
		"serviceName added":     {``, `serviceName: b`, "serviceName is immutable"},
		"serviceName removed":   {`serviceName: a`, ``, "serviceName is immutable"},
		"selector set once":     {``, `selector: {matchLabels: {app: a}}`, ""},
		"selector stays":        {`selector: {matchLabels: {app: a}}`, `{selector: {matchLabels: {app: a}}, paused: true}`, ""},
		"selector changed":      {`selector: {matchLabels: {app: a}}`, `selector: {matchLabels: {app: b}}`, "spec.selector: Invalid value"},
		"selector removed":      {`selector: {matchLabels: {app: a}}`, ``, "selector is immutable"},
		"claims stay":           {claimA, claimA, ""},
		"claims grow":           {claimA, larger, ""},
		"claims added":          {``, claimA, "volumeClaimTemplates cannot be added, removed or renamed"},
		"claims removed":        {claimA, ``, "volumeClaimTemplates cannot be added, removed or renamed"},
		"claims renamed":        {claimA, claimB, "spec.volumeClaimTemplates: Invalid value"},
		"claims without a name": {`volumeClaimTemplates: [{}]`, `{volumeClaimTemplates: [{}], paused: true}`, ""},
		"no claims":             {``, `volumeClaimTemplates: []`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			old, object := withSpec(t, test.from), withSpec(t, test.to)
			if err := server(t).write(t.Context(), old, nil); err != nil {
				t.Fatal(err)
			}
			err := server(t).write(t.Context(), object, old)
			if test.why == "" && err != nil {
				t.Error(err)
			}
			if test.why != "" && (err == nil || !strings.Contains(err.Error(), test.why)) {
				t.Errorf("rejected with %v, want %q", err, test.why)
			}
		})
	}
}
