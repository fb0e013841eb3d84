package process

import (
	"encoding/json"
	"maps"
	"net/http"
	"sync"
)

// Checks are named checks of a process, which come and go while it runs. /live and /ready
// ask them, and list them with ?full=true. The zero value has none.
type Checks struct {
	mu                  sync.RWMutex
	live, ready, listed map[string]Check
}

// Check returns at once; an error is what is wrong.
type Check = func() error

// AddLivenessCheck adds or replaces a check of whether the process need not be restarted.
func (c *Checks) AddLivenessCheck(name string, check Check) { c.add(&c.live, name, check) }

// AddReadinessCheck adds or replaces a check of whether the process can be used.
func (c *Checks) AddReadinessCheck(name string, check Check) { c.add(&c.ready, name, check) }

// AddListedCheck adds or replaces a check that /ready lists and does not count: of
// something that the process works with, and without which it is of use.
func (c *Checks) AddListedCheck(name string, check Check) { c.add(&c.listed, name, check) }

// RemoveLivenessCheck is no error if there is none of that name.
func (c *Checks) RemoveLivenessCheck(name string) { c.remove(&c.live, name) }

// RemoveReadinessCheck is no error if there is none of that name.
func (c *Checks) RemoveReadinessCheck(name string) { c.remove(&c.ready, name) }

// RemoveListedCheck is no error if there is none of that name.
func (c *Checks) RemoveListedCheck(name string) { c.remove(&c.listed, name) }

func (c *Checks) add(to *map[string]Check, name string, check Check) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if *to == nil {
		*to = map[string]Check{}
	}
	(*to)[name] = check
}

func (c *Checks) remove(from *map[string]Check, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(*from, name)
}

// of a set, as they are now. Whoever asks them may add others.
func (c *Checks) of(set *map[string]Check) map[string]Check {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return maps.Clone(*set)
}

// passed is what a check without an error is listed as.
const passed = "OK"

// checksHandler answers 200 if all checks of a set pass, otherwise 503. What is listed besides
// does not count.
func checksHandler(counted func(*http.Request) map[string]Check, listed func() map[string]Check) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		results, code := map[string]string{}, http.StatusOK
		for name, check := range listed() {
			results[name] = result(check)
		}
		for name, check := range counted(r) {
			results[name] = result(check)
			if results[name] != passed {
				code = http.StatusServiceUnavailable
			}
		}
		if full := r.URL.Query().Get("full"); full != "true" && full != "1" {
			results = map[string]string{}
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(code)
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "    ")
		_ = encoder.Encode(results) // whoever asked has gone if this fails
	}
}

func result(check Check) string {
	if err := check(); err != nil {
		return err.Error()
	}
	return passed
}

// processCheck is the name under which /live and /ready list what /healthz and /readyz say.
const processCheck = "process"

// liveness are the checks of /live: what /healthz says, and the named ones.
func (h Health) liveness(r *http.Request) map[string]Check {
	out := map[string]Check{}
	if h.Checks != nil {
		maps.Copy(out, h.Checks.of(&h.Checks.live))
	}
	if h.Healthy != nil {
		out[processCheck] = func() error { return h.Healthy(r) }
	}
	return out
}

// readiness are the checks of /ready: what /readyz says, and the named ones.
func (h Health) readiness(*http.Request) map[string]Check {
	out := map[string]Check{}
	if h.Checks != nil {
		maps.Copy(out, h.Checks.of(&h.Checks.ready))
	}
	if h.Ready != nil {
		out[processCheck] = h.Ready
	}
	return out
}

func noChecks() map[string]Check { return nil }

func (h Health) listed() map[string]Check {
	if h.Checks == nil {
		return nil
	}
	return h.Checks.of(&h.Checks.listed)
}
