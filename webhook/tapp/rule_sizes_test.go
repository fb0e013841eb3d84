package tapp

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/webhook/review"
	"tkestack.io/tapp/webhook/rule"
)

// sized is a TApp with so many entries, which name templates that do not exist.
func sized(t testing.TB, entries, templates int) *tappv1.TApp {
	t.Helper()
	out := tapp(t, "replicas: 3")
	out.Spec.Templates, out.Spec.Statuses, out.Spec.TemplatePool = map[string]string{}, map[string]tappv1.InstanceStatus{}, map[string]corev1.PodTemplateSpec{}
	for i := range entries {
		out.Spec.Templates[strconv.Itoa(i)] = "missing"
		out.Spec.Statuses["0"+strconv.Itoa(i)] = tappv1.InstanceKilled
	}
	for i := range templates {
		out.Spec.TemplatePool[fmt.Sprintf("t%d", i)] = out.Spec.Template
	}
	return out
}

// TestSizes: the most that is let in, and one more.
func TestSizes(t *testing.T) {
	wantFindings(t, rule.Findings("Sizes", judgeSizes(sized(t, tappv1.MaxEntries, tappv1.MaxTemplates))), "")
	wantFindings(t, rule.Findings("Sizes", judgeSizes(sized(t, tappv1.MaxEntries+1, tappv1.MaxTemplates+1))), `
spec.templates: Invalid value: 50001: it has so many entries, and can have 50000; split the TApp into several
spec.statuses: Invalid value: 50001: it has so many entries, and can have 50000; split the TApp into several
spec.templatePool: Invalid value: 4097: it has so many entries, and can have 4096; split the TApp into several`)
}

// TestLinear: four times as much to find takes about four times as much memory, and
// so is not looked for anew with each finding.
func TestLinear(t *testing.T) {
	taken := func(entries, templates int) float64 {
		now, was := sized(t, entries, templates), sized(t, entries, templates)
		now.Spec.Templates["0"] = "another"
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var w rule.Warnings
		if denied, err := Rules().Judge(t.Context(), now, was, &w); err != nil || len(denied) != 1 {
			t.Fatalf("%d findings, %v", len(denied), err)
		}
		runtime.ReadMemStats(&after)
		return float64(after.TotalAlloc - before.TotalAlloc)
	}
	if few, many := taken(1000, 1000), taken(4000, 4000); many > 6*few {
		t.Errorf("4 times the entries take %.1f times the memory", many/few)
	}
}

// TestOutOfTime: a review whose time is over is no denial.
func TestOutOfTime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := newTestValidator().judge(ctx, candidate{now: tapp(t, ""), rules: Rules()})
	if want := review.ErrOutOfTime.Error() + " (context canceled)"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
