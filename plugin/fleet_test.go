package plugin

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/podset"
)

// TestFleet: what the commands about AppSets print, and how they end.
func TestFleet(t *testing.T) {
	tapp := webTApp(2)
	tapp.Name = "web-gz01-blue"
	tapp.SetGroupVersionKind(tappv1.GroupVersionKind())
	in := map[string]any{
		tappsPath + "/web-gz01-blue": tapp, podsPath: podList(podOf(tapp, "default", 0), podOf(tapp, "default", 1)),
		policyPath: &corev1.ConfigMap{Data: map[string]string{tappv1.PolicyKey: `{"deletePodAfterAppFinish":true,"nodeLostAfter":"5m0s","resize":true}`}},
	}
	unobserved := func(a *v1beta1.AppSet) { a.Generation = 5 }
	paused := func(a *v1beta1.AppSet) {
		settled(a)
		a.Spec.UpdateStrategy.Paused = true
		a.Status.AggrStatus.Clusters[0].PodSets[1].Revision = "v1-old"
	}
	const silent = "its cluster is Offline, and was seen last at 2026-11-24T10:00:00Z"
	const unseen = "Waiting for the controller to see generation 5 of web.\n" +
		"error: the time is up after 1ns, and the controller has not seen generation 5 of web: look whether it runs on the hub (kubectl get pods -n tapp-system), or wait longer with --timeout\n"
	const held = "stage canary is done, and waits for a confirmation: kubectl tapp fleet confirm web"
	for _, c := range []struct {
		name     string
		args     string
		edits    []func(*v1beta1.AppSet)
		code     int
		out, err string
	}{
		{name: "get", args: "get", out: lines(
			"NAME   CLUSTERS   DESIRED   AVAILABLE   UNAVAILABLE   VERSION   STATUS    STAGE    AGE",
			"web    2          5         4           1             v1/v2     Unknown   canary   AGE")},
		{name: "get one", args: "get web", out: lines(
			"CLUSTER   STATE     PODSET            DESIRED   AVAILABLE   UPDATED   VERSION   WHY",
			"one       Ready     web-gz01-canary   1         1           1         v2        -",
			"one       Ready     web-gz01-blue     3         3           0         v1        "+held,
			"two       Offline   web-gz02-blue     1         1           0         v1        "+silent)},
		{name: "get none", args: "get nope", code: 1, err: "error: appsets.workload.dmall.com \"nope\" not found\n"},
		{name: "get badly", args: "get -o name", code: 1, err: "error: --output is \"name\"; give wide, json or yaml\nSee 'kubectl tapp fleet get --help' for usage.\n"},
		{name: "get everywhere", args: "get web -A", code: 1, err: "error: an AppSet is in one namespace: leave --all-namespaces out\nSee 'kubectl tapp fleet get --help' for usage.\n"},

		{name: "status", args: "status web", out: lines(
			"web  Unknown  v1/v2  rollout 0123456789-4",
			"[####################] canary  Waiting  1 of 1 podSets done, waits for a confirmation: kubectl tapp fleet confirm web --stage canary",
			"[....................] blue  Pending  0 of 2 podSets done",
			"instances: 4 of 5 available, nothing is known of 1",
			"budget: 2 instances, 1 of them unavailable, 1 granted to podSets",
			"podSets: 1 of 3 as the spec says",
			"  one/web-gz01-blue: "+held,
			"  two/web-gz02-blue: "+silent)},
		{name: "status when done", args: "status web", edits: []func(*v1beta1.AppSet){settled}, out: lines(
			"web  Running  v2  rollout 0123456789-4",
			"[####################] canary  Done  1 of 1 podSets done, confirmed by ann",
			"[####################] blue  Done  2 of 2 podSets done",
			"instances: 5 of 5 available", "budget: each object's own, in each cluster", "podSets: 3 of 3 as the spec says")},
		{name: "status of what nobody saw", args: "status web", edits: []func(*v1beta1.AppSet){unobserved},
			out: "the controller has not seen generation 5 of web yet\n"},
		{name: "status of a failure", args: "status web", edits: []func(*v1beta1.AppSet){halted}, code: 1, out: lines(
			"web  Halted  v1/v2  rollout 0123456789-4",
			"[....................] canary  Halted  0 of 1 podSets done, 1 failed",
			"[....................] blue  Pending  0 of 2 podSets done",
			"instances: 4 of 5 available, nothing is known of 1",
			"budget: 2 instances, 1 of them unavailable, 1 granted to podSets",
			"podSets: 1 of 3 as the spec says",
			"  one/web-gz01-blue: the rollout halted in stage canary",
			"  two/web-gz02-blue: "+silent),
			err: "error: the rollout of web failed: Halted: 1 of 1 clusters of stage canary failed. To go back: kubectl tapp fleet undo web; to try again: kubectl tapp fleet retry web\n"},
		{name: "status with a lost node", args: "status web", edits: []func(*v1beta1.AppSet){onLostNode}, out: lines(
			"web  Unknown  v1/v2  rollout 0123456789-4",
			"[####################] canary  Waiting  1 of 1 podSets done, waits for a confirmation: kubectl tapp fleet confirm web --stage canary",
			"[....................] blue  Pending  0 of 2 podSets done",
			"instances: 4 of 5 available, nothing is known of 1",
			"budget: 2 instances, 1 of them unavailable, 1 granted to podSets",
			"podSets: 1 of 3 as the spec says",
			"  one/web-gz01-blue: "+held,
			"  two/web-gz02-blue: "+silent)},
		{name: "status with a lost node when the rollout is done", args: "status web", edits: []func(*v1beta1.AppSet){settled, rolledOut, onLostNode}, code: 1, out: lines(
			"web  Running  v2  rollout 0123456789-4",
			"[####################] canary  Done  1 of 1 podSets done, confirmed by ann",
			"[####################] blue  Done  2 of 2 podSets done",
			"instances: 5 of 5 available", "budget: each object's own, in each cluster", "podSets: 3 of 3 as the spec says"),
			err: "error: the rollout of web is stalled (NodeLost): cluster one: node a is lost\n"},

		{name: "explain", args: "explain web", out: lines(
			"web is Unknown, 4 of 5 instances are available, in stage canary",
			"  AwaitingConfirmation=True (StageDone): stage canary waits",
			"  Ready=False (Progressing): a gate waits",
			"  one/web-gz01-blue: "+held, "  two/web-gz02-blue: "+silent)},
		{name: "explain what is done", args: "explain web", edits: []func(*v1beta1.AppSet){settled},
			out: "web is Running, 5 of 5 instances are available\n  nothing waits\n"},
		{name: "explain what is paused", args: "explain web one/web-gz01-blue", edits: []func(*v1beta1.AppSet){paused}, out: lines(
			"PodSet:     web-gz01-blue", "Cluster:    one, Ready", "Group:      blue", "Wanted:     3 instances of v2, by InPlaceSet (CONTENT)",
			"Has:        3 of 3 available, v2, 3 have the content (v1-old)", "Ids:        0-2", "Waits:      the AppSet is paused: kubectl tapp fleet resume web")},
		{name: "explain no such unit", args: "explain web one/blue", code: 1,
			err: "error: web has no podSet one/blue; it has one/web-gz01-canary, one/web-gz01-blue, two/web-gz02-blue\n"},
		{name: "explain an instance", args: "explain web ONE/web-gz01-blue 1 --member-context test", out: "one/web-gz01-blue waits: " + held + "\n\nInstance:       1 of web-gz01-blue in namespace shop\n"},
		{name: "explain an instance of nowhere", args: "explain web two/web-gz02-blue 0", code: 1,
			err: "error: the kubeconfig has no context two, which is to lead to cluster two; name one by --member-context\n"},

		{name: "confirm", args: "confirm web --dry-run --comment fine", out: "confirmation.workload.dmall.com/web-abc123 confirms stage canary of rollout 0123456789-4 (server dry run)\n"},
		{name: "confirm another stage", args: "confirm web --stage blue", code: 1, err: "error: stage blue does not wait: stage canary does\n"},
		{name: "confirm another rollout", args: "confirm web --rollout 9876543210-3", code: 1, err: "error: rollout 9876543210-3 does not wait: the present one is 0123456789-4\n"},
		{name: "confirm nothing", args: "confirm web", edits: []func(*v1beta1.AppSet){settled}, code: 1,
			err: "error: no gate of web waits: it is Running; stage canary was confirmed by ann\n"},
		{name: "confirm nothing yet", args: "confirm web", edits: []func(*v1beta1.AppSet){func(a *v1beta1.AppSet) {
			a.Status.Rollout.State, a.Status.Rollout.Stages[0].Token = "Staged", ""
		}}, code: 1, err: "error: no gate of web waits: it is Unknown; to follow it: kubectl tapp fleet status web --watch\n"},
		{name: "confirm what may be another one", args: "confirm web --timeout 1ns", edits: []func(*v1beta1.AppSet){unobserved}, code: 1, err: unseen},
		{name: "retry what may be another one", args: "retry web --timeout 1ns", edits: []func(*v1beta1.AppSet){unobserved}, code: 1, err: unseen},
		{name: "confirm badly", args: "confirm web --dry-run=client", code: 1, err: "error: --dry-run is \"client\"; give none or server\nSee 'kubectl tapp fleet confirm --help' for usage.\n"},
		{name: "pause without a name", args: "pause", code: 1, err: "error: the name of an AppSet is missing\nSee 'kubectl tapp fleet pause --help' for usage.\n"},
		{name: "two names", args: "resume web api", code: 1, err: "error: \"api\" is one argument too many\nSee 'kubectl tapp fleet resume --help' for usage.\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := fleetApp(t, c.edits...)
			serveFleet(t, a, in)
			code, out, errOut := run(t, append([]string{program, "fleet"}, strings.Fields(c.args)...)...)
			units, _, _ := podset.Units(a)
			out = strings.ReplaceAll(out, units[1].Hash, "CONTENT")
			if strings.HasPrefix(out, "NAME") { // without a time of creation
				out = strings.ReplaceAll(out, "<invalid>", "AGE")
				out = out[:strings.LastIndex(out, "canary   ")] + "canary   AGE\n"
			}
			if before, _, is := strings.Cut(out, "Wanted:         running\n"); is { // the rest is that of explain
				out = before
			}
			if code != c.code || out != c.out || errOut != c.err {
				t.Errorf("exit code %d, errors %q, printed\n%s\nwant %d, %q,\n%s", code, errOut, out, c.code, c.err, c.out)
			}
		})
	}
}

