package bases_test

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/randfill"

	appv1 "tkestack.io/tapp/crd/app/v1"
	"tkestack.io/tapp/crd/bases"
)

func appServer(t testing.TB) *apiServer {
	t.Helper()
	s, err := newAppServer()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// app is an App with these in its spec.
func app(t testing.TB, spec string) map[string]any {
	t.Helper()
	object := parse(t, "{apiVersion: appcontroller.k8s.io/v1, kind: App, metadata: {name: a}}")
	object["spec"] = parse(t, spec)
	return object
}

func TestAppAccepted(t *testing.T) {
	for name, c := range map[string]struct{ spec, stored string }{
		"nothing":              {`{}`, `{}`},
		"the first example":    {`{deploymentTemplate: {name: app-deploy, image: nginx, replicas: 2}, serviceTemplate: {name: app-service}}`, ""},
		"no replicas":          {`{deploymentTemplate: {name: a, image: a}}`, `{deploymentTemplate: {name: a, image: a, replicas: 1}}`},
		"zero replicas":        {`{deploymentTemplate: {name: a, image: a, replicas: 0}}`, ""},
		"a port without more":  {`{deploymentTemplate: {replicas: 1, ports: [{containerPort: 80}]}}`, ""},
		"one variable twice":   {`{deploymentTemplate: {replicas: 1, env: [{name: A}, {name: A, value: b}]}}`, ""},
		"numbers as quantity":  {`{deploymentTemplate: {replicas: 1, resources: {limits: {cpu: 0.5, memory: 1Gi}}}}`, ""},
		"a type and a port":    {`{serviceTemplate: {name: a, port: 80, type: LoadBalancer}}`, ""},
		"names for admission":  {`{serviceTemplate: {name: A_b}}`, ""},
		"emptied names, as is": {`{deploymentTemplate: {name: "", image: "", replicas: 1}, serviceTemplate: {name: ""}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			object := app(t, c.spec)
			if c.stored == "" {
				c.stored = c.spec
			}
			if err := appServer(t).write(t.Context(), object, nil); err != nil {
				t.Fatal(err)
			}
			if want := parse(t, c.stored); !reflect.DeepEqual(object["spec"], any(want)) {
				t.Errorf("stored as %v, want %v", object["spec"], want)
			}
			if want := parse(t, "{observedGeneration: -1}"); !reflect.DeepEqual(object["status"], any(want)) {
				t.Errorf("its status is %v before anybody looked", object["status"])
			}
		})
	}
}

func TestAppRejected(t *testing.T) {
	long := app(t, `{}`)
	long["metadata"].(map[string]any)["name"] = strings.Repeat("a", 64)
	for name, c := range map[string]struct {
		object map[string]any
		why    string
	}{
		"a long name":       {long, "the name has more than 63 characters, and the label of its pods could not hold it: choose a shorter one"},
		"negative replicas": {app(t, `{deploymentTemplate: {replicas: -1}}`), "spec.deploymentTemplate.replicas in body should be greater than or equal to 0"},
		"a large port":      {app(t, `{serviceTemplate: {port: 70000}}`), "spec.serviceTemplate.port in body should be less than or equal to 65535"},
		"an unknown type":   {app(t, `{serviceTemplate: {type: ExternalName}}`), `spec.serviceTemplate.type: Unsupported value: "ExternalName": supported values: "ClusterIP", "NodePort", "LoadBalancer"`},
		"a misspelt field":  {app(t, `{deploymenttemplate: {}}`), "unknown fields: [spec.deploymenttemplate]"},
		"text as quantity":  {app(t, `{deploymentTemplate: {resources: {limits: {cpu: much}}}}`), "spec.deploymentTemplate.resources.limits.cpu"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := appServer(t).write(t.Context(), c.object, nil); err == nil || !strings.Contains(err.Error(), c.why) {
				t.Errorf("rejected with %v, want %q", err, c.why)
			}
		})
	}
}

// TestAppNothingIsLost: every field that Go knows passes the API server unchanged,
// the copies of statuses among them.
func TestAppNothingIsLost(t *testing.T) {
	fill := randfill.NewWithSeed(1).NilChance(0).NumElements(1, 1).MaxDepth(30).Funcs(
		func(s *string, c randfill.Continue) { *s = "s" + strconv.FormatInt(c.Int63(), 36) },
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewQuantity(c.Int63n(1000), resource.DecimalSI)
		},
		func(p *corev1.ServiceType, _ randfill.Continue) { *p = corev1.ServiceTypeNodePort },
		func(i *int32, c randfill.Continue) { *i = 1 + c.Int31n(1000) },
		func(i *int64, c randfill.Continue) { *i = 1 + c.Int63n(1000) },
		func(m *metav1.Time, c randfill.Continue) { *m = metav1.NewTime(time.Unix(c.Int63n(1e9), 0)) },
		func(s *metav1.ConditionStatus, _ randfill.Continue) { *s = metav1.ConditionTrue },
		func(d *appsv1.DeploymentConditionType, _ randfill.Continue) { *d = appsv1.DeploymentAvailable },
		func(m *metav1.ObjectMeta, _ randfill.Continue) { m.Name = "a" },
	)
	for range 20 {
		a := &appv1.App{}
		fill.Fill(a)
		a.TypeMeta = metav1.TypeMeta{APIVersion: appv1.SchemeGroupVersion.String(), Kind: appv1.Kind}
		for i := range a.Status.Conditions {
			a.Status.Conditions[i].Type, a.Status.Conditions[i].Reason = appv1.ConditionReady, "Ready"
		}
		content, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		object := map[string]any{}
		if err := utiljson.Unmarshal(content, &object); err != nil {
			t.Fatal(err)
		}
		sent := runtime.DeepCopyJSON(object)
		if err := appServer(t).write(t.Context(), object, nil); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(object, sent) {
			t.Fatalf("the API server changed the object from %v to %v", sent, object)
		}
		stored, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		back := &appv1.App{}
		if err := utiljson.Unmarshal(stored, back); err != nil {
			t.Fatal(err)
		}
		if !equality.Semantic.DeepEqual(a, back) {
			t.Error("the object differs after a round trip")
		}
	}
}

// TestApproval: groups below k8s.io need the annotation, which says honestly that
// nobody approved of ours.
func TestApproval(t *testing.T) {
	crds, err := bases.CRDs(appv1.Kind)
	if err != nil || len(crds) != 1 {
		t.Fatalf("%d CRDs, %v", len(crds), err)
	}
	if got := crds[0].Annotations["api-approved.kubernetes.io"]; !strings.HasPrefix(got, "unapproved, ") {
		t.Errorf("the annotation is %q", got)
	}
}
