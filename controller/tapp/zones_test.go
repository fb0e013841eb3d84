package tapp

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// TestZones: what is asked at start and every ten minutes, and what an answer changes.
func TestZones(t *testing.T) {
	const yes, no, forbidden, down = "yes", "no", "forbidden", "down"
	for name, c := range map[string]struct {
		answers []string
		want    []bool
		after   []time.Duration
	}{
		"they have":                    {[]string{yes}, []bool{true}, []time.Duration{zonesEvery}},
		"they have not":                {[]string{no}, []bool{false}, []time.Duration{zonesEvery}},
		"one without comes":            {[]string{yes, no, yes}, []bool{true, false, true}, []time.Duration{zonesEvery, zonesEvery, zonesEvery}},
		"they may not be read":         {[]string{forbidden}, []bool{false}, []time.Duration{zonesEvery}},
		"they may no more be read":     {[]string{yes, forbidden}, []bool{true, false}, []time.Duration{zonesEvery, zonesEvery}},
		"no answer changes nothing":    {[]string{yes, down, yes}, []bool{true, true, true}, []time.Duration{zonesEvery, zonesAgain, zonesEvery}},
		"no answer in the first place": {[]string{down, yes}, []bool{false, true}, []time.Duration{zonesAgain, zonesEvery}},
	} {
		t.Run(name, func(t *testing.T) {
			answer, first := "", true // of the two questions
			s := &stub{answer: func(_, path, _ string) (int, any) {
				if path != "/api/v1/nodes" {
					t.Errorf("asked for %s", path)
				}
				switch answer {
				case forbidden:
					return apiError(403, metav1.StatusReasonForbidden, "no")
				case down:
					return apiError(503, metav1.StatusReasonServiceUnavailable, "starting")
				case no:
					return 200, metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{{}}}
				}
				if first { // no node is without a zone, and then: some node has one
					first = false
					return 200, metav1.PartialObjectMetadataList{}
				}
				return 200, metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{{}}}
			}}
			controller := s.newController(t)
			controller.Policy.Spread.Default = tappv1.SystemTopologySpread
			for i := range c.answers {
				answer, first = c.answers[i], true
				after := controller.readZones(t.Context())
				if p := controller.policy().Spread; after != c.after[i] || p.Zones != c.want[i] || p.Default != tappv1.SystemTopologySpread {
					t.Errorf("after answer %d: %+v, again in %s", i, p, after)
				}
			}
		})
	}
}

// TestFollowZones: it is asked again when the time has come, and not before.
func TestFollowZones(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var asked []time.Duration
		s := &stub{answer: func(string, string, string) (int, any) {
			asked = append(asked, time.Since(began))
			return 200, metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{{}}}
		}}
		ctx, cancel := context.WithTimeout(t.Context(), zonesAgain+2*zonesEvery+1)
		defer cancel()
		s.newController(t).followZones(ctx, zonesAgain)
		if want := []time.Duration{zonesAgain, zonesAgain + zonesEvery, zonesAgain + 2*zonesEvery}; !slices.Equal(asked, want) {
			t.Errorf("asked after %v, want %v", asked, want)
		}
	})
}
