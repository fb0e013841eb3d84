package tapp

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
	"tkestack.io/tapp/webhook/review"
)

// FuzzReview: whatever comes in is answered, without a panic, and with the UID that
// it had.
func FuzzReview(f *testing.F) {
	f.Add(reviewOf(f, requestFor(object(f, ""), nil)))
	f.Add(reviewOf(f, requestFor(object(f, "replicas: 5"), object(f, ""))))
	f.Add([]byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","kind":{"group":"autoscaling","version":"v1","kind":"Scale"},` +
		`"resource":{"group":"apps.tkestack.io","version":"v1","resource":"tapps"},"subResource":"scale","operation":"UPDATE","name":"web","object":{"spec":{"replicas":3}}}}`))
	f.Add([]byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`))
	webhooks := handlers(newTestValidator())
	f.Fuzz(func(t *testing.T, body []byte) {
		for path, h := range webhooks {
			w := post(h, path, body)
			if w.Code == 400 {
				continue
			}
			var in, out admissionv1.AdmissionReview
			if err := json.Unmarshal(w.Body.Bytes(), &out); w.Code != 200 || err != nil || out.Response == nil || !out.Response.Allowed && out.Response.Result == nil {
				t.Fatalf("%s: %d, %v: %s", path, w.Code, err, w.Body)
			}
			if err := json.Unmarshal(body, &in); err == nil && in.Request != nil && in.Request.UID != out.Response.UID {
				t.Fatalf("%s: UID %q became %q", path, in.Request.UID, out.Response.UID)
			}
		}
	})
}

// FuzzValidate: any object gets a verdict, also after completion, which is
// idempotent; and the planner has nothing against what is admitted.
func FuzzValidate(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "bad", "*.yaml"))
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds, error %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for document := range strings.SplitSeq(string(text), "---\n") {
			if seed, err := yaml.YAMLToJSON([]byte(document)); err == nil {
				f.Add(seed)
			}
		}
	}
	f.Add(object(f, ""))
	v := newTestValidator()
	f.Fuzz(func(t *testing.T, given []byte) {
		var object map[string]any
		if err := kjson.Unmarshal(given, &object); err != nil || object == nil {
			return
		}
		c := completionOf(t, given, nil)
		if len(c.Denied) > 0 {
			return
		}
		stored := patched(t, given, c)
		if again := completionOf(t, stored, nil); len(again.Patch) > 0 {
			t.Fatalf("completed again: %v\nof %s", again.Patch, stored)
		}
		about, err := review.Decode[*tappv1.TApp](reviewOf(t, requestFor(stored, nil)))
		if err != nil || about.Object == nil {
			return
		}
		a, err := v.Validate(t.Context(), about)
		if err != nil || !a.Allowed {
			return
		}
		tapp, err := decodeTApp(stored)
		if err != nil {
			t.Fatal(err)
		}
		tapp.Namespace = "shop"
		tapp.Status, tapp.DeletionTimestamp = tappv1.TAppStatus{}, nil // which the API server sets
		if problems := plan.Compute(plan.Input{TApp: tapp, Now: now}).Problems; len(problems) > 0 {
			t.Fatalf("it is admitted, and the planner says %+v\nof %s", problems, stored)
		}
	})
}
