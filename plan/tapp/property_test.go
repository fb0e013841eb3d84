package tapp

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/ids"
)

func labelsOf(pod *corev1.Pod) labels.Set { return pod.Labels }

// versions that pods of the random scenarios were made from.
var versions = map[string]json.RawMessage{
	"image":  json.RawMessage(`{"spec":{"containers":[{"name":"app","image":"web:1"}]}}`),
	"init":   json.RawMessage(`{"spec":{"initContainers":[{"name":"setup","image":"setup:1"}]}}`),
	"env":    json.RawMessage(`{"spec":{"containers":[{"name":"app","env":[{"name":"DEBUG","value":"1"}]}]}}`),
	"labels": json.RawMessage(`{"metadata":{"labels":{"old":"yes"},"annotations":{"team":"before"}}}`),
	"once":   json.RawMessage(`{"spec":{"restartPolicy":"Never"}}`),
}

func pick[T any](t *rapid.T, what string, values ...T) T {
	return rapid.SampledFrom(values).Draw(t, what)
}

func sometimes(t *rapid.T, what string, oneIn int) bool {
	return rapid.IntRange(0, oneIn-1).Draw(t, what) == oneIn-1
}

func templateOf(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "setup", Image: "setup:2"}},
			Containers:     []corev1.Container{{Name: "app", Image: image}},
		},
	}
}

// drawTApp draws a spec, sometimes a bad one, and a status that may be of any
// earlier time.
func drawTApp(t *rapid.T) *tappv1.TApp {
	spec := tappv1.TAppSpec{
		Replicas:            new(int32(rapid.IntRange(0, 8).Draw(t, "replicas"))),
		Template:            templateOf("web:2"),
		TemplatePool:        map[string]corev1.PodTemplateSpec{"blue": templateOf("web:3"), "green": templateOf("web:4")},
		DefaultTemplateName: pick(t, "defaultTemplateName", "", "", "", "blue", "gone"),
		Templates:           map[string]string{},
		Statuses:            map[string]tappv1.InstanceStatus{},
		Paused:              sometimes(t, "paused", 4),
		MinReadySeconds:     pick(t, "minReadySeconds", int32(0), 0, 60),
		ForceDeletePod:      sometimes(t, "forceDeletePod", 2),
		NeverMigrate:        sometimes(t, "neverMigrate", 4),
		Ordinals:            drawOrdinals(t),
	}
	if sometimes(t, "bad selector", 8) {
		spec.Selector = &metav1.LabelSelector{MatchLabels: pick(t, "selector", nil, map[string]string{"app": "missed"})}
	}
	if sometimes(t, "claims", 3) {
		spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
	}
	u := &spec.UpdateStrategy
	u.Template = pick(t, "rolling", "", "", "default", "blue", "gone")
	budget := func(what string) *intstr.IntOrString {
		return new(pick(t, what, intstr.FromInt32(1), intstr.FromInt32(2), intstr.FromString("30%"), intstr.FromString("100%"), intstr.FromInt32(0), intstr.FromString("x")))
	}
	u.MaxUnavailable, u.ForceUpdate.MaxUnavailable = budget("maxUnavailable"), budget("force")
	u.InPlaceUpdate.Policy = pick(t, "policy", tappv1.InPlaceIfPossible, tappv1.InPlaceIfPossible, tappv1.InPlaceOnly, tappv1.ReCreate)
	u.InPlaceUpdate.Drain = new(!sometimes(t, "no drain", 3))
	u.InPlaceUpdate.GracePeriodSeconds = pick(t, "grace", int32(0), 0, 10)
	status := tappv1.TAppStatus{Statuses: map[string]tappv1.InstanceStatus{}, Nodes: map[string]string{}}
	for num := range 10 {
		id := strconv.Itoa(num)
		if name := pick(t, "template of "+id, "", "", "", "default", "blue", "green", "gone"); name != "" {
			spec.Templates[id] = name
		}
		if sometimes(t, "killed "+id, 5) {
			spec.Statuses[id] = tappv1.InstanceKilled
		}
		if s := pick(t, "status of "+id, "", tappv1.InstanceRunning, tappv1.InstanceKilled, tappv1.InstanceFailed, tappv1.InstanceSucc); s != "" {
			status.Statuses[id] = s
		}
		if sometimes(t, "node of "+id, 2) {
			status.Nodes[id] = "node-2"
		}
	}
	if sometimes(t, "failures", 2) {
		status.Failures = map[string]int32{"0": 1, "1": 2, "3": 1, "7": 3, "9": 1}
	}
	tapp := &tappv1.TApp{Spec: spec, Status: status}
	if sometimes(t, "deleted", 10) {
		tapp.DeletionTimestamp = new(ago(time.Minute))
	}
	return tapp
}

