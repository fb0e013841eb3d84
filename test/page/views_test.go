//go:build cluster

package page

import (
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/api/page"
)

// pictures is where the tests put what they have seen.
var pictures = filepath.Join("..", "..", "dist", "page")

func TestPictures(t *testing.T) {
	f := newFake(t, page.Options{Actions: true})
	fleetScene(f)
	tappScene(f, "default", "worker", 60, true)
	for name, l := range map[string]look{"light": desk, "dark": night, "phone": phone, "wall": wall} {
		t.Run(name, func(t *testing.T) {
			b := open(t, l, f.url("/"))
			b.shows("h1", "things need you")
			b.shows(".row", "worker")
			b.shoot(filepath.Join(pictures, "overview-"+name+".png"))
			b.visit(f.url("/#/tapps/default/worker"))
			b.shows(".legend", "failed")
			b.shows(".history", "Revision 2")
			b.point("15")
			b.shows(".inspector", "Instance 15")
			b.shoot(filepath.Join(pictures, "tapp-"+name+".png"))
			b.visit(f.url("/#/appsets/shop/search"))
			b.shows(".matrix", "bj-2")
			b.shows(".history", "Revision 2")
			b.do(click(`[data-unit="bj-2/search-bj2-blue"]`))
			b.shows("#unit", "bj-node-3")
			b.shoot(filepath.Join(pictures, "appset-"+name+".png"))
		})
	}
}

// TestKeyboard walks through the page without a mouse.
func TestKeyboard(t *testing.T) {
	f := newFake(t, page.Options{Actions: true})
	fleetScene(f)
	tappScene(f, "default", "worker", 60, true)
	b := open(t, desk, f.url("/"))
	b.shows("h1", "things need you")
	for _, want := range []string{"Skip to the content", "TApp, overview", "Overview", "Clusters", "Preview", "Namespace", "✕ 1 halted"} {
		b.key("Tab")
		if got := b.focused(); got != want {
			t.Fatalf("Tab goes to %q, want %q", got, want)
		}
	}
	b.key("Enter") // only what is halted
	b.until("one is left", "document.querySelectorAll('.attention .need').length === 1")
	b.visit(f.url("/#/tapps/default/worker"))
	b.shows(".legend", "failed")
	b.until("the view has the focus", "document.activeElement.id === 'main'")
	b.focus(".grid")
	for _, k := range []string{"ArrowRight", "ArrowRight", "ArrowDown"} {
		b.key(k)
	}
	columns := eval[int](b, "window.tappGrid.columns")
	b.shows(".inspector", "Instance "+strconv.Itoa(columns+2))
	if got, want := b.text("#cell"), fmt.Sprintf("Instance %d, ", columns+2); !strings.HasPrefix(got, want) {
		t.Errorf("a screen reader is told %q, want %q...", got, want)
	}
	b.key("Home")
	b.key(" ")
	b.key("ArrowRight")
	b.key(" ")
	b.until("two are picked", "window.tappGrid.picked.size === 2")
	b.key("Tab")
	if got := b.focused(); got != "Copy: kubectl tapp restart -n default worker 0-1" {
		t.Errorf("after the grid comes %q", got)
	}
	for _, name := range []string{"state", "version", "why"} {
		if h := eval[bool](b, fmt.Sprintf("[...document.querySelectorAll('th')].some((e) => e.textContent.toLowerCase() === %q)", name)); !h {
			t.Errorf("the table has no column %s", name)
		}
	}
	b.focus(".tools > button")
	b.key("Enter")
	b.shows("tbody", "ErrImagePull")
}

