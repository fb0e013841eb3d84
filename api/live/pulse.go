package live

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pulse says whether the API server answers. A watch cannot say so: it is silent while nothing
// changes, and just as silent while the server hangs, until HTTP/2 gives the connection up after
// most of a minute.
type pulse struct {
	// ask the API server for anything.
	ask func(context.Context) error
	// every is how often, and how long an answer may take.
	every time.Duration

	mu sync.Mutex
	// failed is the error of the last request, and answered when the last request began that
	// was answered.
	failed   error
	answered time.Time
}

// run asks until ctx ends, while anything is watched. It tells when the server ceases to answer,
// and when it answers again.
func (p *pulse) run(ctx context.Context, watched func() bool, changed func()) {
	every := time.NewTicker(p.every)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		if watched() && p.beat(ctx) {
			changed()
		}
	}
}

// beat asks once. It returns whether the server began or ceased to answer.
func (p *pulse) beat(ctx context.Context) bool {
	began := time.Now()
	asked, cancel := context.WithTimeout(ctx, p.every)
	defer cancel()
	err := p.ask(asked)
	if ctx.Err() != nil {
		return false
	}
	if apierrors.ReasonForError(err) != metav1.StatusReasonUnknown && !apierrors.IsServiceUnavailable(err) {
		err = nil // a refusal is an answer, too
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	changed := (p.failed == nil) != (err == nil)
	if p.failed = err; err == nil {
		p.answered = began
	}
	return changed
}

// trouble is why the API server does not answer, and when it did last; nil: it does.
func (p *pulse) trouble() (answered time.Time, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answered, p.failed
}
