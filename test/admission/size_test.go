//go:build cluster

package admission

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
	"tkestack.io/tapp/test/gen"
)

// room is how many instances there is room for, as a refusal says it.
var room = regexp.MustCompile(`(\d+) instances do;`)

// TestLargest: the status of as many instances as are admitted can be stored, with all
// that the API server adds, whatever becomes of them. Of more it could not.
func TestLargest(t *testing.T) {
	r := newRig(t, nil)
	neverMigrate := func(app *tappv1.TApp) { app.Spec.NeverMigrate = true }
	env := func(app *tappv1.TApp) {
		for n := range 8000 {
			gen.Env("VARIABLE_"+strconv.Itoa(n), strings.Repeat("x", 20))(&app.Spec.Template)
		}
	}
	pool := func(app *tappv1.TApp) { // of which managedFields say as much as the spec
		app.Spec.TemplatePool = map[string]corev1.PodTemplateSpec{}
		for n := range 1000 {
			app.Spec.TemplatePool["template-"+strconv.Itoa(n)] = *app.Spec.Template.DeepCopy()
		}
	}
	for name, options := range map[string][]gen.Option{"plain": nil, "with-nodes": {neverMigrate}, "with-env": {env}, "with-pool": {pool}} {
		t.Run(name, func(t *testing.T) {
			create := func(replicas int) (string, error) {
				return r.TryKubectlWith(text(t, manifest(name, append(options, gen.Replicas(int32(replicas)))...)), "create", "--filename", "-")
			}
			most := plan.MaxReplicas
			if out, err := create(most); err != nil {
				told := room.FindStringSubmatch(out)
				if told == nil {
					t.Fatalf("%d instances are refused, and not told how many do: %s", most, out)
				}
				most, _ = strconv.Atoi(told[1])
			} else {
				r.Kubectl("delete", "tapp", name)
			}
			if out, err := create(most); err != nil {
				t.Fatalf("%d instances are refused: %s", most, out)
			}
			status := map[string]any{"statuses": map[string]string{}, "observedGeneration": 1}
			statuses, nodes := map[string]string{}, map[string]string{}
			for id := range most {
				statuses[strconv.Itoa(id)] = string(tappv1.InstanceNotCreated)
				nodes[strconv.Itoa(id)] = strings.Repeat("n", 63)
			}
			status["statuses"] = statuses
			var conditions []metav1.Condition
			for _, kind := range []string{tappv1.ConditionReady, tappv1.ConditionProgressing, tappv1.ConditionStalled, tappv1.ConditionForceDeleted, tappv1.ConditionClaimsGrowing} {
				conditions = append(conditions, metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: "Longest", Message: strings.Repeat("m", 1024), LastTransitionTime: metav1.Now()})
			}
			status["conditions"] = conditions
			if name == "with-nodes" {
				status["nodes"] = nodes
			}
			patch, err := json.Marshal(map[string]any{"status": status})
			if err != nil {
				t.Fatal(err)
			}
			stored, err := r.TApps.Patch(r.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
			if err != nil {
				t.Fatalf("the status of %d instances: %v", most, err)
			}
			raw, err := json.Marshal(stored)
			if err != nil {
				t.Fatal(err)
			}
			owned := 0
			for _, m := range stored.ManagedFields {
				if m.Subresource == "" {
					owned += len(m.FieldsV1.GetRawBytes())
				}
			}
			t.Logf("%d instances take %d bytes, %d of them are managedFields of all but the status", most, len(raw), owned)
			for _, m := range stored.ManagedFields {
				if m.Subresource == "status" && len(m.FieldsV1.GetRawBytes()) > 1000 {
					t.Errorf("managedFields of the status have %d bytes", len(m.FieldsV1.GetRawBytes()))
				}
			}
			r.Kubectl("delete", "tapp", name)
			if out, err := create(most * 6 / 5); err == nil {
				t.Errorf("%d instances are admitted: %s", most*6/5, out)
			}
		})
	}
}
