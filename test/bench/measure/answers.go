package measure

import (
	"slices"
	"strings"
	"time"

	"tkestack.io/tapp/test/audit"
	"tkestack.io/tapp/test/bench/record"
)

// stage is how far the update of one pod has come. The comment is whose write brings the pod there.
type stage int

const (
	untouched stage = iota
	closed          // the contender's: its gate
	drained         // the kubelet's: not ready
	patched         // the contender's: its image
	back            // the kubelet's: the container runs
	opened          // the contender's: its gate
	deleted         // the contender's
	gone            // the kubelet's
	created         // the contender's
	ready           // the kubelet's
)

// answering goes through the writes in the order in which they arrived: a watch may tell
// of a write before it is answered, but not before it arrived.
type answering struct {
	pods map[string]*updating
	// ready is the last write with which an instance became ready, asked the user's last
	// one; nil: the contender has answered it.
	ready, asked *audit.Request
	samples      map[string][]sample
}

// updating is a pod that is being updated.
type updating struct {
	stage stage
	by    audit.Request // the write that brought it there
}

// sample is one answer.
type sample struct {
	answer   float64 // until the contender's write was answered
	reaction float64 // until it arrived
}

// Answers says of a phase that has ended how soon the contender answered, by step; nil
// without any answer. It expects instances that are updated one at a time.
func (p *Phase) Answers(s Subject) map[string]record.Answer { return answers(p.requests, s) }

func answers(requests []audit.Request, s Subject) map[string]record.Answer {
	writes := slices.DeleteFunc(slices.Clone(requests), func(r audit.Request) bool {
		return !r.IsWrite() || r.Code >= 300 || r.Resource == "events"
	})
	slices.SortStableFunc(writes, func(a, b audit.Request) int { return a.Received.Compare(b.Received) })
	a := &answering{pods: map[string]*updating{}, samples: map[string][]sample{}}
	for i := range writes {
		w := &writes[i]
		switch {
		case s.Asked != nil && s.Asked(*w):
			// What comes now is for another wish.
			a.pods, a.ready, a.asked = map[string]*updating{}, nil, w
		case s.Wrote(*w):
			a.wrote(w)
		case isKubelet(*w) && w.Resource == "pods":
			a.kubelet(w)
		}
	}
	return a.figures()
}

func isKubelet(r audit.Request) bool { return strings.HasPrefix(r.UserAgent, "kwok/") }

func (a *answering) pod(w *audit.Request) *updating {
	of := w.Namespace + "/" + w.Name
	if a.pods[of] == nil {
		a.pods[of] = &updating{}
	}
	return a.pods[of]
}

// wrote is for a write of the contender.
func (a *answering) wrote(w *audit.Request) {
	if a.asked != nil {
		a.add(record.Asked, a.asked, w)
		a.asked = nil
	}
	if w.Resource != "pods" {
		return
	}
	pod := a.pod(w)
	switch what := w.Verb + " " + w.Subresource; {
	case what == "patch status" && pod.stage == back:
		a.add(record.Back, &pod.by, w)
		pod.stage = opened
	case what == "patch status" && pod.stage == ready: // it was created with a gate
		pod.stage, a.ready = opened, nil
	case what == "patch status" && pod.stage == untouched:
		a.next(w)
		pod.stage = closed
	case what == "patch " && pod.stage == drained:
		a.add(record.Drained, &pod.by, w)
		pod.stage = patched
	case what == "delete ":
		a.next(w)
		pod.stage = deleted
	case what == "create ":
		if pod.stage == gone {
			a.add(record.Gone, &pod.by, w)
		}
		pod.stage = created
	}
}

// next is for the write that takes an instance out of service.
func (a *answering) next(w *audit.Request) {
	if a.ready != nil {
		a.add(record.Ready, a.ready, w)
		a.ready = nil
	}
}

// kubelet is for a write of the kubelet to a pod.
func (a *answering) kubelet(w *audit.Request) {
	answers := map[stage]stage{closed: drained, patched: back, opened: ready, created: ready}
	if w.Verb == "delete" {
		answers = map[stage]stage{deleted: gone}
	} else if w.Subresource != "status" {
		return
	}
	pod := a.pod(w)
	to, ok := answers[pod.stage]
	if !ok {
		return
	}
	*pod = updating{stage: to, by: *w}
	if to == ready {
		a.ready = w
	}
}

func (a *answering) add(step string, cause, w *audit.Request) {
	since := func(t time.Time) float64 { return max(0, t.Sub(cause.Answered).Seconds()) }
	a.samples[step] = append(a.samples[step], sample{answer: since(w.Answered), reaction: since(w.Received)})
}

func (a *answering) figures() map[string]record.Answer {
	if len(a.samples) == 0 {
		return nil
	}
	out := map[string]record.Answer{}
	for step, samples := range a.samples {
		var all, reactions []float64
		for _, s := range samples {
			all, reactions = append(all, s.answer), append(reactions, s.reaction)
		}
		figures := record.Answer{Count: len(samples)}
		figures.Median, figures.P99 = spread(all)
		figures.Reaction, _ = spread(reactions)
		out[step] = figures
	}
	return out
}
