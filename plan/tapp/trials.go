package tapp

import (
	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/inplace"
	"tkestack.io/tapp/plan/message"
	"tkestack.io/tapp/plan/refusal"
	"tkestack.io/tapp/plan/trial"
)

// newBench has interruptions tried; nil: the policy does not ask for it.
func (s *spec) newBench(in *Input, all []*instance) *trial.Bench {
	if !in.Policy.Try {
		return nil
	}
	b := trial.NewBench(in.Trials, in.Now)
	for _, i := range all {
		if i.isOutdated() {
			b.Read(i.pod, i.template.Hashes.Template)
		}
	}
	return b
}

// isOutdated says whether the instance has a pod that does not follow its template.
func (i *instance) isOutdated() bool {
	return i.state == alive && i.desired() && i.template != nil && !i.updated
}

// admits says whether the next step of an update may be taken by the API server's answer; otherwise the pod
// goes on serving, and a closed gate opens again. A pod without a gate is not asked for: its patch is the
// question. An instance that waits for an answer takes its room, too: another one would take it meanwhile.
func (r *rollout) admits(i *instance, n *intent) (begins, takesRoom bool) {
	if r.bench == nil {
		return true, true
	}
	kind := trial.Update
	switch {
	case n.kind == recreate:
		return r.admitsNext(i)
	case !inplace.HasGate(i.pod):
		return true, true
	case n.kind == resizeAndRestart:
		kind = trial.Resize
	case n.kind != updateInPlace:
		return true, true
	}
	d := r.bench.Patch(kind, r.subject(i), r)
	if d.Do != trial.DoInstead {
		return r.carryOut(i, d)
	}
	d.Why = "the API server does not take the update in place: " + d.Why
	if r.keepsClaim(i) { // none turns into a recreation
		d.Do, d.Reason, d.Why, d.Refusal = trial.DoWait, i.reason, i.why, trial.Refusal{Times: 1, Words: d.Why}
		if i.isDrained() {
			d.Do = trial.DoReopen
		}
		return r.carryOut(i, d)
	}
	if r.tapp.Spec.UpdateStrategy.InPlaceUpdate.Policy == tappv1.InPlaceOnly {
		d.Do, d.Reason, d.Refusal = trial.DoWait, trial.ReasonImmutable, trial.Refusal{Times: 1, Words: d.Why}
		if d.Why += "; spec.updateStrategy.inPlaceUpdate.policy is InPlaceOnly"; i.isDrained() {
			d.Do = trial.DoReopen
		}
		return r.carryOut(i, d)
	}
	*n = intent{recreate, trial.ReasonImmutable, d.Why}
	return r.admitsNext(i)
}

// admitsNext says whether a pod may go that serves, or is out of its Services for us alone.
func (r *rollout) admitsNext(i *instance) (begins, takesRoom bool) {
	s := r.subject(i)
	if !s.Serves && (s.Closed.IsZero() || !s.Untouched) {
		return true, true
	}
	return r.carryOut(i, r.bench.Next(s, &i.template.Spec.Spec, r))
}

func (r *rollout) subject(i *instance) trial.Subject {
	s := trial.Subject{Pod: i.pod, Hash: i.template.Hashes.Template, Serves: i.needsRoom()}
	if i.isDrained() {
		s.Closed, _ = inplace.GateClosedSince(i.pod)
		s.Untouched = r.clock.progressOf(i).Done
	}
	return s
}

// carryOut a decision. It says whether the interruption begins, and whether it takes room.
func (r *rollout) carryOut(i *instance, d trial.Decision) (begins, takesRoom bool) {
	r.clock.waits(d.Left)
	switch d.Do {
	case trial.DoBegin:
		return true, true
	case trial.DoAsk:
		r.ask(i, d.Question)
	case trial.DoReopen:
		i.act(Action{Op: OpUndrain, Pod: i.pod, Reason: trial.ReasonUpdateRefused, Why: "the update in place was refused: " + message.Quote(d.Refusal.Words),
			Status: inplace.GatePatch(inplace.Target{UID: i.pod.UID}, true, trial.ReasonUpdateRefused, trial.Message(i.template.Hashes.Template, d.Refusal), r.clock.now)})
	default:
		i.wait(d.Reason, d.Why)
		if d.Refused != "" {
			r.triedInVain[refusal.Key{ID: i.id, Op: map[string]string{trial.ReasonUpdateRefused: refusal.TryUpdate, trial.ReasonNextPodRefused: refusal.TryCreate}[d.Reason]}] = d.Refused
		}
	}
	return false, d.Unanswered
}

// ask the API server, which takes no budget.
func (r *rollout) ask(i *instance, q trial.Question) {
	a := Action{Op: OpTry, Pod: i.pod, Question: q, Reason: "Untried", Why: "whether the API server takes what follows is asked before the instance is interrupted"}
	switch q.Kind {
	case trial.Create:
		a.Pod = r.newPod(i, 0)
	case trial.Resize:
		to := r.resizeOf(i)
		a.Patch, _ = to.Patch(i.template.Hashes.Template)
	default:
		var err error
		if a.Patch, err = r.patchOf(i, ""); err != nil {
			i.wait("UpdateFailed", err.Error())
			return
		}
	}
	i.act(a)
}

// IsUnderWay implements trial.Others.
func (r *rollout) IsUnderWay(q trial.Question) bool {
	return r.isAny(q, (*instance).isDrained)
}

// MayTryInstead implements trial.Others.
func (r *rollout) MayTryInstead(q trial.Question, than *corev1.Pod) bool {
	return r.isAny(q, func(i *instance) bool {
		_, _, refused := trial.ReadGate(i.pod)
		n := r.intentOf(i)
		return i.pod != than && i.serving && !refused && (n.kind == updateInPlace || n.kind == resizeAndRestart)
	})
}

func (r *rollout) isAny(q trial.Question, is func(*instance) bool) bool {
	for _, i := range r.all {
		if i.isOutdated() && is(i) && r.bench.Of(q.Kind, i.pod, i.template.Hashes.Template) == q {
			return true
		}
	}
	return false
}

// IsNextDue implements trial.Others.
func (r *rollout) IsNextDue(hash, but string) bool {
	for _, i := range r.all {
		if i.desired() && (i.state == missing || i.state == terminating) && i.template != nil && i.template.Hashes.Template == hash && r.tapp.Name+"-"+i.name != but {
			return true
		}
	}
	return false
}
