package tapp

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/growth"
	"tkestack.io/tapp/plan/inplace"
	"tkestack.io/tapp/plan/refusal"
	"tkestack.io/tapp/plan/tally"
	"tkestack.io/tapp/plan/unready"
)

const (
	reasonDeadline = "ProgressDeadlineExceeded"
	reasonPaused   = "Paused"
	reasonBudget   = "WaitsForBudget"
	reasonTurn     = "WaitsForTurn"
	reasonBackoff  = "Backoff"
	// ReasonRoom of an instance whose creation would take what one before it needs.
	ReasonRoom = "WaitsForRoom"

	reasonNotFinished = "AppNotFinished"
)

// summary of the instances, for the status.
type summary struct {
	*spec
	clock     *clock
	instances []*instance
	growing   []growth.Claim // that have not the size of their template yet
	kept      string         // tells of claims that whenScaled does not delete
	lost      lostNodes
	problems  []Problem
	refused   refusal.Set
	untried   bool // refused is what the stored status tells
}

// status says what was observed. What the plan is about to do does not count:
// it may fail.
func (m *summary) status(revision string) tappv1.TAppStatus {
	old := &m.stored.Status
	s := tappv1.TAppStatus{
		ObservedGeneration: m.tapp.Generation,
		CurrentRevision:    cmp.Or(old.CurrentRevision, revision),
		UpdateRevision:     cmp.Or(revision, old.UpdateRevision),
		CollisionCount:     old.CollisionCount,
		LastProgressTime:   old.LastProgressTime,
		Nodes:              m.nodes(),
		Failures:           m.failures(),
		Contents:           m.contents(),
		Statuses:           make(map[string]tappv1.InstanceStatus, len(m.instances)),
		Conditions:         slices.Clone(old.Conditions),
	}
	if m.selector != nil {
		// The string form is what keeps a selector that spec does not state.
		s.ScaleLabelSelector = m.selector.String()
	} else {
		s.ScaleLabelSelector = old.ScaleLabelSelector
	}
	for _, i := range m.instances {
		i.status = m.statusOf(i)
		if i.inRange || i.pod != nil || i.claimsLeft {
			s.Statuses[i.name] = i.status
		}
		m.add(&s, i)
	}
	s.AppStatus = tally.AppStatus(s.Statuses)
	m.conclude(&s)
	if len(s.Contents) > 0 && !maps.Equal(s.Contents, old.Contents) && tellsSameButContents(s, *old) {
		s.Contents = old.Contents // they go with a status that is written anyway
	}
	return s
}

// tellsSameButContents says whether two statuses differ in nothing but their contents.
func tellsSameButContents(a, b tappv1.TAppStatus) bool {
	if !maps.Equal(a.Statuses, b.Statuses) {
		return false
	}
	a.Statuses, b.Statuses, a.Contents, b.Contents = nil, nil, nil, nil // what is large costs much to reflect on
	return equality.Semantic.DeepEqual(&a, &b)
}

func (m *summary) add(s *tappv1.TAppStatus, i *instance) {
	if i.completed {
		s.CompletedReplicas++
	}
	if i.state != alive && i.state != terminating && i.state != unmatched || isEnded(i.pod) {
		return
	}
	s.Replicas++
	if unready.IsReady(i.pod) {
		s.ReadyReplicas++
	}
	if i.available {
		s.AvailableReplicas++
	}
	if i.updated && i.differs == "" {
		s.UpdatedReplicas++
	}
}

// statusOf is the state of one instance, in the words of the original.
func (m *summary) statusOf(i *instance) tappv1.InstanceStatus {
	switch i.state {
	case missing, foreign, orphan:
		switch {
		case i.claimsLeft:
			return tappv1.InstanceKilling
		case i.stopped:
			return tappv1.InstanceKilled
		case i.completed:
			return m.tapp.Status.Statuses[i.name]
		}
		return tappv1.InstanceNotCreated
	case terminating:
		if i.completed {
			return m.tapp.Status.Statuses[i.name]
		}
		return tappv1.InstanceKilling
	case ended:
		end := endOf(i.pod)
		switch {
		case !i.inRange || i.stopped:
			// It goes because the spec says so. As an end it would be remembered, and an
			// instance that is started again at once would stay down.
			return tappv1.InstanceKilling
		case i.completed:
			return end
		case end == tappv1.InstanceFailed:
			return tappv1.InstancePodFailed
		}
		return tappv1.InstancePodSucc
	}
	switch i.pod.Status.Phase {
	case corev1.PodPending, corev1.PodRunning, "":
		switch {
		case inplace.GateClosed(i.pod), i.updating && !inplace.HasGate(i.pod):
			return tappv1.InstanceUpdating
		case i.pod.Status.Phase == corev1.PodRunning && unready.IsReady(i.pod):
			return tappv1.InstanceRunning
		}
		return tappv1.InstancePending
	}
	return tappv1.InstanceUnknown
}

// nodes is where the instances of a TApp with neverMigrate have run: the first
// node that was seen, for ever.
func (m *summary) nodes() map[string]string {
	if !m.tapp.Spec.NeverMigrate {
		return nil
	}
	out := maps.Clone(m.tapp.Status.Nodes)
	for _, i := range m.instances {
		if i.pod == nil || i.state == foreign || i.state == orphan || i.pod.Spec.NodeName == "" || out[i.name] != "" {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[i.name] = i.pod.Spec.NodeName
	}
	return out
}

// failures in a row of the instances whose last pod ended and is to be followed, or was
// deleted before the next one could be created. After that the pod itself tells of them.
//
// Those of maxFailures instances are kept at a time, counted ones first, so that they take
// little of the status. Others follow when these have their next pod.
func (m *summary) failures() map[string]int32 {
	const maxFailures = 1000
	var stored, counted, others []*instance
	for _, i := range m.instances {
		told := int(m.tapp.Status.Failures[i.name])
		if i.desired() && (i.state == terminating || i.state == missing) {
			i.failures, i.counted = told, true
		}
		switch {
		case i.failures == 0:
		case i.counted && i.failures == told:
			stored = append(stored, i)
		case i.counted:
			counted = append(counted, i)
		default:
			others = append(others, i)
		}
	}
	all := slices.Concat(stored, counted, others)
	if len(all) == 0 {
		return nil
	}
	out := map[string]int32{}
	for _, i := range all[:min(len(all), maxFailures)] {
		out[i.name] = int32(i.failures)
	}
	return out
}
