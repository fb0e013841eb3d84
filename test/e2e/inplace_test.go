//go:build cluster

package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/audit"
	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/test/gen"
)

// sidecar is a second container, which an update of main must not touch.
func sidecar(image string) corev1.Container {
	return corev1.Container{Name: "side", Image: image}
}

func TestInPlaceKeepsThePod(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	service := expose(t, ns, "web")
	create(t, ns, gen.TApp("web", gen.Replicas(2), gen.Default(gen.Probe(), gen.Container(sidecar("nginx:1.7.9")))))
	settled(t, ns, "web")
	service.has(t, 2)
	before := onlyPods(t, ns, "web-0", "web-1")
	log := follow(t)

	tapp := change(t, ns, "web", gen.Default(gen.Image("demo:v2")))
	settled(t, ns, "web")
	service.has(t, 2)

	after := onlyPods(t, ns, "web-0", "web-1")
	sameUIDs(t, before, after)
	for name, p := range after {
		was := before[name]
		if p.Status.PodIP != was.Status.PodIP || p.Spec.NodeName != was.Spec.NodeName {
			t.Errorf("%s moved from %s on %s to %s on %s", name, was.Status.PodIP, was.Spec.NodeName, p.Status.PodIP, p.Spec.NodeName)
		}
		if image(p, "main") != "demo:v2" || !sameImages(p) || restarts(p, "main") != 1 {
			t.Errorf("main should have been restarted once with demo:v2: %s", cluster.PodLine(p))
		}
		if container(p, "side").ContainerID != container(was, "side").ContainerID || restarts(p, "side") != 0 {
			t.Errorf("side was restarted: %s", cluster.PodLine(p))
		}
		if p.Status.ObservedGeneration != p.Generation {
			t.Errorf("%s: the kubelet has seen generation %d of %d", name, p.Status.ObservedGeneration, p.Generation)
		}
		onlyTheGate(t, p)
	}
	if n := service.neverWhileChanging(t, false); n != 2 {
		t.Errorf("the watch saw %d pods change, want 2", n)
	}
	gateFlow(t, service.steps)
	for name, n := range podWrites(t, log, ns) {
		if n != 3 {
			t.Errorf("%d writes for %s, want 3: gate, images, gate", n, name)
		}
	}
	if get(t, ns, "web").Generation != tapp.Generation {
		t.Error("the controller wrote spec")
	}
}

// onlyTheGate checks that of the pod's status TApp has written nothing but its
// gate's condition: Ready is the kubelet's (fault 7).
func onlyTheGate(t *testing.T, p *corev1.Pod) {
	t.Helper()
	found := false
	for _, f := range p.ManagedFields {
		if f.Subresource != "status" || !strings.HasPrefix(f.Manager, "tapp") {
			continue
		}
		fields := f.FieldsV1.GetRawString()
		found = found || strings.Contains(fields, `{\"type\":\"`+string(tappv1.GateInPlaceUpdate)+`\"}`)
		if strings.Count(fields, `{\"type\":`) != 1 || strings.Contains(fields, "f:phase") || strings.Contains(fields, "f:containerStatuses") {
			t.Errorf("%s has written more than its gate to the status of %s: %s", f.Manager, p.Name, fields)
		}
	}
	if !found {
		t.Errorf("pod %s does not say that TApp has written its gate: %v", p.Name, p.ManagedFields)
	}
}

// gateFlow checks that the gate of each pod closes, its image changes after that,
// and the gate opens when the new container is ready; each once.
func gateFlow(t *testing.T, steps []step) {
	t.Helper()
	flows := map[string][]string{}
	for _, s := range steps {
		if s.Old == nil || s.New == nil || s.Old.UID != s.New.UID {
			continue
		}
		note := func(what string) { flows[s.New.Name] = append(flows[s.New.Name], what) }
		was, is := condition(s.Old, tappv1.GateInPlaceUpdate), condition(s.New, tappv1.GateInPlaceUpdate)
		switch {
		case was == corev1.ConditionTrue && is == corev1.ConditionFalse:
			note("closed")
		case was == corev1.ConditionFalse && is == corev1.ConditionTrue:
			note("open")
			if c := container(s.New, "main"); !c.Ready || !sameImages(s.New) {
				t.Errorf("the gate opened too early: %s", cluster.PodLine(s.New))
			}
		}
		if image(s.Old, "main") != image(s.New, "main") {
			note("changed")
		}
	}
	for name, flow := range flows {
		if got := strings.Join(flow, " "); got != "" && got != "closed changed open" {
			t.Errorf("%s: %s, want closed changed open", name, got)
		}
	}
}

