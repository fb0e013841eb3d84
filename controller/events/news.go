package events

import "slices"

// News of one object: a plan tells what the stored status does not say yet, again and again until
// a cache shows the status that was written.
type News[E comparable] struct{ told []E }

// Of what a plan tells is what the last one did not.
func (n *News[E]) Of(all []E) (fresh []E) {
	for _, e := range all {
		if !slices.Contains(n.told, e) {
			fresh = append(fresh, e)
		}
	}
	n.told = all
	return fresh
}
