package sim

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/sim/apiserver"
	"tkestack.io/tapp/test/sim/process"
)

// rig is a world in which a process has believed all that is, and then writes.
type rig struct {
	*world
	t *testing.T
}

// newRig has a TApp of three instances with claims, all of them in service.
func newRig(t *testing.T, edit func(*tappv1.TApp)) *rig {
	t.Helper()
	r := &rig{world: newWorld(Plan{Seed: 1}), t: t}
	tapp := &tappv1.TApp{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	tapp.Spec.Replicas = ptr.To[int32](3)
	tapp.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	tapp.Spec.Template.Labels = map[string]string{"app": "web"}
	tapp.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "demo:v1"}}
	if edit != nil {
		edit(tapp)
	}
	r.must(r.Create(tapps, tapp, r.as("user")))
	for _, id := range []string{"0", "1", "2"} {
		r.must(r.Create(pods, r.pod(id), r.as("user")))
		r.ready("shop/web-" + id)
		r.must(r.Create(claims, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "data-web-" + id, Labels: map[string]string{tappv1.LabelInstanceID: id}}}, r.as("user")))
	}
	return r
}

func (r *rig) must(_ object, err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) pod(id string) *corev1.Pod {
	tapp, _ := apiserver.Find[*tappv1.TApp](r.Store, tapps, "shop/web")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web-" + id, Labels: map[string]string{"app": "web", tappv1.LabelInstanceID: id}}}
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(tapp, tappv1.GroupVersionKind())}
	pod.Spec = *tapp.Spec.Template.Spec.DeepCopy()
	pod.Spec.NodeName = "n1"
	pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-web-" + id}}}}
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: tappv1.GateInPlaceUpdate}}
	return pod
}

// claimGoes has somebody delete a claim, which stays while its pod is there.
func (r *rig) claimGoes(name string) {
	r.must(r.Remove(claims, "shop/"+name, metav1.DeleteOptions{}, r.as("somebody")))
}

func (r *rig) ready(name string) {
	r.must(r.Update(pods, name, "status", r.as("kubelet"), func(o object) error {
		pod := o.(*corev1.Pod)
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}, {Type: tappv1.GateInPlaceUpdate, Status: corev1.ConditionTrue}}
		return nil
	}))
}

// ask is a write of the controller, made on a belief that is up to date.
func (r *rig) ask(verb, resource, name, sub, body string) {
	c := &replica{Process: process.New(1), world: r.world, told: map[string]int64{tapps: r.Version, pods: r.Version, claims: r.Version}, beliefs: map[string]*belief{}}
	q := &request{replica: c, issued: r.now(), Request: &apiserver.Request{Verb: verb, Resource: resource, Namespace: namespace, Name: name, Sub: sub,
		Body: []byte(body), Media: string(types.StrategicMergePatchType)}}
	r.attribute(q)
	r.Serve(q.Request, 0, q.actor(r.now()))
}

const (
	closeGate = `{"status":{"conditions":[{"type":"tkestack.io/InPlaceUpdate","status":"False"}]}}`
	newImage  = `{"spec":{"containers":[{"name":"main","image":"demo:v2"}]}}`
)

