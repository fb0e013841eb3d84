package sim

import (
	"fmt"
	"hash/fnv"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/sim/apiserver"
)

// trace is what happened in a run, line by line. Lines that few people want to read
// are quiet: they count for what a run was, and are shown only on demand.
type trace struct {
	began   time.Time
	verbose bool
	lines   []string
	digest  uint64
}

func (t *trace) add(quiet bool, step int, now time.Time, text string) {
	line := fmt.Sprintf("%4d %12s  %s", step, now.Sub(t.began), text)
	h := fnv.New64a()
	_, _ = io.WriteString(h, line)
	t.digest = t.digest*31 + h.Sum64()
	if !quiet || t.verbose {
		t.lines = append(t.lines, line)
	}
}

func (t *trace) say(step int, now time.Time, format string, args ...any) {
	t.add(false, step, now, fmt.Sprintf(format, args...))
}

func (t *trace) quiet(step int, now time.Time, format string, args ...any) {
	t.add(true, step, now, fmt.Sprintf(format, args...))
}

// write is one of the controller's.
func (t *trace) write(step int, now time.Time, r *request, site, fault string) {
	if fault != "" {
		fault = " !! " + fault
	}
	t.say(step, now, "%s %s [%s]%s", r.replica.Name, r, site, fault)
}

func (t *trace) answer(step int, now time.Time, r *request, a *apiserver.Answer) {
	if a.Status >= 300 || a.Err != nil {
		t.say(step, now, "     answered %d %s", a.Status, a.Body)
	}
}

// change is a step of an object.
func (t *trace) change(step int, c *change) {
	verb := map[bool]string{true: "is made"}[c.Before == nil]
	if c.After == nil {
		verb = "is gone"
	}
	t.add(c.Resource == revisions, step, c.At, fmt.Sprintf("     %d %s %s by %s%s", c.Version, apiserver.NameOf(c.Resource, c.Object()), verb, c.By, describe(c.Object())))
}

// describe an object in a few words.
func describe(o object) string {
	var b strings.Builder
	if o.GetDeletionTimestamp() != nil {
		b.WriteString(" dying")
	}
	switch o := o.(type) {
	case *corev1.Pod:
		fmt.Fprintf(&b, " %s", o.Status.Phase)
		if isReady(o) {
			b.WriteString(" ready")
		}
		if hasGate(o) && !gateOpen(o) {
			b.WriteString(" gate closed")
		}
		for _, c := range o.Spec.Containers {
			fmt.Fprintf(&b, " %s", c.Image)
		}
		fmt.Fprintf(&b, " generation %d/%d on %q", o.Status.ObservedGeneration, o.Generation, o.Spec.NodeName)
	case *tappv1.TApp:
		fmt.Fprintf(&b, " generation %d/%d replicas %d statuses %v %v", o.Status.ObservedGeneration, o.Generation, *o.Spec.Replicas, o.Spec.Statuses, o.Status.Statuses)
	}
	return b.String()
}
