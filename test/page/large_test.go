//go:build cluster

package page

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"tkestack.io/tapp/api/page"
)

const (
	many      = 10000
	perSecond = 200
	seconds   = 5
)

// TestManyInstances: all changes of 10,000 instances arrive, of which 200 change each
// second. How fast the browser paints is logged, and kept in docs/dashboard.md: the
// machine may be busy.
func TestManyInstances(t *testing.T) {
	f := newFake(t, page.Options{})
	tappScene(f, "default", "worker", many, false)
	b := open(t, desk, f.url("/#/tapps/default/worker"))
	b.until("all are there", fmt.Sprintf("window.tappGrid?.list.length === %d && window.tappGrid.drawn > 0 && window.tappGrid.frames.length", many))
	paint := eval[float64](b, "performance.getEntriesByName('first-contentful-paint')[0].startTime")
	squares := eval[float64](b, "window.tappGrid.drawn")
	start := `window.gaps = []; window.measure = true; (() => { let last = performance.now(); (function frame(now) { if (!window.measure) return; window.gaps.push(now - last); last = now; requestAnimationFrame(frame); })(last); })(); window.tappGrid.frames.length = 0; true`
	eval[bool](b, start)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	n := 0
	for range 10 * seconds {
		<-tick.C
		var changed []entry
		for range perSecond / 10 {
			i := (n * 7919) % many
			o := instance(i, "w3")
			o["state"], o["available"] = "Updating", false
			changed = append(changed, entry{strconv.Itoa(i), o})
			n++
		}
		f.put("/api/v1/namespaces/default/tapps/worker/instances", changed...)
	}
	b.until("all changes are there", fmt.Sprintf("window.tappGrid.list.filter((i) => i.state === 'Updating').length === %d", n))
	gaps := eval[[]float64](b, "(window.measure = false, window.gaps.slice(1))")
	frames := eval[[]float64](b, "window.tappGrid.frames")
	memory := eval[float64](b, "performance.memory.usedJSHeapSize / 1e6")
	t.Logf("%d instances: first paint after %.0f ms, all squares after %.0f ms; %d changes a second: frame to frame p50 %.1f ms, p99 %.1f ms, worst %.1f ms; drawing p50 %.2f ms, worst %.2f ms; heap %.0f MB",
		many, paint, squares, perSecond, at(gaps, .5), at(gaps, .99), at(gaps, 1), at(frames, .5), at(frames, 1), memory)
	b.shows(".legend", fmt.Sprintf("updating %d", n))
	b.shoot(pictures + "/many-light.png")

	// Only what can be seen is drawn, and the last one can be reached by the keyboard.
	if h := eval[int](b, "window.tappGrid.canvas.clientHeight"); h > 900 {
		t.Errorf("the canvas is %d pixels high", h)
	}
	b.focus(".grid")
	b.key("End")
	b.shows(".inspector", fmt.Sprintf("Instance %d", many-1))
}

// at returns a quantile.
func at(all []float64, q float64) float64 {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[int(q*float64(len(sorted)-1))]
}
