//go:build cluster

package nodes

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/crd/client"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/cluster"
)

// told is all that the status of the TApps in a namespace ever said, and what their
// spec.replicas ever was: a moment later it may say something else.
type told struct {
	mu       sync.Mutex
	messages map[string][]string // conditions by TApp, as "Stalled=True NodeLost: message"
	replicas map[string][]int32
}

func listen(r *cluster.Rig) *told {
	r.Helper()
	out := &told{messages: map[string][]string{}, replicas: map[string][]int32{}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			out.follow(ctx, r.TApps)
		}
	}()
	r.Cleanup(func() { cancel(); <-done })
	return out
}

// follow the TApps until the watch ends.
func (o *told) follow(ctx context.Context, tapps client.TAppInterface) {
	events, err := tapps.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		select { // the API server is away
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
		return
	}
	defer events.Stop()
	for e := range events.ResultChan() {
		if t, ok := e.Object.(*tappv1.TApp); ok {
			o.hear(t)
		}
	}
}

func (o *told) hear(t *tappv1.TApp) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range t.Status.Conditions {
		now := fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message)
		if said := o.messages[t.Name]; len(said) == 0 || said[len(said)-1] != now {
			o.messages[t.Name] = append(said, now)
		}
	}
	if had := o.replicas[t.Name]; t.Spec.Replicas != nil && (len(had) == 0 || had[len(had)-1] != *t.Spec.Replicas) {
		o.replicas[t.Name] = append(had, *t.Spec.Replicas)
	}
}

// scales is every spec.replicas that the TApp had, one after the other.
func (o *told) scales(tapp string) []int32 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]int32(nil), o.replicas[tapp]...)
}

// said returns nil when the status of the TApp has ever had these words.
func (o *told) said(tapp, words string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range o.messages[tapp] {
		if strings.Contains(m, words) {
			return nil
		}
	}
	return fmt.Errorf("the status of TApp %s never said %q, but %q", tapp, words, o.messages[tapp])
}