// TestBudget: of a budget that is overdrawn the page says how much silent clusters have of it.
func TestBudget(t *testing.T) {
	f := newFake(t, page.Options{})
	fleetScene(f)
	base := "/api/v1/namespaces/pay/appsets/ledger"
	f.put(base, entry{"", object{"namespace": "pay", "name": "ledger", "desired": 18, "available": 11, "unknown": 6, "rollout": object{"budget": 2, "charged": 7}}})
	f.put(base+"/history", entry{"1", object{"revision": 1, "created": ago(time.Hour)}})
	f.put(base+"/events", entry{"1", object{"type": "Normal", "reason": "StageDone", "message": "Stage canary is done.", "last": ago(time.Hour), "count": 1}})
	b := open(t, desk, f.url("/"))
	b.until("one line alone has the word", "[...document.querySelectorAll('.at-budget')].filter((e) => e.innerText.includes('silent')).map((e) => e.innerText.match(/[0-9]+ [a-z]+( [0-9]+)?/g).join()).join() === '6 of 2,6 silent'")
	b.visit(f.url("/#/appsets/pay/ledger"))
	b.shows(".figures", "7 of 2, up to 6 by silent clusters")
	f.put(base, entry{"", object{"namespace": "pay", "name": "ledger", "desired": 18, "available": 17, "unknown": 0, "rollout": object{"budget": 2, "charged": 1}}})
	b.shows(".figures", "1 of 2")
	b.until("nothing is silent any more", "!document.querySelector('.figures').innerText.includes('silent')")
}

// TestUnit: the instances of a podSet in a cluster are opened and closed by keyboard, follow
// the cluster, and a cluster or a right that is missing is told.
func TestUnit(t *testing.T) {
	f := newFake(t, page.Options{})
	fleetScene(f)
	const set, instances = "/api/v1/namespaces/shop/appsets/search", "/api/v1/namespaces/shop/appsets/search/instances"
	b := open(t, desk, f.url("/#/appsets/shop/search"))
	b.shows(".matrix", "bj-2")
	b.focus(`[data-unit="bj-2/search-bj2-blue"]`)
	b.key("Enter")
	b.shows("#unit h2", "Instances of search-bj2-blue in bj-2")
	if got := b.focused(); got != "Instances of search-bj2-blue in bj-2" {
		t.Errorf("the focus is on %q", got)
	}
	b.shows("#unit tbody", "search: waiting, CrashLoopBackOff, back-off 5m0s restarting failed container; 9 restarts")
	if n := eval[int](b, "document.querySelectorAll('#unit tbody tr').length"); n != 24 {
		t.Errorf("%d instances are shown", n)
	}
	b.shows("#unit .command", "kubectl tapp fleet explain -n shop search")
	b.shows("#unit .command", "kubectl --context bj-2 get pods -n shop -l release=search-bj2-blue")
	if got, want := b.location(), f.url("/#/appsets/shop/search?unit=bj-2%2Fsearch-bj2-blue"); got != want {
		t.Errorf("the address is %s, want %s", got, want)
	}

	// A change of the AppSet takes the focus from nobody, and the pods are read again.
	b.focus(`[data-unit="bj-2/search-bj2-green"]`)
	f.put(instances, entry{"24", podOf("search-bj2-blue", 24)})
	changed := object{}
	maps.Copy(changed, f.lists[set][0].object)
	changed["clusterStatuses"] = changed["clusterStatuses"].([]object)[:2]
	f.put(set, entry{"", changed})
	b.until("the silent cluster is gone", "!document.querySelector('.matrix').innerText.includes('sh-1')")
	if got := b.focused(); got != "Instances of search-bj2-green in bj-2" {
		t.Errorf("the focus is on %q", got)
	}
	b.until("the 25th instance is there", "document.querySelectorAll('#unit tbody tr').length === 25")

	f.sum(instances, object{"clusters": []object{{"cluster": "bj-2", "error": "cluster bj-2 did not answer in 5s"}}})
	b.shows("#unit", "The cluster did not answer")
	b.shows("#unit", "cluster bj-2 did not answer in 5s")
	f.refuse(instances, http.StatusForbidden, metav1.StatusReasonForbidden, "jane may not get appsets/instances in namespace shop")
	b.shows("#unit", "jane may not get appsets/instances in namespace shop")
	b.shows("#unit", "kubectl auth can-i get appsets.workload.dmall.com/search --subresource=instances -n shop")
	b.expect("403")
	b.button("#unit", "Close")
	b.until("it is closed", "document.querySelector('#unit').hidden")
	if got := b.focused(); got != "Instances of search-bj2-blue in bj-2" {
		t.Errorf("the focus goes to %q", got)
	}
}

