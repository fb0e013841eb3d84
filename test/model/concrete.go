package main

import (
	"encoding/json"
	"strconv"
	"time"

	"tkestack.io/tapp/plan/inplace"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

const (
	generation = 5 // of every pod
	lastID     = "containerd://last"
	olderID    = "containerd://older"
	restarts   = 10 // of every container that has restarted
)

// newPod builds the pod that the planner is shown.
func (w *world) newPod(num int, p pod) *corev1.Pod {
	kind := 1
	if p.gate == ungated {
		kind = 0
	}
	out := w.base[kind][p.version].DeepCopy()
	id := strconv.Itoa(num)
	out.Name, out.UID, out.Generation, out.ResourceVersion = "web-"+id, uidOf(num), generation, "1"
	out.Labels[tappv1.LabelInstanceID], out.Labels[tappv1.LabelPodIndex] = id, id
	long := metav1.NewTime(w.now.Add(-time.Hour))
	out.CreationTimestamp = long
	out.Status.Phase = corev1.PodPending
	if p.place != pending {
		out.Spec.NodeName, out.Status.StartTime, out.Status.Phase = nodeOf(num), &long, corev1.PodRunning
	}
	switch p.place {
	case dying:
		out.DeletionTimestamp = new(metav1.NewTime(w.now.Add(-time.Minute)))
	case foreign:
		out.OwnerReferences[0].UID, out.OwnerReferences[0].Name = "other", "other"
	}
	if p.orphan {
		out.OwnerReferences = nil
	}
	since := metav1.NewTime(w.now)
	if p.aged {
		since = long
	}
	w.conditions(out, p, since)
	w.containers(out, p, since)
	if p.record.has {
		text, _ := json.Marshal(w.annotation(p)) // strings and numbers always marshal
		if out.Annotations == nil {
			out.Annotations = map[string]string{}
		}
		out.Annotations[tappv1.AnnotationInPlaceState] = string(text)
	}
	return out
}

func (w *world) conditions(out *corev1.Pod, p pod, since metav1.Time) {
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: since}
	if p.ready {
		ready.Status = corev1.ConditionTrue
	}
	containers := corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionFalse, LastTransitionTime: since}
	if p.healthy {
		containers.Status = corev1.ConditionTrue
	}
	if p.place != pending {
		out.Status.Conditions = append(out.Status.Conditions, ready, containers)
	}
	gate := corev1.PodCondition{Type: tappv1.GateInPlaceUpdate, LastTransitionTime: metav1.NewTime(w.now.Add(-time.Hour))}
	switch p.gate {
	case closed:
		gate.Status = corev1.ConditionFalse
	case open:
		gate.Status = corev1.ConditionTrue
	default:
		return
	}
	out.Status.Conditions = append(out.Status.Conditions, gate)
}

func (w *world) containers(out *corev1.Pod, p pod, since metav1.Time) {
	if p.place == pending || p.place == ended && p.end == rejected {
		if p.end == rejected {
			out.Status.Phase, out.Status.Reason = corev1.PodFailed, "UnexpectedAdmissionError"
		}
		return
	}
	out.Status.ObservedGeneration = generation
	if !p.seen {
		out.Status.ObservedGeneration--
	}
	c := corev1.ContainerStatus{Name: "main", Image: image(p.runs), ImageID: "sha256:" + image(p.runs), ContainerID: lastID,
		RestartCount: restarts, Ready: p.healthy, Started: new(p.healthy)}
	c.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(w.now.Add(-time.Hour))}
	if p.place == ended {
		out.Status.Phase = corev1.PodFailed
		c.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, FinishedAt: since}}
		if p.end == succeeded {
			out.Status.Phase, c.State.Terminated.ExitCode = corev1.PodSucceeded, 0
		}
	}
	out.Status.ContainerStatuses = []corev1.ContainerStatus{c}
}

