package tapp

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
)

// impatient is a clock on which everything is due at once.
type impatient struct{ clock.RealClock }

func (*impatient) After(time.Duration) <-chan time.Time {
	now := make(chan time.Time, 1)
	now <- time.Now()
	return now
}

// An API server that does not answer is asked again.
func TestDiscover(t *testing.T) {
	for name, c := range map[string]struct {
		resources []metav1.APIResource
		want      bool
	}{
		"with":    {[]metav1.APIResource{{Name: "pods"}, {Name: "pods/resize"}}, true},
		"without": {[]metav1.APIResource{{Name: "pods"}, {Name: "pods/status"}}, false},
	} {
		asked := 0
		s := &stub{answer: func(_, path, _ string) (int, any) {
			if path != "/api/v1" {
				t.Errorf("asked for %s", path)
			}
			if asked++; asked == 1 {
				return apiError(503, metav1.StatusReasonServiceUnavailable, "starting")
			}
			return 200, metav1.APIResourceList{APIResources: c.resources}
		}}
		controller := s.newController(t)
		controller.Clock = &impatient{}
		if !controller.discover(t.Context()) || controller.Policy.Resize != c.want || asked != 2 {
			t.Errorf("%s: resize %t after %d requests", name, controller.Policy.Resize, asked)
		}
	}
}
