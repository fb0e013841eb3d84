package tapp

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
	"tkestack.io/tapp/webhook/review"
)

func pick[T any](t *rapid.T, what string, values ...T) T {
	return rapid.SampledFrom(values).Draw(t, what)
}

// maybe puts one of some values, or none, under a key.
func maybe(t *rapid.T, m map[string]any, key string, values ...any) {
	if n := rapid.IntRange(0, len(values)).Draw(t, key); n > 0 {
		m[key] = values[n-1]
	}
}

type jsonMap = map[string]any

// drawTemplate draws a pod template as a user may write it.
func drawTemplate(t *rapid.T, labels ...any) any {
	container := jsonMap{"name": "web"}
	maybe(t, container, "image", "web:1", "web:2", "web:3")
	maybe(t, container, "resources", jsonMap{}, nil, jsonMap{"requests": jsonMap{"cpu": "0.5"}}, jsonMap{"requests": jsonMap{"cpu": "500m"}})
	maybe(t, container, "env", []any{jsonMap{"name": "LEVEL", "value": "1"}}, []any{})
	spec := jsonMap{"containers": []any{container}}
	maybe(t, spec, "initContainers", []any{jsonMap{"name": "setup", "image": pick(t, "init", "setup:1", "setup:2")}})
	maybe(t, spec, "newer", true, jsonMap{"field": 1})
	template := jsonMap{"spec": spec}
	metadata := jsonMap{}
	maybe(t, metadata, "labels", labels...)
	maybe(t, metadata, "annotations", jsonMap{"team": "shop"}, nil)
	maybe(t, template, "metadata", metadata, metadata, metadata, nil)
	return template
}

// some of the values: the good ones, and in a wild draw the bad ones too.
func some(wild bool, good []any, bad ...any) []any {
	if wild {
		return append(good, bad...)
	}
	return good
}

// drawObject draws a TApp as a user may write it, half of the time a wild one.
func drawObject(t *rapid.T) jsonMap {
	wild := rapid.Bool().Draw(t, "wild")
	labels := some(wild, []any{jsonMap{"app": "web"}, jsonMap{"app": "web", "tapp_template_hash_key": "12", "tapp_uniq_hash_key": "v1-0"}},
		jsonMap{"app": "web", "tier": "front"}, jsonMap{}, jsonMap{"app": "shop"}, nil)
	template := func() any {
		out := drawTemplate(t, labels...)
		if m, ok := out.(jsonMap); ok && !wild {
			m["metadata"] = jsonMap{"labels": pick(t, "good labels", labels...)}
		}
		return out
	}
	spec := jsonMap{"template": template()}
	pool := jsonMap{"canary": template(), "blue": template()}
	if wild && rapid.Bool().Draw(t, "bad name") {
		pool["Bad_1"] = template()
		delete(pool, pick(t, "gone", "canary", "blue", ""))
	}
	spec["templatePool"] = pool
	if wild {
		maybe(t, spec, "templatePool", pool, pool, nil)
	}
	names := some(wild, []any{"canary", "blue", "default", ""}, "gone")
	maybe(t, spec, "replicas", some(wild, []any{0, 1, 3, nil}, 60000)...)
	maybe(t, spec, "selector", some(wild, []any{jsonMap{"matchLabels": jsonMap{"app": "web"}}, nil, jsonMap{"matchLabels": jsonMap{"app": "web", "tapp_uniq_hash_key": "v1-0"}},
		jsonMap{"matchExpressions": []any{jsonMap{"key": "app", "operator": "Exists"}}}}, jsonMap{})...)
	maybe(t, spec, "defaultTemplateName", names...)
	if rapid.IntRange(0, 4).Draw(t, "legacy") == 0 {
		spec["DefaultTemplateName"] = pick(t, "name", names...)
	}
	templates := jsonMap{}
	for _, id := range some(wild, []any{"0", "1", "7"}, "01") {
		maybe(t, templates, id.(string), names...)
	}
	maybe(t, spec, "templates", templates, templates, nil)
	maybe(t, spec, "statuses", some(wild, []any{jsonMap{"0": "Killed"}, jsonMap{"1": "Failed", "2": "Running"}}, jsonMap{"x": "Killed"})...)
	strategy := jsonMap{}
	maybe(t, strategy, "template", names...)
	maybe(t, strategy, "maxUnavailable", some(wild, []any{1, "50%", nil}, 0)...)
	maybe(t, strategy, "forceUpdate", some(wild, []any{jsonMap{}, jsonMap{"maxUnavailable": "30%"}, nil}, jsonMap{"maxUnavailable": "none"})...)
	maybe(t, strategy, "inPlaceUpdate", jsonMap{}, jsonMap{"policy": "ReCreate"}, jsonMap{"drain": false}, jsonMap{"policy": ""})
	maybe(t, spec, "updateStrategy", strategy, strategy, nil)
	maybe(t, spec, "serviceName", some(wild, []any{"web"}, "Web")...)
	maybe(t, spec, "autoDeleteUnusedTemplate", true, false)
	maybe(t, spec, "persistentVolumeClaimRetentionPolicy", jsonMap{"whenScaled": "Delete"}, nil)
	maybe(t, spec, "volumeClaimTemplates", some(wild, []any{nil, []any{}}, []any{jsonMap{"metadata": jsonMap{"name": "data"}}})...)
	return jsonMap{"apiVersion": "apps.tkestack.io/v1", "kind": "TApp", "metadata": jsonMap{"name": "web", "namespace": "shop", "uid": "1", "generation": 1}, "spec": spec}
}

