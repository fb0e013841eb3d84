//go:build cluster

package e2e

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/test/gen"
)

// annotationKept is that of a pod which was made with other content than the present template, and
// has the hash of it.
const annotationKept = "tkestack.io/kept"

// births are the images with which the pods of a namespace were made.
type births struct {
	mu     sync.Mutex
	images map[string][]string
}

// watchBirths begins with the pods that are made from now on.
func watchBirths(t *testing.T, ns string) *births {
	t.Helper()
	b := &births{images: map[string][]string{}}
	t.Cleanup(suite.feed.follow(func(s step) {
		if s.New == nil || s.New.Namespace != ns || s.Old != nil && s.Old.UID == s.New.UID {
			return
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.images[s.New.Name] = append(b.images[s.New.Name], image(s.New, "main"))
	}))
	return b
}

// are checks that the pods of these names, and no others, were made once each, with this image.
func (b *births) are(t *testing.T, want string, names ...string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, images := range b.images {
		if !slices.Contains(names, name) {
			t.Errorf("pod %s was made, with %v", name, images)
		}
	}
	for _, name := range names {
		if got := b.images[name]; !slices.Equal(got, []string{want}) {
			t.Errorf("pod %s was made with %v, want %s", name, got, want)
		}
	}
}

// evict pods by the Eviction API, as `kubectl drain` does.
func evict(t *testing.T, ns string, names ...string) {
	t.Helper()
	for _, name := range names {
		e := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns}}
		if err := suite.Kube.PolicyV1().Evictions(ns).Evict(t.Context(), e); err != nil {
			t.Fatalf("evict pod %s: %v", name, err)
		}
	}
}

// deletePods deletes pods as people do.
func deletePods(t *testing.T, ns string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := suite.Kube.CoreV1().Pods(ns).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatalf("delete pod %s: %v", name, err)
		}
	}
}

// follows waits until the next pod of an instance is Ready.
func follows(t *testing.T, ns string, lost *corev1.Pod) *corev1.Pod {
	t.Helper()
	return podWhere(t, ns, lost.Name, "is another one, and Ready", func(p *corev1.Pod) string {
		return unless(p.UID != lost.UID && isReady(p), "not yet")
	})
}

// asItWas waits until the next pod of an instance is Ready, and checks that it has what the lost one had.
func asItWas(t *testing.T, ns string, lost *corev1.Pod) {
	t.Helper()
	p := follows(t, ns, lost)
	hash := lost.Labels[tappv1.LabelTemplateHash]
	if image(p, "main") != image(lost, "main") || p.Labels[tappv1.LabelTemplateHash] != hash || p.Annotations[annotationKept] != hash {
		t.Errorf("it should be as the lost one, which had the hash %s: %s, hash %s, %s %q", hash, cluster.PodLine(p), p.Labels[tappv1.LabelTemplateHash],
			annotationKept, p.Annotations[annotationKept])
	}
}

func pause(p bool) gen.Option { return func(t *tappv1.TApp) { t.Spec.Paused = p } }

// isPaused waits until the status says so of the present generation.
func isPaused(t *testing.T, ns string) {
	t.Helper()
	tappWhere(t, ns, "app", "says that it is paused", func(tapp *tappv1.TApp) string {
		return unless(told(tapp, "Paused"), "it does not")
	})
}

// stopsIn has the server go on for some seconds after it was told to end.
func stopsIn(duration string) gen.Edit {
	return func(p *corev1.PodTemplateSpec) { gen.Env("DEMO_STOP_DELAY", duration)(p) }
}