// TestFleetConfirmation: what is created names the very gate, and nothing else.
func TestFleetConfirmation(t *testing.T) {
	a := fleetApp(t)
	serveFleet(t, a, nil)
	code, out, errOut := run(t, program, "fleet", "confirm", "web", "--dry-run", "--comment", "fine", "-o", "json")
	var made v1beta1.Confirmation
	if err := json.Unmarshal([]byte(out), &made); err != nil || code != 0 || errOut != "" {
		t.Fatalf("exit code %d, %v, errors %q", code, err, errOut)
	}
	want := v1beta1.ConfirmationSpec{AppSet: "web", Rollout: "0123456789-4", Stage: "canary", Token: "abc123", Comment: "fine"}
	if made.Name != "web-abc123" || made.Namespace != "shop" || made.Spec != want {
		t.Errorf("it is %s/%s: %+v", made.Namespace, made.Name, made.Spec)
	}
}

// TestFleetWaits: the first hindrance of a unit is told.
func TestFleetWaits(t *testing.T) {
	blue := func(a *v1beta1.AppSet) *v1beta1.PodSetStatus { return &a.Status.AggrStatus.Clusters[0].PodSets[1] }
	for name, c := range map[string]struct {
		edit func(*v1beta1.AppSet)
		want string
	}{
		"unobserved": {func(a *v1beta1.AppSet) { a.Generation = 9 }, "the controller has not seen generation 9 yet"},
		"invalid": {func(a *v1beta1.AppSet) {
			a.Status.Conditions[1] = metav1.Condition{Type: v1beta1.ConditionStalled, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonInvalid, Message: "no", ObservedGeneration: 4}
		}, "the spec cannot be carried out: no"},
		"unknown":     {func(a *v1beta1.AppSet) { a.Status.AggrStatus.Clusters = nil }, "nothing is known of the cluster yet"},
		"maintaining": {func(a *v1beta1.AppSet) { a.Status.AggrStatus.Clusters[0].State = v1beta1.ClusterMaintaining }, "its cluster is in maintenance, and is brought up afterwards"},
		"stale": {func(a *v1beta1.AppSet) { a.Status.AggrStatus.Clusters[0].AsOf = &metav1.Time{Time: time.Unix(0, 0)} },
			"its cluster answers, and what it has is not known to be current, and was seen last at 1970-01-01T00:00:00Z"},
		"its own words": {func(a *v1beta1.AppSet) { blue(a).Message = "ImagePullBackOff" }, "ImagePullBackOff"},
		"of its cluster": {func(a *v1beta1.AppSet) {
			a.Status.AggrStatus.Clusters[0].Reason, a.Status.AggrStatus.Clusters[0].Message = "NamespaceMissing", "no namespace"
		}, "no namespace"},
		"beside it": {func(a *v1beta1.AppSet) {
			a.Status.AggrStatus.Clusters[0].Message = "its new kubeconfig is not used yet"
		}, "stage canary is done, and waits for a confirmation: kubectl tapp fleet confirm web"},
		"a stage goes on": {func(a *v1beta1.AppSet) { a.Status.Rollout.Stages[0].Token = "" }, "stage canary is under way"},
		"no stage":        {func(a *v1beta1.AppSet) { a.Status.Rollout = nil }, "it is not its turn yet"},
		"not available":   {func(a *v1beta1.AppSet) { blue(a).Revision, blue(a).Available = "", 1 }, "1 of 3 instances are available"},
		"not updated":     {func(a *v1beta1.AppSet) { blue(a).Revision = "" }, "0 of 3 instances have its content"},
		"fewer than asked": {func(a *v1beta1.AppSet) {
			a.Spec.ClusterTopology.Clusters[0].PodSets[1].Replicas = new(intstr.FromInt32(4))
			blue(a).Revision, blue(a).Update = "", new(int32(3))
		}, "it has 3 instances, and is to have 4"},
	} {
		t.Run(name, func(t *testing.T) {
			serveFleet(t, fleetApp(t, c.edit), nil)
			code, out, errOut := run(t, program, "fleet", "explain", "web", "one/web-gz01-blue", "-o", "json")
			var got struct{ Why string }
			if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 || errOut != "" || got.Why != c.want {
				t.Errorf("exit code %d, %v, errors %q: %q, want %q", code, err, errOut, got.Why, c.want)
			}
		})
	}
}

