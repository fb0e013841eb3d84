//go:build cluster

package page

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/api/page"
)

// TestReconnect: the page says that the server is away, keeps what it shows, and goes on
// when the server is back.
func TestReconnect(t *testing.T) {
	f := newFake(t, page.Options{})
	tappScene(f, "default", "worker", 60, false)
	b := open(t, desk, f.url("/#/tapps/default/worker"))
	b.shows(".legend", "v4")
	b.shows("#link", "Live")
	f.stop()
	b.shows("#banner", "No connection to the server")
	b.shows("#link", "Not connected")
	if got := eval[int](b, "window.tappGrid.list.length"); got != 60 {
		t.Errorf("%d instances are shown while the server is away", got)
	}
	changed := instance(3, "w4")
	changed["state"], changed["available"] = "PodFailed", false
	f.put("/api/v1/namespaces/default/tapps/worker/instances", entry{"3", changed})
	f.start(f.address)
	b.shows("#link", "Live")
	b.shows(".legend", "failed")
	b.until("the banner goes", "document.querySelector('#banner').hidden")
	if n := b.expect("ERR_"); n == 0 {
		t.Error("the browser noticed nothing: was the server away?")
	}
}

// TestDenied: who may not see something is told why, and how to find out more.
func TestDenied(t *testing.T) {
	f := newFake(t, page.Options{})
	fleetScene(f)
	const message = `tapps.apps.tkestack.io is forbidden: User "jane" cannot list resource "tapps" in API group "apps.tkestack.io" at the cluster scope`
	f.refuse("/api/v1/tapps", http.StatusForbidden, metav1.StatusReasonForbidden, message)
	b := open(t, desk, f.url("/"))
	b.shows(".denied", message)
	b.shows(".denied", "kubectl auth can-i list tapps --all-namespaces")
	b.shows(".row", "checkout") // what she may see is there
	b.shoot(pictures + "/denied-light.png")
	if n := b.expect("403"); n == 0 {
		t.Error("nothing was refused")
	}
}

// TestLogin: without a token the page asks for one, keeps it in memory alone, and says so
// when the server does not take it.
func TestLogin(t *testing.T) {
	f := newFake(t, page.Options{})
	fleetScene(f)
	f.token = "right"
	b := open(t, desk, f.url("/"))
	b.shows("h1", "Who are you?")
	b.enter("#token", "wrong")
	b.shows(".login", "the token is not valid")
	b.enter("#token", "right")
	b.shows("h1", "things need you")
	kept := eval[string](b, "JSON.stringify([location.href, document.cookie, {...localStorage}, {...sessionStorage}, document.documentElement.outerHTML.includes('right'+'\"')])")
	if want := fmt.Sprintf(`[%q,"",{},{},false]`, f.url("/")); kept != want {
		t.Errorf("the token may be in %s, want %s", kept, want)
	}
	b.expect("401")
}

// TestTokenOfTheFragment: the dashboard's token leaves the address at once.
func TestTokenOfTheFragment(t *testing.T) {
	f := newFake(t, page.Options{Actions: true})
	fleetScene(f)
	f.token = "c2VjcmV0"
	b := open(t, desk, f.url("/#token=c2VjcmV0"))
	b.shows("h1", "things need you")
	if got, want := eval[string](b, "location.href + history.length"), f.url("/#/"); !strings.HasPrefix(got, want) || strings.Contains(got, "token") {
		t.Errorf("the address is %s, want %s", got, want)
	}
}

// TestHostile: what a cluster says is text. Nothing of it becomes an element, runs, or
// turns the text around it.
func TestHostile(t *testing.T) {
	f := newFake(t, page.Options{Actions: true})
	const script = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`
	const turned = "safe\u202egnp.exe\u0007"
	ns, name := "a b'$(reboot)", `"><svg onload=document.title='owned'>`
	s := tappSummary(ns+"/"+name, "Stalled", 3, 2, []object{version(script, "x", 3)}, object{
		"message": script, "attention": []object{{"reason": script, "message": script + turned}}, "problems": []string{"spec: " + script},
		"waiting": []object{{"instances": script, "count": 1, "why": script}}, "steps": []object{{"sentence": script}}})
	f.put("/api/v1/tapps", s)
	f.put("/api/v1/clusters", entry{"c", object{"name": script, "state": script, "message": script, "meta": object{script: script}}})
	base := "/api/v1/namespaces/" + ns + "/tapps/" + name
	s.key = ""
	f.put(base, s)
	i := instance(0, "x")
	i["state"], i["why"], i["reason"], i["node"] = script, script, script, script
	f.sums[base+"/instances"] = object{"versions": []object{{"hash": "x", "images": []string{script}}}}
	f.put(base+"/instances", entry{"0", i})
	f.put(base+"/history", entry{"1", object{"revision": 1, "change": script, "changes": []object{{"path": script, "from": script, "to": script}}}})
	f.put(base+"/events", entry{"1", object{"type": "Warning", "reason": script, "message": script}})

	b := open(t, desk, f.url("/"))
	b.shows(".need .why", script)
	b.shows(".need .why", `safe\u202egnp.exe\u0007`)
	b.shows(".need code", `kubectl tapp get -n 'a b'\''$(reboot)' '"><svg onload=document.title='\''owned'\''>'`)
	b.do(click(".need h2 a"))
	b.shows(".inspector", "Point at an instance")
	b.point("0")
	b.shows(".inspector", script)
	b.shows(".history", script)
	b.shows(".events", script)
	b.do(click(".tools > button"))
	b.shows("table", script)
	b.visit(f.url("/#/clusters"))
	b.shows("table", script)
	if title := eval[string](b, "document.title"); strings.Contains(title, "owned") && !strings.Contains(title, "svg") {
		t.Errorf("the title is %q: a script of the cluster ran", title)
	}
	if n := eval[int](b, "document.querySelectorAll('img, script:not([src=\"app/main.js\"]), main svg').length"); n != 0 {
		t.Errorf("%d elements were made of texts", n)
	}
}
