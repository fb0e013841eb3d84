package tapp

import (
	"context"
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"tkestack.io/tapp/controller/loop"
	"tkestack.io/tapp/controller/write"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/inplace"
	plan "tkestack.io/tapp/plan/tapp"
	"tkestack.io/tapp/plan/trial"
)

// trials are what the API server answered to dry runs for one TApp, and to writes that
// answer the same questions.
type trials struct {
	mu       sync.Mutex // questions are asked beside each other, and beside syncs
	answers  trial.Answers
	underWay map[trial.Question]struct{}
}

// known answers.
func (t *trials) known() trial.Answers {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.answers)
}

// begin says whether to ask a question now.
func (t *trials) begin(q trial.Question) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, asked := t.underWay[q]; asked || len(t.underWay) >= trial.MaxAsked {
		return false
	}
	if t.underWay == nil {
		t.underWay = map[trial.Question]struct{}{}
	}
	t.underWay[q] = struct{}{}
	return true
}

// end of a question that has its answer.
func (t *trials) end(q trial.Question, said trial.Said) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.underWay, q)
	t.keep(q, t.answers[q].Tried(said), said.At)
}

// wrote notes how a write ended. It says whether the update of a pod was refused, whose gate
// is to open again.
func (t *trials) wrote(a *plan.Action, err error, now time.Time) (refused bool) {
	if a.Question == (trial.Question{}) {
		return false
	}
	said := saidOf(a, err, now)
	if said.Closed, _ = inplace.GateClosedSince(a.Pod); said.Verdict == trial.NoAnswer || said.Verdict == trial.Stale {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keep(a.Question, t.answers[a.Question].Wrote(a.Question.Kind, said), now)
	return !said.Closed.IsZero() && said.Verdict != trial.Admitted
}

// keep an answer. When there are too many, those go of which nothing holds any more.
func (t *trials) keep(q trial.Question, a trial.Answer, now time.Time) {
	if t.answers == nil {
		t.answers = trial.Answers{}
	}
	if len(t.answers) >= trial.MaxKept {
		maps.DeleteFunc(t.answers, func(_ trial.Question, a trial.Answer) bool { return a.IsOver(now) })
	}
	if _, known := t.answers[q]; known || len(t.answers) < trial.MaxKept {
		t.answers[q] = a
	}
}

func saidOf(a *plan.Action, err error, now time.Time) trial.Said {
	said := trial.Said{Verdict: trial.Judge(a.Question.Kind, err), At: now, Pod: a.Pod.Name}
	if err != nil {
		said.Words = words(err, a.Pod.Name)
	}
	return said
}

// ask the API server, beside the syncs: an answer may take as long as a webhook does. The
// TApp is synced again when it has come.
func (c *Controller) ask(ctx context.Context, t *tappv1.TApp, o *object, tries []plan.Action) {
	for i := range tries {
		a := &tries[i]
		if !o.trials.begin(a.Question) {
			continue
		}
		c.asks.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, trial.Timeout)
			defer cancel()
			said := trial.Said{Verdict: trial.NoAnswer, At: c.Clock.Now()}
			_ = c.loop.Contain(func() error { // a panic is counted there
				err := c.try(ctx, t.Namespace, a)
				if said = saidOf(a, err, c.Clock.Now()); said.Verdict == trial.Refused {
					c.recorder.failed(t, triedOperation(a.Question.Kind), a, err)
				}
				return nil
			})
			klog.FromContext(ctx).V(3).Info("Asked", "instance", a.ID, "kind", a.Question.Kind, "verdict", said.Verdict, "words", said.Words)
			c.Metrics.actions.WithLabelValues(string(a.Op), a.Reason, resultOf(said.Verdict)).Inc()
			o.trials.end(a.Question, said)
			c.loop.Enqueue(loop.Key{Namespace: t.Namespace, Name: t.Name})
		})
	}
}

// resultOf a question, as the metric of actions tells it.
func resultOf(v trial.Verdict) string {
	switch v {
	case trial.Admitted, trial.NoRoom:
		return write.Done
	case trial.Stale:
		return write.Stale
	}
	return write.Failed
}

// try makes the request of an action Try.
func (c *Controller) try(ctx context.Context, namespace string, a *plan.Action) error {
	pods, dryRun := c.Core.Pods(namespace), []string{metav1.DryRunAll}
	if a.Question.Kind == trial.Create {
		_, err := pods.Create(ctx, a.Pod, metav1.CreateOptions{DryRun: dryRun})
		return err
	}
	var subresources []string
	if a.Question.Kind == trial.Resize {
		subresources = []string{"resize"}
	}
	_, err := pods.Patch(ctx, a.Pod.Name, types.StrategicMergePatchType, a.Patch, metav1.PatchOptions{DryRun: dryRun}, subresources...)
	return err
}
