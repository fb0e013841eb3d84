//go:build cluster

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/audit"
	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/test/gen"
)

// A bad spec is told of by condition and event, which name the field; what is good
// of it works; the neighbours work; and the corrected spec clears it. The API
// server may say no to such a spec in the first place, where its schema can tell.
func TestBadInput(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		break_ gen.Option
		field  string
		runs   []string // pods that run nevertheless
		fix    gen.Option
	}{
		"missing-template": {
			gen.Use("nope", 1), "spec.templates[1]", []string{"app-0", "app-2"},
			func(t *tappv1.TApp) { t.Spec.Templates = nil },
		},
		"missing-default-template": {
			func(t *tappv1.TApp) {
				t.Spec.DefaultTemplateName = "nope"
				gen.Use("default", 2)(t)
			}, "spec.defaultTemplateName", []string{"app-2"},
			func(t *tappv1.TApp) { t.Spec.DefaultTemplateName = "" },
		},
		"malformed-id": {
			gen.Use("default", -1), "spec.templates", []string{"app-0", "app-1", "app-2"},
			func(t *tappv1.TApp) { t.Spec.Templates = nil },
		},
		"malformed-id-in-statuses": {
			func(t *tappv1.TApp) { t.Spec.Statuses = map[string]tappv1.InstanceStatus{"01": killed} }, "spec.statuses", []string{"app-0", "app-1", "app-2"}, start,
		},
		"budget-of-zero": {
			gen.MaxUnavailable("0"), "spec.updateStrategy.maxUnavailable", []string{"app-0", "app-1", "app-2"}, gen.MaxUnavailable("1"),
		},
		"budget-that-is-none": {
			gen.ForceMaxUnavailable("half"), "spec.updateStrategy.forceUpdate.maxUnavailable", []string{"app-0", "app-1", "app-2"}, gen.ForceMaxUnavailable("50%"),
		},
		"rolling-template": {
			func(t *tappv1.TApp) { t.Spec.UpdateStrategy.Template = "nope" }, "spec.updateStrategy.template", []string{"app-0", "app-1", "app-2"},
			func(t *tappv1.TApp) { t.Spec.UpdateStrategy.Template = "" },
		},
		"selector": { // it is immutable, so that only the template can be corrected
			func(t *tappv1.TApp) {
				t.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}}
			},
			"spec.template.metadata.labels", nil, gen.Default(gen.Label("app", "other")),
		},
		"selector-of-one-template": { // fault 10
			func(t *tappv1.TApp) { gen.Pool("odd", gen.Label("app", "other"))(t); gen.Use("odd", 1)(t) },
			"spec.templatePool", []string{"app-0", "app-2"}, gen.Pool("odd"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := namespace(t)
			_, err := suite.TApps(ns).Create(t.Context(), gen.TApp("app", c.break_), metav1.CreateOptions{})
			if err != nil {
				if !strings.Contains(err.Error(), c.field) {
					t.Fatalf("the API server rejects it without naming %s: %v", c.field, err)
				}
				return
			}
			create(t, ns, gen.TApp("neighbour", gen.Replicas(1)))
			stalled(t, ns, "app", c.field)
			hasEvent(t, ns, "app", warning, "", c.field)
			settled(t, ns, "neighbour")
			for _, name := range c.runs {
				podWhere(t, ns, name, "is ready", func(p *corev1.Pod) string { return unless(isReady(p), "is not") })
			}
			onlyPods(t, ns, append(c.runs, "neighbour-0")...)
			change(t, ns, "app", c.fix)
			tapp := settled(t, ns, "app")
			if !meta.IsStatusConditionFalse(tapp.Status.Conditions, tappv1.ConditionStalled) {
				t.Errorf("status: %s", cluster.StatusOf(tapp))
			}
			onlyPods(t, ns, "app-0", "app-1", "app-2", "neighbour-0")
		})
	}
}

// A spec that turns bad under running instances costs none of them.
func TestGoodSpecTurnsBad(t *testing.T) {
	t.Parallel()
	ns, _ := run(t, gen.TApp("app"))
	before := pods(t, ns)
	change(t, ns, "app", gen.Use("nope", 1), gen.Default(gen.Image("demo:v2")))
	stalled(t, ns, "app", "spec.templates[1]")
	podIs(t, ns, 0, "demo:v2")
	podIs(t, ns, 2, "demo:v2")
	after := pods(t, ns)
	sameUIDs(t, before, after)
	untouched(t, map[string]*corev1.Pod{"app-1": before["app-1"]}, after)
}

// A quota is tried with a few instances, not with each (slow start), is told of in
// the API server's own words, and needs nobody's help when it is raised.
func TestQuota(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	setQuota(t, ns, "1")
	log := follow(t)
	create(t, ns, gen.TApp("app", gen.Replicas(12)))
	create(t, ns, gen.TApp("neighbour", gen.Replicas(0)))
	hasEvent(t, ns, "app", warning, "FailedCreate", "exceeded quota: pods")
	settled(t, ns, "neighbour")
	refused := func(is metav1.ConditionStatus, message string) {
		t.Helper()
		eventually(t, "the condition ReplicaFailure is "+string(is), func(ctx context.Context) error {
			tapp, err := suite.TApps(ns).Get(ctx, "app", metav1.GetOptions{})
			if err != nil {
				return err
			}
			if c := meta.FindStatusCondition(tapp.Status.Conditions, tappv1.ConditionReplicaFailure); c == nil || c.Status != is || !strings.Contains(c.Message, message) {
				return fmt.Errorf("it is %+v", c)
			}
			return nil
		})
	}
	refused(metav1.ConditionTrue, "exceeded quota: pods")
	denied := audit.Filter{Resource: "pods", Verbs: []string{"create"}}
	// Each sync that follows tries again, as it should; but one or two instances, not
	// all eleven that are left.
	tried := map[string]int{}
	for _, r := range audit.Select(ourRequests(t, log, ns), denied) {
		if r.Code == 403 {
			tried[r.Name]++
		}
	}
	if len(tried) == 0 || len(tried) > 3 {
		t.Errorf("denied creates: %v, want those of 1 to 3 instances", tried)
	}
	setQuota(t, ns, "12")
	settled(t, ns, "app")
	refused(metav1.ConditionFalse, "")
}
