package main

// step is something that happens to one instance.
type step struct {
	what string
	to   instance
	// calm: it also happens when nothing goes wrong and nobody edits anything, sooner
	// or later.
	calm bool
	// starts: a container starts.
	starts bool
	// edit: it is a user's.
	edit bool
}

// happenings are what kubelets, nodes and other people may do to a pod.
func (w *world) happenings(i instance) []step {
	p := i.pod
	var out []step
	add := func(what string, calm bool, change func(*pod)) {
		next := i
		change(&next.pod)
		if w.canonical(&next); next != i {
			out = append(out, step{what: what, to: next, calm: calm, starts: next.pod.place == running && (p.place == pending || isStart(what))})
		}
	}
	remove := func(p *pod) { *p = pod{forUpdate: p.forUpdate} }
	if p.forUpdate {
		add("another process leads, which does not know of the update", false, func(p *pod) { p.forUpdate = false })
	}
	if p.orphan {
		return nil // until the TApp adopts it
	}
	switch p.place {
	case none:
		if w.Owners {
			add("somebody takes its name", false, func(p *pod) { *p = pod{place: foreign} })
		}
	case foreign:
		add("the foreign pod goes", true, remove)
	case pending:
		w.start(p, add)
	case running:
		w.run(p, add)
		add("its pod is deleted by somebody", false, func(p *pod) { *p = pod{place: dying} })
	case ended:
		add("time passes", true, func(p *pod) { p.aged = true })
		add("its pod is deleted by somebody", false, remove)
	case dying:
		if p.lost {
			add("its node comes back", !w.Force, func(p *pod) { p.lost = false })
			break
		}
		add("its pod ends", true, remove)
		if w.Lost {
			add("its node is lost", false, func(p *pod) { p.lost = true })
		}
	}
	return out
}

// What a container's start is called when it is not its pod's first.
const (
	restartsForPatch = "its container restarts"
	restartsByItself = "its container crashes and starts again"
)

func isStart(what string) bool { return what == restartsForPatch || what == restartsByItself }

type adder func(what string, calm bool, change func(*pod))

// start: only of the template that the instance has now it is known that its pods
// get a node, start and become ready. Whatever was there before may never do.
func (w *world) start(p pod, add adder) {
	good := p.version == 0
	add("its container starts", good, func(p *pod) {
		p.place, p.runs, p.seen = running, p.version, true
		p.record.followed()
	})
	if w.Ends {
		add("its kubelet rejects it", false, func(p *pod) { p.place, p.end = ended, rejected })
	}
	add("its pod is deleted by somebody", false, func(p *pod) { *p = pod{} })
}

const maxStarts = 3

// followed by another container.
func (r *record) followed() {
	r.starts, r.fresh = min(r.starts+1, maxStarts), r.has
	if r.container == lastContainer {
		r.container = olderContainer
	}
}

func (w *world) run(p pod, add adder) {
	good := p.version == 0
	restart := func(p *pod) {
		p.runs, p.healthy, p.seen = p.version, w.Coarse, true
		p.record.followed()
		if !w.Coarse {
			p.ready, p.aged = false, false
		}
	}
	// It may report a generation and never act on it, but look at the next one.
	if !p.seen && !w.Coarse {
		add("its kubelet sees the patch", true, func(p *pod) { p.seen = true })
	}
	if p.runs != p.version && (p.seen || w.Coarse) {
		add(restartsForPatch, good || p.record.fresh, restart)
	}
	// Where the planner goes by the time, a kubelet that reported a patch is taken to
	// act on it before that is over.
	if p.record.fresh && p.seen && p.runs == p.version {
		add("its kubelet would have acted by now", true, func(p *pod) { p.record.fresh = false })
	}
	if p.runs == p.version && !p.healthy {
		add("its container becomes ready", good, func(p *pod) { p.healthy = true })
	}
	if p.ready != p.wouldBeReady() {
		add("its kubelet reports Ready", true, w.report)
	}
	if p.ready && !p.aged {
		add("time passes", true, func(p *pod) { p.aged = true })
	}
	if p.ready && p.aged && w.MinReady > 0 {
		add("its kubelet restarts, and renews the time of Ready", false, func(p *pod) { p.aged = false })
	}
	add("its container fails", false, func(p *pod) { p.healthy = false })
	if w.Crashes && p.runs == p.version {
		add(restartsByItself, false, restart)
	}
	add("its pod fails", false, func(p *pod) { p.place, p.end = ended, failed })
	if w.Ends {
		add("its pod succeeds", false, func(p *pod) { p.place, p.end = ended, succeeded })
	}
	if w.Owners && p.gate == open && p.ready {
		add("its pod loses its owner", false, func(p *pod) { p.orphan = true })
	}
}

// wouldBeReady is what the kubelet makes of the containers and the gate.
func (p pod) wouldBeReady() bool { return p.healthy && (p.gate == ungated || p.gate == open) }

func (w *world) report(p *pod) {
	p.ready = p.wouldBeReady()
	p.aged = p.ready && w.MinReady == 0
}

// edits are what users may do to one instance. An edit of a template is one of each
// of its instances, one after the other: what lies between is a state as well.
func (w *world) edits(i instance) []step {
	var out []step
	add := func(what string, next instance) {
		if w.canonical(&next); next != i {
			out = append(out, step{what: what, to: next, edit: true})
		}
	}
	for _, to := range []role{rolling, forced, killed} {
		if i.role == beyond || to == i.role || !w.Killed && to == killed || w.Roles != "" && to != killed || !w.Forces && to == forced {
			continue
		}
		if w.Coarse && i.role == killed && i.pod.place == running {
			continue // it is started again only when its pod is going
		}
		next := i
		next.role = to
		add("the user makes it "+to.String(), next)
	}
	if i.pod.place == none || i.pod.place == foreign || i.pod.place == dying {
		return out
	}
	for v := uint8(1); v < w.shape(); v++ {
		// The wanted image and another one change their names: the pod's own may become
		// the wanted one.
		next := i
		next.pod.rename(func(x uint8) uint8 {
			switch x {
			case 0:
				return v
			case v:
				return 0
			}
			return x
		})
		add("the user changes its image", next)
	}
	next := i
	if next.pod.version = w.shape(); i.pod.version == w.shape() {
		next.pod.version = 0 // as it was before
	}
	next.pod.runs, next.pod.record = next.pod.version, record{}
	add("the user changes more of its template", next)
	return out
}

func (p *pod) rename(to func(uint8) uint8) {
	p.version, p.runs = to(p.version), to(p.runs)
	r := &p.record
	if r.image > 0 {
		r.image = to(r.image-1) + 1
	}
	if r.imageID > 0 {
		r.imageID = to(r.imageID-1) + 1
	}
	via := uint8(0)
	for v := range uint8(8) {
		if r.via&(1<<v) != 0 {
			via |= 1 << to(v)
		}
	}
	r.via = via
}
