package bases_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"pgregory.net/rapid"
	"sigs.k8s.io/randfill"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// full makes a TApp that sets every field that its Go types have.
func full(t testing.TB, seed int64) map[string]any {
	t.Helper()
	tapp := &tappv1.TApp{}
	randfill.NewWithSeed(seed).NilChance(0).NumElements(1, 1).MaxDepth(30).Funcs(
		func(s *string, c randfill.Continue) { *s = "s" + c.String(10) }, // an empty one may be left out
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewMilliQuantity(c.Int63n(1e6), resource.DecimalSI)
		},
		func(v *intstr.IntOrString, c randfill.Continue) {
			if *v = intstr.FromInt32(c.Int31()); c.Bool() {
				*v = intstr.FromString(c.String(10))
			}
		},
		func(time *metav1.Time, c randfill.Continue) { *time = metav1.Unix(c.Int63n(1e9), 0) },
		func(f *metav1.FieldsV1, _ randfill.Continue) { f.SetRawString(`{}`) },
		func(s *tappv1.InstanceStatus, _ randfill.Continue) { *s = tappv1.InstanceKilled },
		func(p *tappv1.InPlaceUpdatePolicy, _ randfill.Continue) { *p = tappv1.InPlaceOnly },
		func(s *tappv1.DefaultTopologySpread, _ randfill.Continue) { *s = tappv1.SystemTopologySpread },
		func(p *tappv1.InitImagesPolicy, _ randfill.Continue) { *p = tappv1.InitImagesNextStart },
		func(p *tappv1.PersistentVolumeClaimRetentionPolicyType, _ randfill.Continue) {
			*p = tappv1.DeletePersistentVolumeClaim
		},
		func(c *metav1.Condition, _ randfill.Continue) {
			*c = metav1.Condition{Type: tappv1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Ready", LastTransitionTime: metav1.Unix(1, 0)}
		},
		func(r *corev1.ContainerRestartRule, c randfill.Continue) {
			c.FillNoCustom(r)
			r.Action, r.ExitCodes.Operator = corev1.ContainerRestartRuleActionRestart, corev1.ContainerRestartRuleOnExitCodesOpIn
		},
		func(i *int32, c randfill.Continue) { *i = 1 + c.Int31n(1000) },
		func(i *int64, c randfill.Continue) { *i = 1 + c.Int63n(1000) },
		func(m *metav1.ObjectMeta, c randfill.Continue) {
			c.FillNoCustom(m)
			// These mean nothing in a template, and the schema does not have them.
			m.OwnerReferences, m.ManagedFields, m.DeletionTimestamp, m.DeletionGracePeriodSeconds = nil, nil, nil, nil
		},
	).Fill(tapp)
	tapp.TypeMeta = metav1.TypeMeta{APIVersion: tappv1.SchemeGroupVersion.String(), Kind: tappv1.Kind}

	content, err := json.Marshal(tapp)
	if err != nil {
		t.Fatal(err)
	}
	object := map[string]any{}
	if err := utiljson.Unmarshal(content, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

// TestNothingIsLost: every field that Go knows passes the API server unchanged. It
// fails when a newer k8s.io/api comes without "make generate".
func TestNothingIsLost(t *testing.T) {
	for seed := range int64(20) {
		object := full(t, seed)
		sent := runtime.DeepCopyJSON(object)
		if err := server(t).write(t.Context(), object, nil); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if !reflect.DeepEqual(object, sent) {
			t.Fatalf("seed %d: the API server changed the object", seed)
		}
		stored, err := decode(object)
		if err != nil {
			t.Fatal(err)
		}
		original, err := decode(sent)
		if err != nil {
			t.Fatal(err)
		}
		if !equality.Semantic.DeepEqual(stored, original) {
			t.Errorf("seed %d: the object differs after a round trip", seed)
		}
	}
}

// nasty values, some of which belong nowhere.
var nasty = []any{
	nil, true, "", "a", "1", "-1", "1.5", "0.5Gi", "1e99", "1e3.5", "2020-01-01 00:00:00Z", "2020-01-01T00:00:00.5+01:00",
	int64(-1), int64(0), int64(1 << 31), int64(1 << 62), 0.5, 1.0, 1e30, -1e300,
	map[string]any{}, map[string]any{"a": "b"}, []any{}, []any{nil}, []any{"a"}, []any{map[string]any{}},
}

// TestStoredMeansDecodable: what passes the API server decodes into our Go types.
// One object that does not would break the list of all TApps in the cluster.
func TestStoredMeansDecodable(t *testing.T) {
	whole := full(t, 1)
	// All pod templates have one schema, and so do all containers.
	spec := whole["spec"].(map[string]any)
	delete(spec, "templatePool")
	for _, containers := range []string{"initContainers", "ephemeralContainers"} {
		delete(spec["template"].(map[string]any)["spec"].(map[string]any), containers)
	}
	content, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	server := server(t)
	rapid.Check(t, func(t *rapid.T) {
		object := map[string]any{}
		if err := utiljson.Unmarshal(content, &object); err != nil {
			t.Fatal(err)
		}
		where := spoil(t, object)
		if err := server.write(t.Context(), object, nil); err != nil {
			return
		}
		if _, err := decode(object); err != nil {
			t.Errorf("%s was stored and does not decode: %v", where, err)
		}
	})
}

// place is somewhere in an object where a value stands.
type place struct {
	path string
	set  func(any)
}

// spoil replaces one value anywhere in the object.
func spoil(t *rapid.T, object map[string]any) string {
	all := append(places("spec", object["spec"]), places("status", object["status"])...)
	slices.SortFunc(all, func(a, b place) int { return strings.Compare(a.path, b.path) })
	p := rapid.SampledFrom(all).Draw(t, "place")
	value := rapid.SampledFrom(nasty).Draw(t, "value")
	p.set(runtime.DeepCopyJSONValue(value))
	return fmt.Sprintf("%s = %#v", p.path, value)
}

func places(path string, v any) []place {
	var found []place
	switch v := v.(type) {
	case map[string]any:
		for key, child := range v {
			found = append(found, place{path + "." + key, func(n any) { v[key] = n }})
			found = append(found, places(path+"."+key, child)...)
		}
	case []any:
		for i, child := range v {
			here := fmt.Sprintf("%s[%d]", path, i)
			found = append(found, place{here, func(n any) { v[i] = n }})
			found = append(found, places(here, child)...)
		}
	}
	return found
}
