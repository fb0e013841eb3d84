package plugin

import (
	"encoding/json"
	"testing"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/ids"
	"tkestack.io/tapp/plan/view"
)

// TestEdits: which fields the commands that write change, and what they say.
func TestEdits(t *testing.T) {
	tapp := webTApp(4, func(t *tappv1.TApp) {
		t.Spec.Paused = true
		t.Spec.DefaultTemplateName = "canary"
		t.Spec.Statuses = map[string]tappv1.InstanceStatus{"1": tappv1.InstanceKilled, "2": tappv1.InstanceKilled}
		t.Spec.Templates = map[string]string{"0": "default"}
	})
	tapp.SetGroupVersionKind(tappv1.GroupVersionKind())
	serve(t, map[string]any{tappsPath + "/web": tapp, podsPath: podList(podOf(tapp, "canary", 3))})
	for _, c := range []struct {
		args    []string
		changes string
		says    string
	}{
		{[]string{"kill", "web", "0-1,3"}, `[{"path":"spec.statuses[0]","to":"Killed"},{"path":"spec.statuses[3]","to":"Killed"}]`, "instances 0-1,3 killed"},
		{[]string{"start", "web", "2"}, `[{"path":"spec.statuses[2]","from":"Killed"}]`, "instance 2 started"},
		{[]string{"start", "web", "--all"}, `[{"path":"spec.statuses[1]","from":"Killed"},{"path":"spec.statuses[2]","from":"Killed"}]`, "instances 0-3 started"},
		{[]string{"upgrade", "web", "3", "--template", "default"}, `[{"path":"spec.templates[3]","to":"default"}]`, "instance 3 upgraded to template default"},
		{[]string{"upgrade", "web", "0", "3", "--template", "canary"}, `[{"path":"spec.templates[0]","from":"default"}]`, "instances 0,3 upgraded to template canary"},
		{[]string{"pause", "web"}, `null`, "paused"},
		{[]string{"resume", "web"}, `[{"path":"spec.paused","from":true}]`, "resumed"},
	} {
		code, out, errOut := run(t, append(append([]string{program}, c.args...), "--dry-run=client")...)
		if want := "tapp.apps.tkestack.io/web " + c.says + " (dry run)\n"; code != 0 || out != want || errOut != "" {
			t.Errorf("%q: exit code %d, %q, errors %q, want %q", c.args, code, out, errOut, want)
		}
		_, out, _ = run(t, append(append([]string{program}, c.args...), "--dry-run", "-o", "json")...)
		after := &tappv1.TApp{}
		if err := json.Unmarshal([]byte(out), after); err != nil {
			t.Errorf("%q: %v in %s", c.args, err, out)
			continue
		}
		changes, err := view.Changes("spec", tapp.Spec, after.Spec)
		if got, _ := json.Marshal(changes); err != nil || string(got) != c.changes {
			t.Errorf("%q: %v, it changes\n%s\nand should\n%s", c.args, err, got, c.changes)
		}
	}
}

// TestRestart: which pods are marked. Without ids, those of all instances that have one.
func TestRestart(t *testing.T) {
	tapp := webTApp(5, func(t *tappv1.TApp) { t.Spec.Statuses = map[string]tappv1.InstanceStatus{"1": tappv1.InstanceKilled} })
	tapp.SetGroupVersionKind(tappv1.GroupVersionKind())
	serve(t, map[string]any{tappsPath + "/web": tapp, podsPath: podList(podOf(tapp, "default", 0), podOf(tapp, "default", 2, notReady),
		podOf(tapp, "default", 3, failed), podOf(tapp, "default", 4, orphaned))})
	for _, c := range []struct {
		args []string
		pods []string
		note string
	}{
		{[]string{"restart", "web"}, []string{"web-0", "web-2"}, "Left out, without a pod to restart: instances 1,3-4\n"},
		{[]string{"restart", "web", "2"}, []string{"web-2"}, ""},
		{[]string{"restart", "web", "0,2"}, []string{"web-0", "web-2"}, ""},
	} {
		want := ""
		for _, pod := range c.pods {
			want += "pod/" + pod + " restart requested (dry run)\n"
		}
		code, out, errOut := run(t, append(append([]string{program}, c.args...), "--dry-run=client")...)
		if code != 0 || out != want || errOut != c.note {
			t.Errorf("%q: exit code %d, %q, errors %q, want %q and %q", c.args, code, out, errOut, want, c.note)
		}
	}
}

// TestRefusedEdits: bad input changes nothing, and the message says what is right.
func TestRefusedEdits(t *testing.T) {
	tapp := webTApp(4)
	tapp.SetGroupVersionKind(tappv1.GroupVersionKind())
	paused := tapp.DeepCopy()
	paused.Name, paused.Spec.Paused = "paused", true
	serve(t, map[string]any{tappsPath + "/web": tapp, tappsPath + "/paused": paused, podsPath: podList()})
	const seeUsage = "See 'kubectl tapp kill --help' for usage.\n"
	for _, c := range []struct {
		args []string
		err  string
	}{
		{[]string{"kill", "web"}, "IDS are missing: give ids and ranges such as 0-3,7, or --all\n" + seeUsage},
		{[]string{"kill", "web", "1", "--all"}, "give IDS or --all, not both\n" + seeUsage},
		{[]string{"kill", "web", "4"}, "there is no instance 4 of web: its instances are 0-3\n"},
		{[]string{"kill", "nope", "0"}, "tapps.apps.tkestack.io \"nope\" not found\n"},
		{[]string{"kill", "web", "0", "--dry-run=maybe"}, "--dry-run is \"maybe\"; give none, client or server\n" + seeUsage},
		{[]string{"upgrade", "web", "0", "--template", "blue"}, "web has no template \"blue\": it has default, canary\n"},
		{[]string{"upgrade", "web", "0"}, "--template is missing\nSee 'kubectl tapp upgrade --help' for usage.\n"},
		{[]string{"restart", "web", "0"}, "instance 0 has no pod to restart: it is NotCreated\n"},
		{[]string{"restart", "web", "--all"}, "instance 0 has no pod to restart: it is NotCreated\n"},
		{[]string{"restart", "web"}, "web has no instance with a pod to restart\n"},
		{[]string{"restart", "web", "1", "--all"}, "give IDS or --all, not both\nSee 'kubectl tapp restart --help' for usage.\n"},
		{[]string{"restart", "paused", "7"}, "there is no instance 7 of paused: its instances are 0-3\n"},
		{[]string{"restart", "paused"}, "paused is paused, so that nothing would restart; resume it first\n"},
		{[]string{"restart", "paused", "0"}, "paused is paused, so that nothing would restart; resume it first\n"},
	} {
		code, out, errOut := run(t, append([]string{program}, c.args...)...)
		if code != 1 || out != "" || errOut != "error: "+c.err {
			t.Errorf("%q: exit code %d, %q, errors %q, want %q", c.args, code, out, errOut, c.err)
		}
	}
}

func TestInstances(t *testing.T) {
	for want, some := range map[string][]int{"instance 3": {3}, "instances 0-2,7": {0, 1, 2, 7}} {
		if got := ids.Instances(some); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestHasInstanceName(t *testing.T) {
	for name, want := range map[string]bool{"web-0": true, "web-12": true, "web-01": false, "web-": false, "web-a": false, "web-api-0": false, "webs-0": false} {
		if got := view.HasInstanceName("web", name); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