// annotation in the words of the planner.
func (w *world) annotation(p pod) inplace.State {
	state := inplace.State{Revision: "any", UpdateTimestamp: metav1.NewTime(w.now.Add(-time.Hour)), LastContainerStatuses: map[string]inplace.LastContainerStatus{}}
	r := p.record
	if r.container == noContainer && r.image == 0 && r.via == 0 {
		return state // only labels changed
	}
	if r.fresh {
		state.UpdateTimestamp = metav1.NewTime(w.now)
	}
	last := inplace.LastContainerStatus{RestartCount: restarts - int32(r.starts)}
	switch r.container {
	case lastContainer:
		last.ContainerID = lastID
	case olderContainer:
		last.ContainerID = olderID
	case noContainer:
		last.RestartCount = 0
		if p.place != pending {
			last.RestartCount = restarts + 1 - int32(r.starts) // a first start counts as no restart
		}
	}
	if r.image > 0 {
		last.Image = image(r.image - 1)
	}
	if r.imageID > 0 {
		last.ImageID = "sha256:" + image(r.imageID-1)
	}
	for v := range w.Images + 1 {
		if r.via&(1<<v) != 0 {
			last.Via = append(last.Via, image(v))
		}
	}
	state.LastContainerStatuses["main"] = last
	return state
}

// readRecord is the other way round: of a pod that has just been patched.
func (w *world) readRecord(out *corev1.Pod, p pod) record {
	state, ok := inplace.ReadState(out)
	if !ok {
		return record{}
	}
	r := record{has: true, fresh: state.UpdateTimestamp.Equal(new(metav1.NewTime(w.now)))}
	last, ok := state.LastContainerStatuses["main"]
	if !ok {
		return r
	}
	switch last.ContainerID {
	case lastID:
		r.container = lastContainer
	case olderID:
		r.container = olderContainer
	}
	switch {
	case r.container != noContainer:
		r.starts = uint8(min(maxStarts, restarts-int(last.RestartCount)))
	case p.place != pending:
		r.starts = uint8(min(maxStarts, restarts+1-int(last.RestartCount)))
	}
	for v := range w.Images + 1 {
		if last.Image == image(v) {
			r.image = v + 1
		}
		if last.ImageID == "sha256:"+image(v) {
			r.imageID = v + 1
		}
		for _, via := range last.Via {
			if via == image(v) {
				r.via |= 1 << v
			}
		}
	}
	return r
}

// canonical forgets what can make no difference, so that equal states are one.
func (w *world) canonical(i *instance) {
	p := &i.pod
	switch p.place {
	case none, foreign:
		*p = pod{place: p.place, forUpdate: p.forUpdate && p.place == none && i.role.runs()}
	case dying:
		*p = pod{place: dying, lost: p.lost, forUpdate: p.forUpdate && i.role.runs()}
	case ended:
		version := uint8(0)
		if p.version != 0 {
			version = w.shape() // whether its template has changed since is all that matters
		}
		*p = pod{place: ended, version: version, end: p.end, aged: p.aged}
	case pending:
		p.runs, p.seen, p.healthy, p.ready, p.aged = 0, false, false, false, false
	case running:
		p.aged = p.ready && (p.aged || w.MinReady == 0)
	}
	if p.place != dying {
		i.told = false
	}
	if !p.record.has {
		p.record = record{}
	}
	p.record.fresh = p.record.fresh && p.place == running && p.record.mayDoubt()
	if w.Coarse {
		w.coarsen(i)
	}
}

// mayDoubt says whether the age of a record can make a difference: not where it
// names what runs, and the image that it was started from, nor where there were but
// that image and the wanted one, whose names are not the same. A start makes it fresh.
func (r record) mayDoubt() bool {
	if r.container == lastContainer {
		return r.image == 0
	}
	return r.via > 0
}

// coarsen is what makes four instances a space of some million states: a kubelet
// starts and restarts containers and reports on them at once, but for the drain, and
// what it does to a drained pod makes no difference but for the restart.
func (w *world) coarsen(i *instance) {
	p := &i.pod
	switch p.place {
	case pending:
		p.place, p.runs = running, p.version
	case ended:
		p.version, p.aged = 0, true
	}
	if p.place != running {
		return
	}
	p.seen = true
	if p.version == w.shape() || p.runs == p.version && (p.healthy || p.record.container == lastContainer) {
		p.runs, p.record = p.version, record{}
	}
	if p.runs != p.version { // patched: what it ran before is another image, and that is all
		p.runs = 1
		if p.version == 1 {
			p.runs = 0
		}
		p.record = record{has: true, container: lastContainer, image: p.runs + 1, imageID: p.runs + 1}
	}
	switch p.gate {
	case closed, unset:
		p.gate, p.healthy = closed, true
	case open, ungated:
		p.ready = p.healthy
	}
	p.aged = p.ready && (p.aged || w.MinReady == 0)
	if !i.role.runs() { // it goes, whatever it was
		*p = pod{place: running, gate: p.gate, seen: true, healthy: true, ready: true, aged: true}
		if w.Gated {
			p.gate = open
		}
	}
}