// TestCluster: the parts of AppSets in a cluster are shown with their age, and lead to the
// AppSets; a server that reads no clusters says so.
func TestCluster(t *testing.T) {
	f := newFake(t, page.Options{})
	fleetScene(f)
	b := open(t, desk, f.url("/#/clusters"))
	b.shows("th a", "sh-1")
	b.do(click(`th a[href="#/clusters/sh-1"]`))
	b.shows("h1", "sh-1")
	b.shows("main [role=status]", "its API server does not answer")
	b.shows("main [role=status]", "9m")
	if got, want := b.text("tbody"), "pay/ledger\t"; !strings.HasPrefix(got, want) || eval[int](b, "document.querySelectorAll('tbody tr').length") != 2 {
		t.Errorf("the table says %q", got)
	}
	b.do(click(`tbody a[href="#/appsets/shop/search"]`))
	b.shows(".matrix", "search-sh1-green")
	f.refuse("/api/v1/clusters/bj-2/advdeployments", http.StatusNotFound, metav1.StatusReasonNotFound, "the clusters of AppSets are not read here")
	b.visit(f.url("/#/clusters/bj-2"))
	b.shows("main", "the clusters of AppSets are not read here")
	b.expect("404")
}

// TestPasted: the kind and the namespace of a manifest are found however it is written.
func TestPasted(t *testing.T) {
	f := newFake(t, page.Options{})
	asked := make(chan string, 1)
	for _, path := range []string{"shop/tapps", "shop/appsets", "default/tapps"} {
		f.posts["/api/v1/namespaces/"+path+":preview"] = func(body []byte) (object, *metav1.Status) {
			asked <- path + " " + string(body)
			return object{"name": "web", "sentences": []string{"asked about " + path}}, nil
		}
	}
	b := open(t, desk, f.url("/#/preview"))
	b.shows("main", "Nothing is written")
	for _, c := range []struct{ manifest, path string }{
		{"apiVersion: v1\nkind: TApp\nmetadata:\n  name: web\n\n  namespace: shop\nspec: {}\n", "shop/tapps"},
		{"kind: AppSet\nspec: {podSpec: {template: {metadata: {namespace: other}}}}\nmetadata: {name: web, namespace: 'shop'}\n", "shop/appsets"},
		{`{"kind":"AppSet","spec":{"namespace":"other"},"metadata":{"name":"web","namespace":"shop"}}`, "shop/appsets"},
		{"{apiVersion: v1, kind: TApp, metadata: {name: web, namespace: shop}}", "shop/tapps"},
		{"kind: TApp\nmetadata:\n  name: web\nspec:\n  namespace: other\n", "default/tapps"},
	} {
		eval[bool](b, "(document.querySelector('#manifest').value = '', true)")
		b.paste("#manifest", c.manifest)
		b.button("form.preview", "Preview")
		if got, want := <-asked, c.path+" "+c.manifest; got != want {
			t.Errorf("asked %q, want %q", got, want)
		}
		b.shows(".plan", "asked about "+c.path)
	}
	eval[bool](b, "(document.querySelector('#manifest').value = '', true)")
	b.paste("#manifest", "kind: Secret\n")
	b.button("form.preview", "Preview")
	b.shows("main", "kind: is missing, or is neither TApp nor AppSet.")
}