// TestFleetCompletion: AppSets and their units are offered.
func TestFleetCompletion(t *testing.T) {
	serveFleet(t, fleetApp(t), nil)
	for words, want := range map[string]string{
		"status ": "web", "confirm ": "web", "confirm web ": "", "explain web ": "one/web-gz01-canary one/web-gz01-blue two/web-gz02-blue",
	} {
		code, out, errOut := run(t, append([]string{programComplete, "fleet"}, strings.Split(words, " ")...)...)
		if got := strings.Join(strings.Fields(strings.TrimSuffix(out, ":4\n")), " "); code != 0 || got != want {
			t.Errorf("%q: exit code %d, %q, want %q; %s", words, code, got, want, errOut)
		}
	}
}

// TestFleetOrphans: parts without an AppSet on the hub are listed, and silent clusters told of.
func TestFleetOrphans(t *testing.T) {
	const secrets, parts = "/api/v1/namespaces/tapp-system/secrets", "/apis/workload.dmall.com/v1beta1/advdeployments"
	serveFleet(t, fleetApp(t), map[string]any{
		secrets: &corev1.SecretList{}, "/api/v1/namespaces/tapp-system/configmaps": &corev1.ConfigMapList{}, parts: &v1beta1.AdvDeploymentList{},
		"/apis/workload.dmall.com/v1beta1/appsets": &v1beta1.AppSetList{},
	})
	code, out, errOut := run(t, program, "fleet", "orphans")
	if code != 0 || out != "" || errOut != "Every part in the registered clusters has its AppSet.\n" {
		t.Errorf("exit code %d, %q, errors %q", code, out, errOut)
	}
	serveFleet(t, fleetApp(t), map[string]any{
		secrets: &corev1.SecretList{Items: []corev1.Secret{{ObjectMeta: metav1.ObjectMeta{Name: "one", UID: "s"}, Data: map[string][]byte{v1beta1.KeyKubeconfig: []byte("{}")}}}},
		"/api/v1/namespaces/tapp-system/configmaps": &corev1.ConfigMapList{}, "/apis/workload.dmall.com/v1beta1/appsets": &v1beta1.AppSetList{},
	})
	code, out, errOut = run(t, program, "fleet", "orphans", "-o", "json")
	if code != 1 || out != "[]\n" || !strings.HasPrefix(errOut, "cluster one: the kubeconfig of cluster one is not used: ") || !strings.HasSuffix(errOut, "error: nothing is known of one\n") {
		t.Errorf("exit code %d, %q, errors %q", code, out, errOut)
	}
}