// An instance that is lost while its TApp is paused comes back as it was: the template that is held back goes live
// nowhere. Reported of others: openkruise/kruise#1183, kubernetes-sigs/lws#280.
func TestLossesWhilePaused(t *testing.T) {
	t.Parallel()
	held := []gen.Option{pause(true), gen.Default(gen.Image("demo:crash"))}
	for name, c := range map[string]struct {
		opts []gen.Option
		lose func(t *testing.T, ns string) // holds the update back, and loses pods
		lost []string
	}{
		"evicted": {nil, func(t *testing.T, ns string) {
			t.Helper()
			change(t, ns, "app", pause(true))
			settled(t, ns, "app") // nothing is held back yet
			change(t, ns, "app", held...)
			isPaused(t, ns)
			evict(t, ns, "app-3")
		}, []string{"app-3"}},
		"at-once": {nil, func(t *testing.T, ns string) {
			t.Helper()
			change(t, ns, "app", held...)
			evict(t, ns, "app-3")
		}, []string{"app-3"}},
		"two-without-history": {[]gen.Option{func(t *tappv1.TApp) { t.Spec.RevisionHistoryLimit = new(int32(0)) }}, func(t *testing.T, ns string) {
			t.Helper()
			change(t, ns, "app", held...)
			isPaused(t, ns)
			evict(t, ns, "app-0", "app-2")
		}, []string{"app-0", "app-2"}},
		"all-deleted-after-a-second-edit": {nil, func(t *testing.T, ns string) {
			t.Helper()
			change(t, ns, "app", held...)
			isPaused(t, ns)
			change(t, ns, "app", gen.Default(gen.Image("demo:v3"), gen.Env("MODE", "new")))
			isPaused(t, ns)
			deletePods(t, ns, "app-0", "app-1", "app-2", "app-3")
		}, []string{"app-0", "app-1", "app-2", "app-3"}},
		"deleted-before-the-pause": {[]gen.Option{gen.Default(stopsIn("3s"))}, func(t *testing.T, ns string) {
			t.Helper()
			deletePods(t, ns, "app-1")
			change(t, ns, "app", held...)
		}, []string{"app-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns, _ := run(t, gen.TApp("app", append([]gen.Option{gen.Replicas(4), gen.Default(gen.Probe(), stopsSoonest)}, c.opts...)...))
			before, born := pods(t, ns), watchBirths(t, ns)
			c.lose(t, ns)
			for _, name := range c.lost {
				asItWas(t, ns, before[name])
				delete(before, name)
			}
			during := pods(t, ns)
			untouched(t, before, during)
			born.are(t, "demo:v1", c.lost...)
			rollout := watchRollout(t, ns)
			change(t, ns, "app", pause(false), gen.Default(gen.Image("demo:v2"), withoutEnv("MODE")))
			settled(t, ns, "app")
			after := pods(t, ns)
			sameUIDs(t, during, after)
			for _, p := range after {
				if image(p, "main") != "demo:v2" {
					t.Errorf("it should run demo:v2: %s", cluster.PodLine(p))
				}
			}
			rollout.neverBelow(t, 3)
		})
	}
}

// stopsSoonest is for pods whose server stops at once, unless it is told to go on.
func stopsSoonest(p *corev1.PodTemplateSpec) { p.Spec.TerminationGracePeriodSeconds = new(int64(10)) }

func withoutEnv(name string) gen.Edit {
	return func(p *corev1.PodTemplateSpec) {
		c := &p.Spec.Containers[0]
		c.Env = slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == name })
	}
}