// TestNames: whatever can be used has a name, and every input a label.
func TestNames(t *testing.T) {
	f := newFake(t, page.Options{Actions: true})
	fleetScene(f)
	tappScene(f, "default", "worker", 60, true)
	b := open(t, desk, f.url("/"))
	for view, shown := range views {
		b.visit(f.url(view))
		b.shows("main", shown)
		for _, bad := range eval[[]string](b, `[...document.querySelectorAll('a, button, input, textarea, [role=listbox], [role=img], [role=table], table, section, dialog')]
			.filter((e) => e.offsetParent !== null && !(e.innerText || e.getAttribute('aria-label') || e.getAttribute('aria-labelledby') || (e.id && document.querySelector('label[for="' + e.id + '"]'))))
			.map((e) => e.outerHTML.slice(0, 120))`) {
			t.Errorf("%s: no name: %s", view, bad)
		}
		if n := eval[int](b, "document.querySelectorAll('h1').length"); n != 1 {
			t.Errorf("%s has %d headings of the first level", view, n)
		}
	}
}

// views of the scenes, and a text that is there when a view is complete.
var views = map[string]string{
	"/#/": "things need you", "/#/clusters": "sh-1", "/#/clusters/sh-1": "21 of 24", "/#/preview": "Nothing is written",
	"/#/tapps/default/worker": "Revision 2", "/#/appsets/shop/search": "Revision 2", "/#/appsets/shop/search?unit=bj-2%2Fsearch-bj2-blue": "CrashLoopBackOff, back-off",
}

// TestContrast computes the contrast of every text with its ground, in light and dark:
// 4.5 at least, as WCAG 2.2 AA asks for, or 3 where the text is large.
func TestContrast(t *testing.T) {
	f := newFake(t, page.Options{Actions: true})
	fleetScene(f)
	tappScene(f, "default", "worker", 60, true)
	for name, l := range map[string]look{"light": desk, "dark": night} {
		t.Run(name, func(t *testing.T) {
			b := open(t, l, f.url("/"))
			for view, shown := range views {
				b.visit(f.url(view))
				b.shows("main", shown)
				type text struct {
					Count int
					Bad   []string
				}
				got := eval[text](b, contrast)
				if got.Count < 10 {
					t.Errorf("%s: only %d texts were looked at", view, got.Count)
				}
				for _, bad := range got.Bad {
					t.Errorf("%s: %s", view, bad)
				}
			}
		})
	}
}

// TestFits: no view is wider than a small screen, and nothing on it overlaps the edge.
func TestFits(t *testing.T) {
	f := newFake(t, page.Options{Actions: true})
	fleetScene(f)
	tappScene(f, "default", "worker", 60, true)
	for name, l := range map[string]look{"phone": phone, "desk": desk, "wall": wall} {
		t.Run(name, func(t *testing.T) {
			b := open(t, l, f.url("/"))
			for view, shown := range views {
				b.visit(f.url(view))
				b.shows("main", shown)
				if w := eval[int64](b, "document.documentElement.scrollWidth"); w > l.width {
					t.Errorf("%s is %d pixels wide on a screen of %d", view, w, l.width)
				}
			}
		})
	}
}

// TestNoJumps: updates move nothing, as the browser's own count of layout shifts has it.
func TestNoJumps(t *testing.T) {
	f := newFake(t, page.Options{})
	fleetScene(f)
	tappScene(f, "default", "worker", 600, true)
	b := open(t, desk, f.url("/#/tapps/default/worker"))
	b.shows(".legend", "failed")
	b.shows("main", "Revision 2")
	eval[bool](b, `window.shift = 0; new PerformanceObserver((l) => { for (const e of l.getEntries()) window.shift += e.value; }).observe({type: 'layout-shift'}); true`)
	for i := range 50 {
		o := instance(i, "w4")
		o["state"], o["available"] = "PodFailed", false
		f.put("/api/v1/namespaces/default/tapps/worker/instances", entry{strconv.Itoa(i), o})
	}
	b.until("all are there", "window.tappGrid.list.slice(0, 50).every((i) => i.state === 'PodFailed')")
	b.shows(".legend", "failed 59")
	f.drop("/api/v1/namespaces/default/tapps/worker/instances", "599", "598")
	b.until("two are gone", "window.tappGrid.list.length === 598")
	if shift := eval[float64](b, "window.shift"); shift > 0.01 {
		t.Errorf("the layout shifted by %f", shift)
	}
}

