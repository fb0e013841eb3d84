package sim

import (
	"net/http"

	"tkestack.io/tapp/test/sim/apiserver"
	"tkestack.io/tapp/test/sim/process"
)

// replica is a process of the controller, behind a transport of ours.
type replica struct {
	*process.Process
	world *world
	// told are the versions that its caches show, by resource, and beliefs what its
	// last requests for a TApp were made on.
	told    map[string]int64
	beliefs map[string]*belief

	stopping bool // it was told to end in order
}

// start a process of the controller. Two that run at once both believe that they
// lead.
func (w *world) start() error {
	w.started++
	r := &replica{Process: process.New(w.started), world: w, told: map[string]int64{}, beliefs: map[string]*belief{}}
	c := process.Config(w.clock, "http://api", r)
	c.DeletePodAfterAppFinish = !w.has(classFinish)
	if w.has(classNodes) {
		c.NodesPerSync = 1
	}
	if err := r.Start(c); err != nil {
		return err
	}
	w.replicas = append(w.replicas, r)
	return nil
}

// isFollowed says whether a process that began later leads by now.
func (r *replica) isFollowed() bool {
	all := r.world.replicas
	return len(all) > 0 && all[len(all)-1] != r
}

// RoundTrip implements http.RoundTripper: the request waits until the simulation
// carries it out.
func (r *replica) RoundTrip(h *http.Request) (*http.Response, error) {
	if r.IsDead() {
		return nil, process.ErrDead
	}
	asked, err := apiserver.Read(h)
	if err != nil {
		return nil, err
	}
	q := &request{Request: asked, replica: r, issued: r.world.now(), answer: make(chan *apiserver.Answer, 1)}
	r.world.desk.Submit(q)
	return process.Await(h, q.Order(), q.answer, func() { q.abandoned.Store(true) })
}
