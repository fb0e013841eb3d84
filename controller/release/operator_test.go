package release

import (
	"testing"
	"time"

	plan "tkestack.io/tapp/plan/release"
)

// What a plan waits for is read anew, and nothing else is; a record is read with all others.
func TestExpire(t *testing.T) {
	job, other := plan.Ref{APIVersion: "batch/v1", Kind: "Job", Namespace: "shop", Name: "job"}, plan.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "job"}
	s := &State{listed: time.Unix(1800000000, 0)}
	s.of("web").objects[job], s.of("web").objects[other] = sight{}, sight{}
	s.Expire("web", []plan.Ref{job})
	if seen := s.of("web").objects; len(seen) != 1 || s.listed.IsZero() {
		t.Errorf("known: %v, listed at %s", seen, s.listed)
	} else if _, known := seen[other]; !known {
		t.Errorf("known: %v", seen)
	}
	s.Expire("web", []plan.Ref{plan.RecordRef("web")})
	if !s.listed.IsZero() {
		t.Error("the records are not read anew")
	}
}