// TestFleetClusters: why a cluster is not Ready stands beside it, and what is amiss with an AppSet in
// one that is does not.
func TestFleetClusters(t *testing.T) {
	a := fleetApp(t)
	a.Status.AggrStatus.Clusters = []v1beta1.ClusterStatus{
		{Name: "one", State: v1beta1.ClusterReady, Reason: "HookFailed", Message: "a hook failed"},
		{Name: "two", State: v1beta1.ClusterUnfit, Reason: "ClusterUnfit", Message: "it does not know us"},
	}
	secrets := &corev1.SecretList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "SecretList"}}
	for _, name := range []string{"one", "two"} {
		secrets.Items = append(secrets.Items, corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}})
	}
	serveFleet(t, a, map[string]any{
		"/api/v1/namespaces/tapp-system/secrets":    secrets,
		"/api/v1/namespaces/tapp-system/configmaps": &corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"}},
		"/apis/workload.dmall.com/v1beta1/appsets":  &v1beta1.AppSetList{Items: []v1beta1.AppSet{*a}},
	})
	code, out, errOut := run(t, program, "fleet", "clusters", "-o", "json")
	var clusters []struct{ Name, State, Message string }
	if err := json.Unmarshal([]byte(out), &clusters); err != nil || code != 0 || errOut != "" || len(clusters) != 2 {
		t.Fatalf("exit code %d, %v, errors %q: %s", code, err, errOut, out)
	}
	if c := clusters[0]; c.State != "Ready" || c.Message != "" {
		t.Errorf("%+v", c)
	}
	if c := clusters[1]; c.State != "Unfit" || c.Message != "it does not know us" {
		t.Errorf("%+v", c)
	}
}
