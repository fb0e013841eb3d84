//go:build cluster

package install

import (
	"context"
	"fmt"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/test/gen"
)

// load is admission requests that never stop: TApps are created without being
// stored, one after the other, by several clients.
type load struct {
	stop   context.CancelFunc
	group  sync.WaitGroup
	mu     sync.Mutex
	done   int
	failed []string
}

// startLoad in the namespace of a test.
func startLoad(r *cluster.Rig) *load {
	r.Helper()
	const clients = 3
	ctx, stop := context.WithCancel(r.Context())
	l := &load{stop: stop}
	for i := range clients {
		l.group.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				tapp := gen.TApp(fmt.Sprintf("load-%d-%d", i, n))
				_, err := r.TApps.Create(ctx, tapp, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				l.note(ctx, err)
			}
		})
	}
	return l
}

func (l *load) note(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return // broken off by the end
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done++
	if err != nil {
		l.failed = append(l.failed, err.Error())
	}
}

// end stops the load. All requests must have been admitted, and there must have been
// enough for that to mean something.
func (l *load) end(t *testing.T, atLeast int) {
	t.Helper()
	l.stop()
	l.group.Wait()
	if len(l.failed) > 0 {
		t.Errorf("%d of %d requests failed, the first: %s", len(l.failed), l.done, l.failed[0])
	}
	if l.done < atLeast {
		t.Errorf("only %d requests were made, want %d", l.done, atLeast)
	}
	t.Logf("%d requests, none of which may fail", l.done)
}
