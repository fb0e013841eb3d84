//go:build cluster

package page

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/gen"
)

// TestRollout: a rollout is followed as it happens, from the first pod of the new version
// to the last, and in the end the page has what the API server has. One that hangs is told.
func TestRollout(t *testing.T) {
	r := newRig(t)
	const replicas = 30
	r.Create(gen.TApp("web", gen.Replicas(replicas), gen.Default(gen.Simulated(), gen.Image("web:1")), gen.MaxUnavailable("3")))
	r.WaitReady("web")
	address := r.dashboard(r.Kubeconfig, "-n", r.NS)
	b := open(t, desk, address)
	b.shows("h1", "Nothing needs you")
	b.shows(".row", "web")
	b.shows(".row", fmt.Sprintf("%d of %d", replicas, replicas))
	b.do(click(".at-name a"))
	b.until("all instances are there", fmt.Sprintf("window.tappGrid?.list.length === %d && window.tappGrid.list.every((i) => i.available && i.current)", replicas))
	eval[bool](b, `(() => { window.seen = {both: 0, worst: 0}; const set = window.tappGrid.change.bind(window.tappGrid);
		const look = () => { const l = window.tappGrid.list, news = l.filter((i) => i.current).length; if (news > 0 && news < l.length) window.seen.both++; window.seen.worst = Math.max(window.seen.worst, l.filter((i) => !i.available).length); };
		window.tappGrid.change = (ids) => { set(ids); look(); }; return true; })()`)
	r.Change("web", gen.Default(gen.Simulated(), gen.Image("web:2")))
	b.until("the new version is there", `window.tappGrid.list.some((i) => i.current) && window.tappGrid.list.some((i) => !i.current)`)
	b.shows(".legend", "2")
	r.WaitReady("web")
	b.until("the rollout is at its end", `window.tappGrid.list.every((i) => i.current && i.available)`)
	b.shows(".title", "Ready")
	type seen struct{ Both, Worst int }
	got := eval[seen](b, `({Both: window.seen.both, Worst: window.seen.worst})`)
	if got.Both == 0 || got.Worst == 0 || got.Worst > 3 {
		t.Errorf("on the way the page saw both versions %d times, and at most %d instances out of service; want some, and 1 to 3", got.Both, got.Worst)
	}
	uids := eval[map[string]string](b, `Object.fromEntries(window.tappGrid.list.map((i) => [i.pod, i.node]))`)
	for name, pod := range r.Pods() {
		if uids[name] != pod.Spec.NodeName {
			t.Errorf("the page has pod %s on node %q, it is on %s", name, uids[name], pod.Spec.NodeName)
		}
	}
	b.shows(".history", "template.spec.containers[main].image: web:1 -> web:2") // it came while the view was open
	b.shoot(pictures + "/live-light.png")

	// An API server that hangs is told, with what is known of before, until it answers again.
	thaw := r.Freeze("kube-apiserver")
	b.shows("main [role=status]", "This may not be current")
	b.shows("main [role=status]", "the API server cannot be asked: it does not answer in time")
	if n := eval[int](b, "window.tappGrid.list.length"); n != replicas {
		t.Errorf("%d instances are shown while the API server hangs", n)
	}
	thaw()
	b.until("it is current again", "!document.querySelector('main').innerText.includes('may not be current')")
	b.expect("404") // the cluster has no AppSets
}

// TestActionsOfTheUser: an action shows the plan first, and is done with the rights of the
// user and no others.
func TestActionsOfTheUser(t *testing.T) {
	r := newRig(t)
	r.Create(gen.TApp("web", gen.Replicas(6), gen.Default(gen.Simulated()), gen.MaxUnavailable("2")))
	r.WaitReady("web")
	see := rbacv1.PolicyRule{Verbs: []string{"get", "list", "watch"}, APIGroups: []string{"", "apps", "apps.tkestack.io", "appcontroller.k8s.io", "workload.dmall.com"},
		Resources: []string{"tapps", "apps", "appsets", "pods", "persistentvolumeclaims", "controllerrevisions", "events"}}
	steer := rbacv1.PolicyRule{Verbs: []string{"patch"}, APIGroups: []string{"apps.tkestack.io"}, Resources: []string{"tapps"}}
	b := open(t, desk, r.dashboard(r.kubeconfig("jane", see, steer), "-n", r.NS))
	b.shows(".row", "web")
	b.visit(strings.Split(b.location(), "#")[0] + "#/tapps/" + r.NS + "/web")
	b.until("all instances are there", "window.tappGrid?.list.length === 6")
	b.shows(".figures", "6 of 6") // what is above the squares has its height
	b.shows(".legend", "v1 6")
	b.press("4")
	b.button(".inspector", "Kill…")
	b.shows("dialog", "1 instance is killed (4): spec.statuses says Killed")
	if got := r.Get("web").Spec.Statuses; len(got) > 0 {
		t.Fatalf("the plan has changed the spec: %v", got)
	}
	b.do(click("dialog button.primary"))
	b.shows("dialog", "web instance 4 killed")
	b.key("Escape")
	r.Eventually("instance 4 is killed", func(context.Context) error {
		if got := r.Get("web").Spec.Statuses["4"]; got != tappv1.InstanceKilled {
			return fmt.Errorf("spec.statuses[4] is %q", got)
		}
		return nil
	})
	b.shows(".legend", "stopped 1")

	// She may not patch pods, which a restart needs.
	b.press("2")
	b.button(".inspector", "Restart…")
	b.shows("dialog", "cannot patch resource")
	b.key("Escape")
	if n := b.expect("409"); n == 0 {
		t.Error("the restart was not refused")
	}

	b.expect("404") // the cluster has no AppSets

	// The port is open to the machine, the API to the page alone.
	for what, header := range map[string]http.Header{"no token": {}, "a wrong one": {"Authorization": {"Bearer wrong"}}} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.Split(b.location(), "#")[0]+"api/v1/tapps", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header = header
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %s", what, response.Status)
		}
		_ = response.Body.Close() // nothing of it is read
	}
}

// TestNoRights: who may see nothing is told so in the words of the API server.
func TestNoRights(t *testing.T) {
	r := newRig(t)
	b := open(t, desk, r.dashboard(r.kubeconfig("nobody"), "-n", r.NS))
	b.shows(".denied", "You may not see tapps")
	b.shows(".denied", `cannot list resource "tapps"`)
	b.shows(".denied", "kubectl auth can-i list tapps -n "+r.NS)
	b.expect("404") // the cluster has no AppSets
	if n := b.expect("403"); n == 0 {
		t.Error("nothing was refused")
	}
}