// follow starts reading the audit log.
func follow(t *testing.T) *audit.Log {
	t.Helper()
	return in(t, "").FollowAudit()
}

// ourRequests returns what the controller has asked for in the namespace since
// the last call.
func ourRequests(t *testing.T, log *audit.Log, ns string) []audit.Request {
	t.Helper()
	return in(t, ns).Requests(log, audit.Filter{Agent: ourAgent, Namespace: ns})
}

// podWrites counts the controller's writes by pod.
func podWrites(t *testing.T, log *audit.Log, ns string) map[string]int {
	t.Helper()
	var writes []audit.Request
	for _, r := range ourRequests(t, log, ns) {
		if r.Resource == "pods" && r.IsWrite() {
			writes = append(writes, r)
		}
	}
	return audit.Count(writes, func(r audit.Request) string { return r.Name })
}

func TestInPlaceWaitsForGracePeriod(t *testing.T) {
	t.Parallel()
	// Whoever fills the Service tries again after a second, and then after two, when its
	// write met another one.
	const grace = 12
	ns := namespace(t)
	service := expose(t, ns, "web")
	create(t, ns, gen.TApp("web", gen.Replicas(2), func(t *tappv1.TApp) {
		t.Spec.UpdateStrategy.InPlaceUpdate.GracePeriodSeconds = grace
	}))
	settled(t, ns, "web")
	service.has(t, 2)
	change(t, ns, "web", gen.Default(gen.Image("demo:v2")), gen.MaxUnavailable("2"))
	settled(t, ns, "web")
	service.has(t, 2)
	if n := service.neverWhileChanging(t, true); n != 2 {
		t.Errorf("the watch saw %d pods change, want 2", n)
	}
	// Between the condition and the change there is the grace period, less the
	// fraction of a second that a condition's time does not say.
	service.mu.Lock()
	defer service.mu.Unlock()
	for _, s := range service.steps {
		if s.Old != nil && s.New != nil && s.Old.UID == s.New.UID && image(s.Old, "main") != image(s.New, "main") {
			for _, c := range s.Old.Status.Conditions {
				for _, f := range s.New.ManagedFields {
					if c.Type == corev1.PodReady && f.Subresource == "" && strings.HasPrefix(f.Manager, "tapp") &&
						f.Time.Sub(c.LastTransitionTime.Time).Seconds() > 0 && f.Time.Sub(c.LastTransitionTime.Time).Seconds() < grace {
						t.Errorf("pod %s changed at %s, and became NotReady at %s", s.New.Name, f.Time, c.LastTransitionTime)
					}
				}
			}
		}
	}
}

func TestInPlaceWithoutDrain(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	log := follow(t)
	create(t, ns, gen.TApp("job", gen.NoDrain()))
	settled(t, ns, "job")
	before := onlyPods(t, ns, "job-0", "job-1", "job-2")
	for name, n := range podWrites(t, log, ns) {
		if n != 1 {
			t.Errorf("%d writes to create %s, want 1", n, name)
		}
	}
	change(t, ns, "job", gen.Default(gen.Image("demo:v2")))
	settled(t, ns, "job")
	after := onlyPods(t, ns, "job-0", "job-1", "job-2")
	sameUIDs(t, before, after)
	for _, p := range after {
		if hasGate(p) || !sameImages(p) || image(p, "main") != "demo:v2" || restarts(p, "main") != 1 {
			t.Errorf("it should have no gate and run demo:v2: %s", cluster.PodLine(p))
		}
	}
	writes := podWrites(t, log, ns)
	for name := range after {
		if writes[name] != 1 {
			t.Errorf("%d writes to update %s, want 1", writes[name], name)
		}
	}
	// Turning it on touches no running pod.
	change(t, ns, "job", func(t *tappv1.TApp) { t.Spec.UpdateStrategy.InPlaceUpdate.Drain = nil })
	settled(t, ns, "job")
	untouched(t, after, pods(t, ns))
	if writes := podWrites(t, log, ns); len(writes) != 0 {
		t.Errorf("a change of drain wrote to pods: %v", writes)
	}
}