func render(t rapid.TB, object any) []byte {
	t.Helper()
	out, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// mutated is the object after the webhook; false if it is denied there.
func mutated(t *rapid.T, object, old []byte) ([]byte, bool) {
	c := completionOf(t, object, old)
	return patched(t, object, c), len(c.Denied) == 0
}

// TestMutateIsIdempotent: on what it made, and on the manifest applied again in
// each of the ways in which users do.
func TestMutateIsIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		manifest := drawObject(t)
		given := render(t, manifest)
		stored, ok := mutated(t, given, nil)
		if !ok {
			return
		}
		var live jsonMap
		if err := json.Unmarshal(stored, &live); err != nil {
			t.Fatal(err)
		}
		for how, again := range map[string][]byte{
			"created": stored, "put": given, "applied": render(t, mergedTrees(live, manifest)),
		} {
			old := stored
			if how == "created" {
				old = nil
			}
			got, ok := mutated(t, again, old)
			if !ok || !sameJSON(t, got, stored) {
				t.Fatalf("%s again, it is\n%s\nand was\n%s\nof %s", how, got, stored, given)
			}
		}
	})
}

// mergedTrees is what apply makes of a stored object and a manifest.
func mergedTrees(live, manifest jsonMap) jsonMap {
	out := maps.Clone(live)
	for key, value := range manifest {
		has, isObject := out[key].(jsonMap)
		if over, ok := value.(jsonMap); ok && isObject && key != "selector" { // which is atomic
			out[key] = mergedTrees(has, over)
		} else if value != nil {
			out[key] = value
		}
	}
	return out
}

func sameJSON(t *rapid.T, a, b []byte) bool {
	var x, y any
	if err := json.Unmarshal(a, &x); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &y); err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(x, y)
}