const contrast = `(() => {
	const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
	const rgb = (colour) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); const d = canvas.getImageData(0, 0, 1, 1).data; return [d[0], d[1], d[2], d[3] / 255]; };
	const light = (c) => { const [r, g, b] = c.map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const over = (a, b) => a.slice(0, 3).map((v, i) => v * a[3] + b[i] * (1 - a[3]));
	const ground = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c[3] === 1) return c; } return [255, 255, 255, 1]; };
	const out = {Count: 0, Bad: []};
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let n; (n = walk.nextNode());) {
		const e = n.parentElement;
		if (!n.data.trim() || e.closest('[aria-hidden=true], .hide, .said, .cell, .label, .skip, option, noscript') || !e.checkVisibility()) continue;
		const s = getComputedStyle(e), back = ground(e), front = over(rgb(s.color), back);
		const [a, b] = [light(front), light(back)].sort((x, y) => y - x), ratio = (a + 0.05) / (b + 0.05);
		const large = parseFloat(s.fontSize) >= 24 || (parseFloat(s.fontSize) >= 18.66 && Number(s.fontWeight) >= 700);
		out.Count++;
		if (ratio < (large ? 3 : 4.5)) out.Bad.push(ratio.toFixed(2) + ' ' + s.color + ' on ' + back + ': ' + n.data.trim().slice(0, 40));
	}
	return out;
})()`

// TestAction: an action shows its command and the plan, and runs only then, once.
func TestAction(t *testing.T) {
	f := newFake(t, page.Options{Actions: true})
	f.token = "secret"
	tappScene(f, "default", "worker", 60, true)
	asked := make(chan string, 10)
	text := "tapp.apps.tkestack.io/worker would change\n  spec.statuses[\"31\"]: Killed\n\nIn this order:\n  1. kill 31: spec.statuses says Killed\n"
	f.posts["/actions/plan"] = func(body []byte) (object, *metav1.Status) {
		asked <- "plan " + string(body)
		return object{"command": "kubectl tapp kill -n default worker 31", "text": text}, nil
	}
	f.posts["/actions/run"] = func(body []byte) (object, *metav1.Status) {
		asked <- "run " + string(body)
		return object{"command": "kubectl tapp kill -n default worker 31", "text": "tapp.apps.tkestack.io/worker instance 31 killed\n"}, nil
	}
	b := open(t, desk, f.url("/#token=secret"))
	b.shows("h1", "Nothing is here yet")
	b.visit(f.url("/#/tapps/default/worker"))
	b.shows(".legend", "failed")
	b.point("31")
	b.press("31")
	b.shows(".inspector", "Instance 31")
	b.do(chromedp.Evaluate[chromedp.Void](`[...document.querySelectorAll('.inspector button')].find((e) => e.innerText === 'Kill…').click()`))
	b.shows("dialog", "spec.statuses says Killed")
	b.shoot(pictures + "/action-light.png")
	b.key("Escape")
	b.until("Escape closes the dialog", "!document.querySelector('dialog')")
	want := `{"kind":"tapps","namespace":"default","name":"worker","verb":"kill","ids":"31"}`
	if got := <-asked; got != "plan "+want {
		t.Errorf("asked %s, want a plan of %s", got, want)
	}
	b.do(chromedp.Evaluate[chromedp.Void](`[...document.querySelectorAll('.inspector button')].find((e) => e.innerText === 'Kill…').click()`))
	b.shows("dialog", "spec.statuses says Killed")
	b.do(click("dialog button.primary"))
	b.shows("dialog", "instance 31 killed")
	if got := []string{<-asked, <-asked}; got[0] != "plan "+want || got[1] != "run "+want {
		t.Errorf("asked %q, want a plan and a run of %s", got, want)
	}
}
