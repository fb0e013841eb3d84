package rollout

import (
	"fmt"
	"slices"
	"strings"
)

// mostNamed clusters in a sentence.
const mostNamed = 5

// exhausted says why a unit waits for the budget.
func (s *spending) exhausted() string {
	s.short = fmt.Sprintf("the budget of %d instances is used up, by %d", s.budget, s.charges) + s.silence
	return s.short
}

// tellSilence says of the whole rollout why a unit waits for the budget where silence uses that
// up, too: it does not end by itself.
func (s *spending) tellSilence() {
	if s.short != "" && s.silence != "" && s.why == "" {
		s.why = s.short
	}
}

// silenceOf tells what of the budget is charged since nothing is known of it; empty: nothing is.
func (s *spending) silenceOf() string {
	instances, clusters := int32(0), []string(nil)
	for i := range s.accounts {
		if a := &s.accounts[i]; a.Whole && a.Charge() > 0 {
			instances += a.Charge()
			clusters = append(clusters, s.in.Units[i].Cluster)
		}
	}
	if instances == 0 {
		return ""
	}
	slices.Sort(clusters)
	clusters = slices.Compact(clusters)
	if n := len(clusters) - mostNamed; n > 0 {
		clusters = append(clusters[:mostNamed], fmt.Sprintf("... %d more", n))
	}
	return fmt.Sprintf(": %d are in clusters of which nothing current is known, and count as unavailable unless updateStrategy.unreachableCounts is AsLastSeen: %s", instances, strings.Join(clusters, ", "))
}