// TestMutateKeepsTheMeaning: the planner does the same with and without it, to the
// same pods.
func TestMutateKeepsTheMeaning(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		manifest := drawObject(t)
		given := render(t, manifest)
		stored, ok := mutated(t, given, nil)
		if !ok {
			return
		}
		before, after := decoded(t, given), decoded(t, stored)
		if before.Spec.Selector == nil && after.Spec.Selector != nil { // the first thing that is done without it
			before.Status.ScaleLabelSelector = metav1.FormatLabelSelector(after.Spec.Selector)
		}
		pods := drawPods(t, before)
		p, q := plan.Compute(plan.Input{TApp: before, Pods: pods, Now: now}), plan.Compute(plan.Input{TApp: after, Pods: pods, Now: now})
		if diff := differ(p, q); diff != "" {
			t.Fatalf("%s\nof %s\nand %s", diff, given, stored)
		}
	})
}

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func decoded(t *rapid.T, object []byte) *tappv1.TApp {
	out, err := decodeTApp(object)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// drawPods are some that older templates made.
func drawPods(t *rapid.T, tapp *tappv1.TApp) (pods []*corev1.Pod) {
	old := tapp.DeepCopy()
	if len(old.Spec.Template.Spec.Containers) > 0 {
		old.Spec.Template.Spec.Containers[0].Image = pick(t, "old image", "web:1", "web:9")
		delete(old.Spec.Template.Labels, tappv1.LabelTemplateHash) // of another image
	}
	for id := range rapid.IntRange(0, 3).Draw(t, "pods") {
		if pod := plan.PodOf(old, tappv1.DefaultTemplateName, id); pod != nil {
			pod.UID = "pod"
			pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(tapp, tappv1.GroupVersionKind())}
			pods = append(pods, pod)
		}
	}
	return pods
}

// differ says in what two plans differ that matters to pods and to users.
func differ(p, q plan.Plan) string {
	pods := func(p plan.Plan) []plan.Action {
		// Revisions record the pool too, from which unused templates may have gone.
		return slices.DeleteFunc(slices.Clone(p.Actions), func(a plan.Action) bool { return a.Revision != nil })
	}
	problems := func(p plan.Plan) (out []string) {
		for _, problem := range p.Problems { // the sentences list templates
			out = append(out, problem.Field+" "+problem.Reason)
		}
		return out
	}
	switch {
	case !equality.Semantic.DeepEqual(pods(p), pods(q)):
		return fmt.Sprintf("actions %+v\nand %+v", pods(p), pods(q))
	case !slices.Equal(problems(p), problems(q)):
		return fmt.Sprintf("problems %v\nand %v", problems(p), problems(q))
	case len(p.Instances) != len(q.Instances):
		return strconv.Itoa(len(p.Instances)) + " instances, and " + strconv.Itoa(len(q.Instances))
	}
	return ""
}

// TestVerdictsAreConsistent: the judgement of an object is that of its completion,
// what was admitted is admitted again, and the planner has nothing against it.
func TestVerdictsAreConsistent(t *testing.T) {
	v := newTestValidator()
	rapid.Check(t, func(t *rapid.T) {
		manifest := drawObject(t)
		given := render(t, manifest)
		stored, ok := mutated(t, given, nil)
		if !ok {
			return
		}
		verdict := func(object, old []byte) review.Answer {
			a, err := v.Validate(t.Context(), asked[*tappv1.TApp](t, requestFor(object, old)))
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		a := verdict(stored, nil)
		if bare := verdict(given, nil); a.Allowed != bare.Allowed && decoded(t, given).Spec.AutoDeleteUnusedTemplate == false {
			t.Fatalf("allowed %v, and %v without completion: %+v %+v\nof %s", a.Allowed, bare.Allowed, a.Result, bare.Result, given)
		}
		if again := verdict(stored, stored); !again.Allowed {
			t.Fatalf("an update that changes nothing is denied: %v", again.Result)
		}
		if put, ok := mutated(t, given, stored); !ok || !verdict(put, stored).Allowed {
			t.Fatalf("what is stored cannot be applied again: %s", given)
		}
		problems := plan.Compute(plan.Input{TApp: decoded(t, stored), Now: now}).Problems
		if a.Allowed && len(problems) > 0 {
			t.Fatalf("it is admitted, and the planner says %+v\nof %s", problems, stored)
		}
		if !a.Allowed && len(a.DeniedBy) == 0 {
			t.Fatalf("no rule denied it: %v", a.Result)
		}
	})
}