// Instances that are lost, or come by a scale-up, while a rollout is held back by its budget run what their siblings
// serve with, and not the content that does not work.
func TestLossesBehindTheBudget(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]bool{"prompt": false, "late": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := namespace(t)
			create(t, ns, gen.TApp("app", gen.Replicas(4), gen.Default(gen.Probe(), stopsSoonest)))
			routes := expose(t, ns, "app")
			settled(t, ns, "app")
			before, born := pods(t, ns), watchBirths(t, ns)
			change(t, ns, "app", gen.Default(gen.Image("demo:unready")))
			if late {
				podIs(t, ns, 0, "demo:unready")
			} else {
				updated(t, ns, "demo:unready", 1)
			}
			evict(t, ns, "app-2", "app-3")
			asItWas(t, ns, before["app-2"])
			asItWas(t, ns, before["app-3"])
			born.are(t, "demo:v1", "app-2", "app-3")
			change(t, ns, "app", gen.Replicas(6))
			for _, name := range []string{"app-4", "app-5"} {
				podWhere(t, ns, name, "is Ready", func(p *corev1.Pod) string { return unless(isReady(p), "not yet") })
			}
			born.are(t, "demo:v1", "app-2", "app-3", "app-4", "app-5")
			routes.served(t, 5)
			during := pods(t, ns)
			change(t, ns, "app", gen.Default(gen.Image("demo:v2")))
			settled(t, ns, "app")
			after := pods(t, ns)
			sameUIDs(t, during, after)
			for i := range 6 {
				podIs(t, ns, i, "demo:v2")
			}
			routes.neverFewer(t, 5)
		})
	}
}

// New instances of a paused TApp run what its serving ones run; where none serve, the present template.
func TestScaleUpWhilePaused(t *testing.T) {
	t.Parallel()
	ns, _ := run(t, gen.TApp("app", gen.Replicas(2), pause(true), gen.Default(gen.Probe())))
	before, born := pods(t, ns), watchBirths(t, ns)
	change(t, ns, "app", gen.Default(gen.Image("demo:crash")))
	isPaused(t, ns)
	kubectl(t, ns, "scale", "tapp/app", "--replicas=4")
	for _, name := range []string{"app-2", "app-3"} {
		podWhere(t, ns, name, "is Ready", func(p *corev1.Pod) string { return unless(isReady(p), "not yet") })
	}
	born.are(t, "demo:v1", "app-2", "app-3")
	untouched(t, before, map[string]*corev1.Pod{"app-0": pod(t, ns, "app-0"), "app-1": pod(t, ns, "app-1")})
	change(t, ns, "app", pause(false), gen.Default(gen.Image("demo:v2")))
	settled(t, ns, "app")
	for i := range 4 {
		podIs(t, ns, i, "demo:v2")
	}
}

// An instance that was stopped and is started again while its TApp is paused runs what it ran before, whichever came
// first, the kill or the pause. It has no pod in between to tell of it.
func TestStartWhilePaused(t *testing.T) {
	t.Parallel()
	kill := gen.Killed(1)
	for name, steps := range map[string][][]gen.Option{
		"paused-then-killed": {{pause(true), gen.Default(gen.Image("demo:crash"))}, {kill}},
		"killed-then-paused": {{kill}, {pause(true), gen.Default(gen.Image("demo:crash"))}},
		"both-at-once":       {{kill, pause(true), gen.Default(gen.Image("demo:crash"))}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns, _ := run(t, gen.TApp("app", gen.Default(gen.Probe(), stopsSoonest)))
			before, born := pods(t, ns), watchBirths(t, ns)
			for _, opts := range steps {
				change(t, ns, "app", opts...)
				tappWhere(t, ns, "app", "is seen", func(*tappv1.TApp) string { return "" })
			}
			instancesAre(t, ns, "app", map[string]tappv1.InstanceStatus{"0": running, "1": killed, "2": running})
			change(t, ns, "app", start)
			follows(t, ns, before["app-1"])
			born.are(t, "demo:v1", "app-1")
			change(t, ns, "app", pause(false), gen.Default(gen.Image("demo:v2")))
			settled(t, ns, "app")
			for i := range 3 {
				podIs(t, ns, i, "demo:v2")
			}
		})
	}
}

// Not paused, a start takes the present template, also behind the budget: that is how one instance is tried.
func TestStartBehindTheBudget(t *testing.T) {
	t.Parallel()
	ns, _ := run(t, gen.TApp("app", gen.Default(gen.Probe(), stopsSoonest), gen.Killed(2)))
	change(t, ns, "app", gen.Default(gen.Image("demo:unready")))
	podIs(t, ns, 0, "demo:unready")
	born := watchBirths(t, ns)
	change(t, ns, "app", start)
	podIs(t, ns, 2, "demo:unready")
	born.are(t, "demo:unready", "app-2")
	podIs(t, ns, 1, "demo:v1")
}

