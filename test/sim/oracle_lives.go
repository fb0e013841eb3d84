package sim

import (
	"net/http"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/sim/apiserver"
)

// life of a pod, as the API server saw it.
type life struct {
	last *corev1.Pod
	// over is the version with which it ended, was deleted, or was gone.
	over int64
	rows []row
	// by is the process of ours that deleted it, and unsure says that it was told of an error.
	by     string
	unsure bool
}

// livesOf the instance's pods, one of which the process can have known as the last.
func (o *oracle) livesOf(t *tappv1.TApp, pod *corev1.Pod, b *belief) []life {
	var all []life
	for _, c := range o.w.Tables[pods].History {
		if c.Key() != keyOf(pod) || c.Version >= o.judged || controllerOf(c.Object()) != t.UID {
			continue
		}
		now := c.Object().(*corev1.Pod)
		if len(all) == 0 || all[len(all)-1].last.UID != now.UID {
			all = append(all, life{})
		}
		l := &all[len(all)-1]
		l.last = now
		switch {
		case l.over == 0:
			o.end(l, c, t)
		case l.by == "" && causeOf(c) != nil && causeOf(c).Verb == "delete":
			l.by = causeOf(c).replica.Name // who leads next finds no pod
			if slices.ContainsFunc(o.podsSeenAt(c, now), isGoingOn) {
				l.rows = append(l.rows, rowUpdated) // and who did it did not know yet that it was over
			}
		case l.by == "" && causeOf(c) == nil && (c.After == nil || now.DeletionTimestamp != nil) && !o.isToldFailed(now, b):
			l.rows = append(l.rows, rowLost) // somebody takes it away, and with it what tells of its end
		}
	}
	for i := range all {
		if by := o.deleted[all[i].last.UID]; by != "" && all[i].by == "" {
			all[i].by, all[i].rows = by, append(all[i].rows, rowUpdated)
		}
		if all[i].over == 0 { // somebody took it from the TApp
			all[i].over, all[i].rows = versionOf(all[i].last), []row{rowLost, rowFailed}
		}
	}
	for len(all) > 1 && all[0].over <= b.told[pods] && all[1].over <= b.told[pods] {
		all = all[1:]
	}
	return all
}

// isGoingOn says whether a pod has not ended, and is not being deleted.
func isGoingOn(p *corev1.Pod) bool { return !isFinished(p) && p.DeletionTimestamp == nil }

// isToldFailed says whether a status tells a process of the end of a pod.
func (o *oracle) isToldFailed(pod *corev1.Pod, b *belief) bool {
	told := o.toldFailed[pod.UID]
	return told > 0 && told <= b.told[tapps]
}

// hasFailed says whether a pod ended with an error by itself.
func (o *oracle) hasFailed(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed && pod.DeletionTimestamp == nil && !o.isLoss(pod)
}

// answered notes the pods that a process was told it deleted, and that were being deleted
// already: nothing changes then, and the process cannot know.
func (o *oracle) answered(r *request, a *apiserver.Answer) {
	if r.belief == nil || r.Resource != pods || r.Verb != "delete" || a.Status != http.StatusOK {
		return
	}
	pod, ok := apiserver.Find[*corev1.Pod](o.w.Store, pods, r.Key())
	o.judged = o.w.Version + 1
	if ok && pod.DeletionTimestamp != nil && slices.ContainsFunc(o.podsSeen(pod, r.belief), isGoingOn) {
		o.deleted[pod.UID] = r.replica.Name
	}
}

func versionOf(pod *corev1.Pod) int64 {
	n, err := strconv.ParseInt(pod.ResourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// end notes with which change the life of a pod was over, and how.
func (o *oracle) end(l *life, c *change, t *tappv1.TApp) {
	now, _ := c.After.(*corev1.Pod)
	switch {
	case now != nil && isFinished(now):
		l.over, l.rows = c.Version, []row{rowLost, rowFailed}
		switch {
		case o.isLoss(now):
			l.rows = []row{rowLost}
		case o.hasFailed(now):
			l.rows = []row{rowFailed}
		}
	case now != nil && now.DeletionTimestamp == nil:
	case causeOf(c) != nil:
		l.over, l.by, l.unsure, l.rows = c.Version, causeOf(c).replica.Name, causeOf(c).unsure || causeOf(c).abandoned.Load(), []row{rowUpdated}
		_, id := stem(c.Key())
		for _, was := range o.appsSeenAt(c) {
			if wanted(was, id) != "" { // it was to go, and that may be taken back before anybody tells of it
				l.rows = []row{rowNew, rowStarted, rowLost}
			}
		}
	default:
		l.over, l.rows = c.Version, []row{rowLost, rowFailed}
		if before, _ := c.Before.(*corev1.Pod); before != nil && isServing(t, before) {
			l.rows = []row{rowLost}
		}
	}
}

// rowsOf an instance that gets a pod: more than one where nobody can tell which it is.
func (o *oracle) rowsOf(t *tappv1.TApp, id string, lives []life, r *request) []row {
	if len(lives) == 0 {
		if killed, _ := o.wasOff(t, id, 0); killed {
			return []row{rowNew, rowStarted} // it was killed before it had a pod
		}
		return []row{rowNew}
	}
	var out []row
	for _, l := range lives {
		killed, scaled := o.wasOff(t, id, l.over)
		switch {
		case scaled:
			out = append(out, rowNew)
			out = append(out, slices.DeleteFunc(slices.Clone(l.rows), func(r row) bool { return r == rowUpdated })...)
		case killed:
			if out = append(out, rowStarted); !isToldKilled(t, id) {
				out = append(out, rowLost)
			}
		default:
			out = append(out, l.rows...)
		}
		if l.by != "" && (l.unsure || l.by != r.replica.Name) {
			out = append(out, rowLost)
		}
	}
	return out
}

// isToldKilled says whether the stored status tells that the instance was killed: nothing
// else does once its entry is gone from the spec.
func isToldKilled(t *tappv1.TApp, id string) bool {
	return t.Status.Statuses[id] == tappv1.InstanceKilled
}

// appsSeenAt are the versions of a TApp that a write of ours was made on, and podsSeenAt those
// of a pod.
func (o *oracle) appsSeenAt(c *change) []*tappv1.TApp {
	app, _ := stem(c.Key())
	return o.at(c).appsSeen(app, causeOf(c).belief)
}

func (o *oracle) podsSeenAt(c *change, pod *corev1.Pod) []*corev1.Pod {
	return o.at(c).podsSeen(pod, causeOf(c).belief)
}

// at is the oracle as it was when it judged a change.
func (o *oracle) at(c *change) *oracle { return &oracle{w: o.w, judged: c.Version} }

// wasOff says whether the instance was killed or scaled down at some time since its last pod,
// up to a version of the TApp.
func (o *oracle) wasOff(t *tappv1.TApp, id string, since int64) (killed, scaled bool) {
	var last *tappv1.TApp
	look := func(was *tappv1.TApp) {
		if was == nil || was.UID != t.UID {
			return
		}
		killed = killed || was.Spec.Statuses[id] == tappv1.InstanceKilled
		num, _ := number(id)
		scaled = scaled || num >= int(*was.Spec.Replicas)
	}
	for _, c := range o.w.Tables[tapps].History {
		if c.Key() != keyOf(t) {
			continue
		}
		now, _ := c.Object().(*tappv1.TApp)
		if c.Version > since {
			look(last)
			look(now)
		}
		if last = now; now.ResourceVersion == t.ResourceVersion {
			break
		}
	}
	look(last)
	return killed, scaled
}