// drawPods draws a pod, or none, for each of ten ids.
func drawPods(t *rapid.T) (out []podStory) {
	for num := range 10 {
		id := strconv.Itoa(num)
		if sometimes(t, "no pod "+id, 5) {
			continue
		}
		p := podStory{
			IDs:      id,
			From:     pick(t, "from "+id, "default", "default", "blue", "green", "image", "init", "env", "labels", "once"),
			Ready:    pick(t, "ready "+id, "", "1h", "20s", "not", "not 5s", "unset"),
			Silent:   sometimes(t, "silent "+id, 12),
			Gate:     pick(t, "gate "+id, "", "", "closed 5s", "unset", "none"),
			Phase:    pick(t, "phase "+id, "", "", "", corev1.PodPending, corev1.PodFailed, corev1.PodSucceeded, corev1.PodUnknown),
			Dying:    pick(t, "dying "+id, "", "", "", "in 20s", "1m ago"),
			Left:     sometimes(t, "left "+id, 3),
			Ended:    pick(t, "ended "+id, "1s", "1h"),
			Rejected: sometimes(t, "rejected "+id, 6),
			Node:     pick(t, "node "+id, "", "node-2"),
			Failures: rapid.IntRange(0, 7).Draw(t, "failures "+id),
			Owner:    pick(t, "owner "+id, "", "", "", "", "none", "other", "older"),
			Hash:     pick(t, "hash "+id, "", "", "", "1234567890"),
		}
		if sometimes(t, "patched "+id, 3) {
			p.Patched = pick(t, "to "+id, "default", "blue", "image")
			p.Kubelet = pick(t, "kubelet "+id, "unseen", "restarting", "done")
			p.From = pick(t, "patched from "+id, "default", "green", "image")
		}
		if sometimes(t, "labels "+id, 8) {
			p.Labels = map[string]*string{pick(t, "label "+id, "app", tappv1.LabelInstanceID, tappv1.LabelUniqHash): new("wrong")}
		}
		if sometimes(t, "finalizer "+id, 5) {
			p.Finalizers = []string{"example.com/hold"}
		}
		if sometimes(t, "sidecar "+id, 6) {
			p.Sidecar = "mesh:1"
		}
		out = append(out, p)
	}
	return out
}

func drawInput(t *rapid.T) Input {
	s := &scenario{TApp: drawTApp(t), Versions: versions, Pods: drawPods(t), Nodes: map[string]nodeStory{}}
	s.Policy.DeletePodAfterAppFinish = new(rapid.Bool().Draw(t, "deletePodAfterAppFinish"))
	for _, name := range []string{"node-1", "node-2"} {
		if sometimes(t, "evidence of "+name, 2) {
			s.Nodes[name] = pick(t, name, nodeStory{Gone: true}, nodeStory{OutOfService: true}, nodeStory{NotReady: "4m"}, nodeStory{NotReady: "6m"}, nodeStory{})
		}
	}
	for num := range 10 {
		if name := "data-web-" + strconv.Itoa(num); sometimes(t, name, 2) {
			s.Claims = append(s.Claims, claimStory{Name: name, Dying: sometimes(t, name+" dying", 4)})
		}
	}
	return s.input(t)
}

// TestProperties: what holds for any TApp and any pods. The input is not changed,
// neither the order of pods nor that of maps matters, and no oracle objects.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		before := copyInput(in)
		p := Compute(in)
		if !reflect.DeepEqual(before, in) {
			t.Fatal("the input was changed")
		}
		judge(t, in, p)

		again := copyInput(before)
		shuffle := rand.New(rand.NewPCG(1, 2))
		shuffle.Shuffle(len(again.Pods), func(i, j int) { again.Pods[i], again.Pods[j] = again.Pods[j], again.Pods[i] })
		shuffle.Shuffle(len(again.Claims), func(i, j int) { again.Claims[i], again.Claims[j] = again.Claims[j], again.Claims[i] })
		if q := Compute(again); !reflect.DeepEqual(p, q) {
			t.Fatalf("equal inputs give other plans:\n%+v\n%+v", p, q)
		}
		for id := range p.Status.Statuses {
			if _, ok := ids.Parse(id); !ok {
				t.Fatalf("status of %q", id)
			}
		}
		if p.Wait < 0 {
			t.Fatalf("wait %s", p.Wait)
		}
	})
}

// copyInput copies deeply; maps are built anew, and so in another order.
func copyInput(in Input) Input {
	out := in
	out.TApp = in.TApp.DeepCopy()
	out.Pods, out.Claims = nil, nil
	for _, p := range in.Pods {
		out.Pods = append(out.Pods, p.DeepCopy())
	}
	for _, c := range in.Claims {
		out.Claims = append(out.Claims, c.DeepCopy())
	}
	out.Nodes = maps.Clone(in.Nodes)
	return out
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