// What TApp has deleted for its update comes with that update, though it is paused meanwhile.
func TestPauseInTheMidstOfARecreation(t *testing.T) {
	t.Parallel()
	ns, _ := run(t, gen.TApp("app", gen.Default(gen.Probe(), stopsSoonest, stopsIn("3s"))))
	before := pods(t, ns)
	change(t, ns, "app", gen.Default(gen.Image("demo:v2"), gen.Env("MODE", "new")))
	podWhere(t, ns, "app-0", "is being deleted", func(p *corev1.Pod) string { return unless(p.DeletionTimestamp != nil, "not yet") })
	change(t, ns, "app", pause(true))
	isPaused(t, ns)
	if p := follows(t, ns, before["app-0"]); image(p, "main") != "demo:v2" || p.Annotations[annotationKept] != "" {
		t.Errorf("it was deleted to get demo:v2: %s, %v", cluster.PodLine(p), p.Annotations)
	}
	delete(before, "app-0")
	untouched(t, before, map[string]*corev1.Pod{"app-1": pod(t, ns, "app-1"), "app-2": pod(t, ns, "app-2")})
	change(t, ns, "app", pause(false))
	settled(t, ns, "app")
	for i := range 3 {
		podIs(t, ns, i, "demo:v2")
	}
}

// An instance that failed by itself gets its corrected template behind the budget, and not while paused. Both come
// after a while, as failures do.
func TestFailureWhileHeldBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		opts []gen.Option
		want string
	}{
		"paused":            {[]gen.Option{pause(true), gen.Default(gen.Image("demo:v2"))}, "demo:v1"},
		"behind-the-budget": {[]gen.Option{minReady(endless), gen.Default(gen.Image("demo:v2"))}, "demo:v2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns, _ := run(t, gen.TApp("app", gen.Default(gen.Simulated(), gen.RestartPolicy(corev1.RestartPolicyOnFailure))))
			before, born := pods(t, ns), watchBirths(t, ns)
			change(t, ns, "app", c.opts...)
			if c.want == "demo:v2" {
				oneIsUpdated(t, ns)
			} else {
				isPaused(t, ns)
			}
			simulate(t, ns, "app-2", "finish", "Failed")
			follows(t, ns, before["app-2"])
			born.are(t, c.want, "app-2")
		})
	}
}

// Losses that no controller saw, and a pause that none saw before them: the next leader makes them as they were.
func TestLossesWhileNoControllerRuns(t *testing.T) {
	ns, _ := run(t, gen.TApp("app", gen.Replicas(4), gen.Default(gen.Probe(), stopsSoonest)))
	before, born := pods(t, ns), watchBirths(t, ns)
	stopController(t)
	evict(t, ns, "app-1", "app-3")
	for _, name := range []string{"app-1", "app-3"} {
		podGone(t, ns, name, before[name].UID)
	}
	change(t, ns, "app", pause(true), gen.Default(gen.Image("demo:crash")))
	restartController(t)
	for _, name := range []string{"app-1", "app-3"} {
		asItWas(t, ns, before[name])
		delete(before, name)
	}
	born.are(t, "demo:v1", "app-1", "app-3")
	untouched(t, before, pods(t, ns))
	// Once more, with a status that tells what each instance has.
	before = pods(t, ns)
	stopController(t)
	evict(t, ns, "app-0", "app-1", "app-2", "app-3")
	for name, p := range before {
		podGone(t, ns, name, p.UID)
	}
	restartController(t)
	for _, p := range before {
		asItWas(t, ns, p)
	}
	if t.Failed() {
		t.Log(fmt.Sprint(born.images))
	}
}
