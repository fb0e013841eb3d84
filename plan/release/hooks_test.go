package release

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A hook that fails ends an upgrade: what was deployed stays as it was, and nothing is
// called deployed.
func TestHookFails(t *testing.T) {
	w := newWorld(t, &Rendered{Chart: "web-1", Objects: objects(t, deployment)})
	w.run()
	w.said()
	w.in.Want.Content = "u1-b"
	w.chart = &Rendered{Chart: "web-2", Objects: objects(t, config+deployment), Hooks: []Hook{hook(t, "job", 0, []string{"hook-failed"}, "pre-upgrade")}}
	w.settle = func(ref Ref, o *unstructured.Unstructured) {
		ready(ref, o)
		if o.GetKind() == "Job" {
			o.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Failed", "status": "True", "message": "no more tries"}}}
		}
	}
	p := w.run()
	expect(t, "done", w.said(), []string{"record 2 pending-upgrade", "record 2 pending-upgrade", "record 2 pending-upgrade", "create Job/job", "record 2 failed", "delete Job/job"})
	expect(t, "said", stalls(p), []string{`HookFailed: release "web": hook pre-upgrade Job "job" failed: the Job failed: no more tries. Change the chart or its values, or annotate the AdvDeployment with workload.dmall.com/retry=2 to try again`})
	if p.Numbers.UpToDate || w.records[1].Status != Deployed || p.Numbers.Updated != 0 {
		t.Errorf("%+v", p.Numbers)
	}
	w.run()
	expect(t, "again", w.said(), nil)

	w.in.Want.Content, w.chart.Hooks = "u1-c", nil
	if p = w.run(); !p.Numbers.UpToDate {
		t.Errorf("%+v %q", p.Numbers, stalls(p))
	}
	expect(t, "with another content", w.said(), []string{"record 3 pending-upgrade", "create ConfigMap/web", "record 3 deployed", "record 1 superseded"})
}

// A hook that failed runs again when another try is asked for, once for each request, and not for
// one that was there when it failed.
func TestRetry(t *testing.T) {
	w := newWorld(t, &Rendered{Chart: "web-1", Objects: objects(t, deployment)})
	w.run()
	w.said()
	w.in.Want.Content, w.in.Part = "u1-b", true
	w.chart = &Rendered{Chart: "web-2", Objects: objects(t, config+deployment), Hooks: []Hook{hook(t, "job", 0, nil, "pre-upgrade")}}
	fails := true
	w.settle = func(ref Ref, o *unstructured.Unstructured) {
		ready(ref, o)
		if o.GetKind() == "Job" && fails {
			o.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Failed", "status": "True", "message": "no more tries"}}}
		}
	}
	w.in.Retry = "a"
	expect(t, "said", stalls(w.run()), []string{`HookFailed: release "web": hook pre-upgrade Job "job" failed: the Job failed: no more tries. Change the chart or its values, or try again: kubectl tapp fleet retry app`})
	expect(t, "asked for before it failed", w.said(), []string{"record 2 pending-upgrade", "record 2 pending-upgrade", "record 2 pending-upgrade", "create Job/job", "record 2 failed"})

	w.in.Want.Held, w.in.Retry = true, "b"
	w.run()
	expect(t, "held back", w.said(), nil)
	w.in.Want.Held = false
	w.run()
	again := []string{"record 3 pending-upgrade", "record 3 pending-upgrade", "delete Job/job", "record 3 pending-upgrade", "create Job/job", "record 3 failed"}
	expect(t, "another try", w.said(), again)
	w.run()
	w.in.Retry = ""
	w.run()
	expect(t, "and no other one", w.said(), nil)

	fails, w.in.Retry = false, "c"
	if p := w.run(); !p.Numbers.UpToDate {
		t.Errorf("%+v %q", p.Numbers, stalls(p))
	}
	expect(t, "one that succeeds", w.said(), []string{"record 4 pending-upgrade", "record 4 pending-upgrade", "delete Job/job", "record 4 pending-upgrade", "create Job/job",
		"record 4 pending-upgrade", "record 4 pending-upgrade", "create ConfigMap/web", "record 4 deployed", "record 1 superseded", "record 1 gone"})
	w.in.Retry = "d"
	w.run()
	expect(t, "of what did not fail", w.said(), nil)
}

// What asked for another try while a hook ran is not about its failure; an installation is tried again, too.
func TestRetryInstallation(t *testing.T) {
	w := newWorld(t, &Rendered{Chart: "web-1", Objects: objects(t, config), Hooks: []Hook{hook(t, "job", 0, nil, "pre-install")}})
	fail := func(_ Ref, o *unstructured.Unstructured) {
		if o.GetKind() == "Job" {
			o.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Failed", "status": "True", "message": "no more tries"}}}
		}
	}
	w.settle = func(Ref, *unstructured.Unstructured) {}
	w.run()
	w.in.Retry, w.settle = "a", fail
	for ref, o := range w.objects {
		fail(ref, o)
	}
	w.said()
	w.run()
	expect(t, "asked for while it ran", w.said(), []string{"record 1 failed"})
	w.in.Want.Held, w.in.Retry = true, "b"
	w.run()
	expect(t, "held back", w.said(), nil)
	w.in.Want.Held = false
	w.in.Records, w.in.Rendered = []Record{w.records[1]}, &Rendered{Chart: "web-1", Revision: 1}
	if p := Compute(w.in); p.Render == nil || p.Render.Revision != 2 {
		t.Errorf("of another revision it asks for %+v", p.Render)
	}
	w.run()
	expect(t, "another try", w.said(), []string{"record 2 pending-install", "record 2 pending-install", "delete Job/job", "record 2 pending-install", "create Job/job", "record 2 failed"})
}

// A hook that fails after an upgrade: the pods have the content, and the release is not up to date.
func TestLateHookFails(t *testing.T) {
	w := newWorld(t, &Rendered{Chart: "web-1", Objects: objects(t, deployment)})
	w.run()
	w.in.Want.Content = "u1-b"
	w.chart = &Rendered{Chart: "web-2", Objects: objects(t, strings.ReplaceAll(deployment, "nginx:1", "nginx:2")), Hooks: []Hook{hook(t, "job", 0, nil, "post-upgrade")}}
	w.settle = func(ref Ref, o *unstructured.Unstructured) {
		ready(ref, o)
		if o.GetKind() == "Job" {
			o.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Failed", "status": "True", "message": "no more tries"}}}
		}
	}
	p := w.run()
	expect(t, "said", stalls(p), []string{`HookFailed: release "web": hook post-upgrade Job "job" failed: the Job failed: no more tries. Change the chart or its values, or annotate the AdvDeployment with workload.dmall.com/retry=2 to try again`})
	if p.Numbers.UpToDate || p.Numbers.Updated != 3 {
		t.Errorf("%+v", p.Numbers)
	}
}
