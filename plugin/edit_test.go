package plugin

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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

// TestNow: with --now the pods of instances whose claims are being deleted get the UIDs of
// these, and no other pods do. Ended ones, and those out of range, do as well.
func TestNow(t *testing.T) {
	tapp := webTApp(4, func(t *tappv1.TApp) {
		t.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}, {ObjectMeta: metav1.ObjectMeta{Name: "logs"}}}
	})
	tapp.SetGroupVersionKind(tappv1.GroupVersionKind())
	var claims corev1.PersistentVolumeClaimList
	for _, name := range []string{"data-web-1", "logs-web-1", "data-web-2", "data-web-3", "logs-web-5"} {
		claims.Items = append(claims.Items, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: tapp.Namespace, UID: types.UID("uid-" + name), DeletionTimestamp: new(metav1.Now()),
			Labels: map[string]string{tappv1.LabelInstanceID: name[len(name)-1:]}}})
	}
	dying := func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Now()) }
	serve(t, map[string]any{tappsPath + "/web": tapp, claimsPath: &claims, podsPath: podList(podOf(tapp, "default", 0), podOf(tapp, "default", 1), podOf(tapp, "default", 2, failed),
		podOf(tapp, "default", 3, dying), podOf(tapp, "default", 5))})
	const both = "uid-data-web-1,uid-logs-web-1"
	for _, c := range []struct {
		args []string
		want string // of each pod that is patched: whether a restart is asked for, and what may go
		err  string
	}{
		{[]string{"restart", "web", "0-1", "--now"}, "web-0 restart; web-1 restart " + both, ""},
		{[]string{"restart", "web", "1"}, "web-1 restart", ""},
		{[]string{"restart", "web", "2", "--now"}, "web-2 restart uid-data-web-2", ""},
		{[]string{"restart", "web", "5", "--now"}, "web-5 restart uid-logs-web-5", ""},
		{[]string{"restart", "web", "1,5", "--now"}, "web-1 restart " + both + "; web-5 restart uid-logs-web-5", ""},
		{[]string{"restart", "web", "2"}, "", "instance 2 has no pod to restart: it ended (Failed)"},
		{[]string{"restart", "web", "3", "--now"}, "", "instance 3 has no pod to restart: its pod is being deleted already"},
		{[]string{"restart", "web", "5"}, "", "there is no instance 5 of web: its instances are 0-3"},
		{[]string{"restart", "web", "6", "--now"}, "", "there is no instance 6 of web: its instances are 0-3"},
		{[]string{"restart", "web", "--now"}, "", "--now loses data: name the IDS, or give --all\nSee 'kubectl tapp restart --help' for usage."},
	} {
		code, out, errOut := run(t, append(append([]string{program}, c.args...), "--dry-run=client", "-o", "json")...)
		if c.err != "" {
			if code != 1 || errOut != "error: "+c.err+"\n" {
				t.Errorf("%q: exit code %d, errors %q, want %q", c.args, code, errOut, c.err)
			}
			continue
		}
		var got []string
		for d := json.NewDecoder(strings.NewReader(out)); d.More(); {
			var pod corev1.Pod
			if err := d.Decode(&pod); err != nil {
				t.Fatalf("%q: %v in %s", c.args, err, out)
			}
			text := pod.Name
			if pod.Annotations[tappv1.AnnotationRestart] != "" {
				text += " restart"
			}
			got = append(got, strings.TrimSpace(text+" "+pod.Annotations[tappv1.AnnotationClaimMayGo]))
		}
		if text := strings.Join(got, "; "); code != 0 || text != c.want {
			t.Errorf("%q: exit code %d, %q, errors %q, want %q", c.args, code, text, errOut, c.want)
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