// The oracles bite: each of these writes breaks one, and the same one without its
// fault breaks none.
func TestOraclesBite(t *testing.T) {
	toV2 := func(r *rig) {
		r.must(r.Update(tapps, "shop/web", "", r.as("user"), func(o object) error {
			o.(*tappv1.TApp).Spec.Template.Spec.Containers[0].Image = "demo:v2"
			return nil
		}))
	}
	scaled := func(to int32) func(*rig) {
		return func(r *rig) {
			r.must(r.Update(tapps, "shop/web", "", r.as("user"), func(o object) error { o.(*tappv1.TApp).Spec.Replicas = &to; return nil }))
		}
	}
	followed := func(to int32) func(*rig) {
		return func(r *rig) {
			r.must(r.Update(tapps, "shop/web", "", r.as("user"), func(o object) error {
				o.(*tappv1.TApp).Spec.Replicas, o.(*tappv1.TApp).Spec.PersistentVolumeClaimRetentionPolicy = &to, retention(2)
				return nil
			}))
		}
	}
	adopted := func(r *rig) {
		r.must(r.Update(pods, "shop/web-0", "", r.as("somebody"), func(o object) error {
			o.SetOwnerReferences([]metav1.OwnerReference{foreignOwner()})
			return nil
		}))
	}
	for name, c := range map[string]struct {
		before func(*rig)
		write  func(*rig)
		want   string // empty: nothing is wrong
	}{
		"a second pod of an instance": {write: func(r *rig) {
			pod := r.pod("0")
			pod.Name = "web-7"
			r.must(r.Create(pods, pod, r.as("ca")))
		}, want: "S1: instance 0 has the pods web-7 and web-0"},
		"one is drained": {toV2, func(r *rig) { r.ask("patch", pods, "web-0", "status", closeGate) }, ""},
		"two are drained": {func(r *rig) { toV2(r); r.ask("patch", pods, "web-0", "status", closeGate) }, func(r *rig) { r.ask("patch", pods, "web-1", "status", closeGate) },
			"S2: pod web-1 goes out of service: 2 of 3 would not serve (0 1), and 1 may"},
		"one is recreated beside one that dies": {func(r *rig) { toV2(r); r.must(r.Remove(pods, "shop/web-0", metav1.DeleteOptions{}, r.as("user"))) },
			func(r *rig) { r.ask("delete", pods, "web-1", "", "") }, "S2: pod web-1 goes out of service: 2 of 3 would not serve (0 1), and 1 may"},
		"a claim goes": {scaled(1), func(r *rig) { r.ask("delete", claims, "data-web-2", "", "") }, "S3: claim shop/data-web-2 is deleted, and its policy does not say so"},
		"a claim is to go with a TApp": {nil, func(r *rig) {
			r.ask("patch", claims, "data-web-2", "", `{"metadata":{"ownerReferences":[{"apiVersion":"apps.tkestack.io/v1","kind":"TApp","name":"web","uid":"u4"}]}}`)
		}, "S3: claim shop/data-web-2 is to go with the TApp, and its policy does not say so"},
		"a claim goes with its pod": {func(r *rig) { scaled(2)(r); r.claimGoes("data-web-2") }, func(r *rig) { r.ask("delete", pods, "web-2", "", "") }, "S13: pod web-2 is deleted, and its claim data-web-2, which is being deleted, goes with it"},
		"and somebody let it": {func(r *rig) {
			scaled(2)(r)
			r.claimGoes("data-web-2")
			r.letClaimsGo(apiserver.All[*corev1.Pod](r.Store, pods)[2])
		}, func(r *rig) { r.ask("delete", pods, "web-2", "", "") }, ""},
		"or the policy does":        {func(r *rig) { followed(2)(r); r.claimGoes("data-web-2") }, func(r *rig) { r.ask("delete", pods, "web-2", "", "") }, ""},
		"a pod goes by force":       {nil, func(r *rig) { r.ask("delete", pods, "web-0", "", `{"gracePeriodSeconds":0}`) }, "S4: pod web-0 goes by force, and nobody opted in, or the status does not tell of it"},
		"an image before the drain": {toV2, func(r *rig) { r.ask("patch", pods, "web-0", "", newImage) }, "S5: the images of pod web-0 change before it is drained"},
		"an image after the drain": {func(r *rig) {
			toV2(r)
			r.ask("patch", pods, "web-0", "status", closeGate)
			r.must(r.Update(pods, "shop/web-0", "status", r.as("kubelet"), func(o object) error { setReady(o.(*corev1.Pod), false, r.Second()); return nil }))
		}, func(r *rig) { r.ask("patch", pods, "web-0", "", newImage) }, ""},
		"a pod of another owner": {adopted, func(r *rig) { r.ask("patch", pods, "web-0", "", `{"metadata":{"labels":{"a":"b"}}}`) }, `S7: pod web-0 of owner "foreign" is touched`},
		"a pod goes for nothing": {nil, func(r *rig) { r.ask("delete", pods, "web-0", "", "") }, "pod web-0 is deleted for no reason"},
		"a pod is scaled down":   {scaled(2), func(r *rig) { r.ask("delete", pods, "web-2", "", "") }, ""},
		"Ready is written": {nil, func(r *rig) {
			r.ask("patch", pods, "web-0", "status", `{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`)
		}, "the Ready of pod web-0 is written"},
		"a spec is changed": {nil, func(r *rig) { r.askTApp(`{"spec":{"replicas":1}}`) }, "the controller changes the spec of TApp web"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			if c.before != nil {
				c.before(r)
			}
			if r.failure != nil {
				t.Fatal(r.failure)
			}
			c.write(r)
			got := ""
			if r.failure != nil {
				_, got, _ = strings.Cut(r.failure.Error(), "s: ")
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func (r *rig) askTApp(body string) {
	c := &replica{Process: process.New(1), world: r.world, told: map[string]int64{tapps: r.Version}, beliefs: map[string]*belief{}}
	q := &request{replica: c, issued: time.Now(), Request: &apiserver.Request{Verb: "patch", Resource: tapps, Namespace: namespace, Name: "web", Body: []byte(body), Media: string(types.MergePatchType)}}
	r.attribute(q)
	r.Serve(q.Request, 0, q.actor(r.now()))
}

// At rest: what is not as the TApp wants it is found.
func TestRestBites(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*rig)
		want  string
	}{
		"a pod is missing": {func(r *rig) { r.must(r.Remove(pods, "shop/web-1", apiserver.DeleteNow(), r.as("user"))) }, "instance 1 has no pod"},
		"a pod is old": {func(r *rig) {
			r.must(r.Update(tapps, "shop/web", "", r.as("user"), func(o object) error { o.(*tappv1.TApp).Spec.Template.Spec.Containers[0].Image = "demo:v2"; return nil }))
		}, "S6: instance 0 does not follow its template"},
		"a pod is too much": {func(r *rig) {
			r.must(r.Update(tapps, "shop/web", "", r.as("user"), func(o object) error { o.(*tappv1.TApp).Spec.Replicas = ptr.To[int32](2); return nil }))
		}, "instance 2 has a pod, and replicas are 2"},
		"a claim is left behind": {func(r *rig) {
			r.must(r.Update(tapps, "shop/web", "", r.as("user"), func(o object) error {
				o.(*tappv1.TApp).Spec.PersistentVolumeClaimRetentionPolicy = retention(2)
				return nil
			}))
			r.must(r.Update(tapps, "shop/web", "", r.as("user"), func(o object) error { o.(*tappv1.TApp).Spec.Replicas = ptr.To[int32](2); return nil }))
			r.must(r.Remove(pods, "shop/web-2", apiserver.DeleteNow(), r.as("user")))
		}, "S3: instance 2 was scaled down, and its claim is there although the policy deletes it"},
		"the status is wrong": {func(*rig) {}, "observedGeneration is -1 of 1"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			c.spoil(r)
			if err := r.atRest(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// A sync reads nodes between a look at its caches and its writes: what the caches are told
// meanwhile it does not know.
func TestBeliefBeginsWithTheReadOfANode(t *testing.T) {
	for name, c := range map[string]struct {
		node string
		want string
	}{
		"a node of the pod":  {node: "n1"},
		"another node":       {node: "n2", want: "S5: the images of pod web-0 change before it is drained"},
		"no node whatsoever": {want: "S5: the images of pod web-0 change before it is drained"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(t *tappv1.TApp) { t.Spec.UpdateStrategy.InPlaceUpdate.GracePeriodSeconds = 60 })
			r.must(r.Update(tapps, "shop/web", "", r.as("user"), func(o object) error { o.(*tappv1.TApp).Spec.Template.Spec.Containers[0].Image = "demo:v2"; return nil }))
			turn := func(conditions ...corev1.PodCondition) {
				r.must(r.Update(pods, "shop/web-0", "status", r.as("kubelet"), func(o object) error {
					o.(*corev1.Pod).Status.Conditions = conditions
					return nil
				}))
			}
			closed := corev1.PodCondition{Type: tappv1.GateInPlaceUpdate, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(r.now().Add(-time.Hour))}
			turn(closed)
			ca := &replica{Process: process.New(1), world: r.world, told: map[string]int64{tapps: r.Version, pods: r.Version}, beliefs: map[string]*belief{}}
			if c.node != "" {
				read := &request{replica: ca, issued: r.began, Request: &apiserver.Request{Verb: "get", Resource: nodes, Name: c.node}}
				r.attribute(read)
				defer r.answered(read)
			}
			turn(closed, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(r.now())})
			ca.told[pods] = r.Version
			q := &request{replica: ca, issued: r.began, Request: &apiserver.Request{Verb: "patch", Resource: pods, Namespace: namespace, Name: "web-0",
				Body: []byte(newImage), Media: string(types.StrategicMergePatchType)}}
			r.attribute(q)
			r.Serve(q.Request, 0, q.actor(r.now()))
			got := ""
			if r.failure != nil {
				got = r.failure.Error()
			}
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// What a sync believes begins with the first request of its chain, and what the caches are
// told meanwhile it does not know.
func TestBeliefGoesOn(t *testing.T) {
	for name, c := range map[string]struct{ verb, name string }{
		"through a list of a live read":           {"list", ""},
		"after a 429, while the clock has jumped": {"patch", "web-0"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			ca := &replica{Process: process.New(1), world: r.world, told: map[string]int64{tapps: r.Version, pods: r.Version}, beliefs: map[string]*belief{}}
			ask := func(verb, resource, name string) *request {
				q := &request{replica: ca, issued: r.began, Request: &apiserver.Request{Verb: verb, Resource: resource, Namespace: namespace, Name: name,
					Body: []byte(`{"metadata":{"annotations":{"x":"y"}}}`), Media: string(types.StrategicMergePatchType)}}
				r.attribute(q)
				return q
			}
			r.answered(ask("get", tapps, "web"))
			first := ask(c.verb, pods, c.name)
			r.must(r.Update(pods, "shop/web-0", "", r.as("somebody"), func(o object) error {
				o.SetOwnerReferences([]metav1.OwnerReference{foreignOwner()})
				return nil
			}))
			ca.told[pods] = r.Version
			if c.verb == "list" {
				r.steps += 5
			}
			r.answered(first)
			if c.verb == "patch" {
				r.steps += 5
				ca.beliefs["shop/web"].again = r.began // which is over by now, and was not when the next one was asked for
			}
			q := ask("patch", pods, "web-0")
			r.Serve(q.Request, 0, q.actor(r.now()))
			if r.failure != nil {
				t.Error(r.failure)
			}
		})
	}
}
