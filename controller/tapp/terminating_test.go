package tapp

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestNamespaceTerminates: where the namespace is being deleted, nothing is created in vain over
// and over, and an API server that was wrong is asked again.
func TestNamespaceTerminates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tapp := wantsPods(someTApp("a"))
		tapp.Spec.Replicas = new(int32(3))
		var terminating atomic.Bool
		terminating.Store(true)
		s := &stub{answer: func(method, path, _ string) (int, any) {
			switch {
			case method == http.MethodPost && terminating.Load():
				return apiError(403, metav1.StatusReasonForbidden, "it is being terminated", metav1.StatusCause{Type: corev1.NamespaceTerminatingCause})
			case strings.HasPrefix(path, pods):
				return 201, somePod("a-0", "u0", "50")
			case path == revisions:
				return 201, someRevision("a-1")
			}
			return 200, tapp
		}}
		c := s.newController(t)
		if err := c.tapps.GetStore().Add(tapp); err != nil {
			t.Fatal(err)
		}
		asked := 0
		work := func() (after time.Duration, got string) {
			t.Helper()
			result, err := c.sync(t.Context(), keyOf("a"))
			if err != nil {
				t.Fatalf("sync: %v", err)
			}
			var made []string
			for _, a := range s.asked()[asked:] {
				asked++
				if one := strings.Join(strings.Fields(a)[:2], " "); !strings.HasSuffix(one, "/status") && !strings.HasSuffix(one, "/resourcequotas") {
					made = append(made, one)
				}
			}
			return result.After, strings.Join(made, ", ")
		}

		const once = "POST " + revisions + ", POST " + pods
		if after, got := work(); after != time.Millisecond || got != once {
			t.Errorf("at first: asked %q, and again after %s", got, after)
		}
		for began := time.Now(); time.Since(began) < terminatingAgain-time.Second; time.Sleep(time.Second) { // of the bubble
			if after, got := work(); after <= 0 || after > terminatingAgain || got != "" {
				t.Fatalf("after %s: asked %q, and again after %s", time.Since(began), got, after)
			}
		}

		time.Sleep(time.Second)
		if _, got := work(); got != once {
			t.Errorf("later: asked %q", got)
		}
		terminating.Store(false)
		time.Sleep(terminatingAgain)
		if _, got := work(); !strings.HasPrefix(got, once+", ") {
			t.Errorf("in the end: asked %q", got)
		}
	})
}
