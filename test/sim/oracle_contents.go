package sim

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/sim/apiserver"
)

// S11: which content a pod that is made has. Users of other systems reported that a pod
// which was lost while a rollout was held brought the held version live
// (openkruise/kruise#1183, kubernetes-sigs/lws#280).
//
//	made anew           paused     room       no room
//	lost                as it was  present    as it was
//	failed by itself    as it was  present    present
//	we, for its update  present    present    present
//	new id              usual      present    usual
//	started again       as it was  present    present

// row of the table.
type row string

const (
	rowLost    row = "lost"
	rowFailed  row = "failed by itself"
	rowUpdated row = "deleted for its update"
	rowNew     row = "a new id"
	rowStarted row = "started again"
)

// record is what a stored status can tell of an instance without a pod.
type record struct {
	content content
	version int64
}

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

// remember notes what a status of the controller can tell from now on: while a rollout is
// unfinished, which content each instance has.
func (o *oracle) remember(c *change) {
	t := clone(c.After.(*tappv1.TApp))
	if t.Status.ObservedGeneration != t.Generation {
		return
	}
	tappv1.Default(t)
	unfinished := false
	now := map[string]content{}
	for _, id := range idsOf(t) {
		versions := versionsOf[*corev1.Pod](o, pods, keyOf(t)+"-"+id, causeOf(c).belief)
		if slices.ContainsFunc(versions, func(p *corev1.Pod) bool { return p != nil }) {
			now[id] = o.surely(t, versions)
			unfinished = unfinished || now[id] != "" && template(t, id) != nil && now[id] != contentOfTemplate(template(t, id))
		}
	}
	for id, has := range now {
		if delete(o.recorded, instanceKey(t, id)); has != "" {
			o.recorded[instanceKey(t, id)] = record{has, c.Version}
		}
	}
	if !unfinished {
		for key := range o.recorded {
			if strings.HasPrefix(key, string(t.UID)+" ") {
				delete(o.recorded, key)
			}
		}
	}
}

// surely is the content that all versions of a pod have; empty: they differ, or nobody knows.
func (o *oracle) surely(t *tappv1.TApp, versions []*corev1.Pod) content {
	first := versions[0]
	if slices.ContainsFunc(versions, func(p *corev1.Pod) bool {
		return p == nil || p.UID != first.UID || controllerOf(p) != t.UID || o.w.tampered[p.UID] || contentOfPod(p) != contentOfPod(first)
	}) {
		return ""
	}
	return contentOfPod(first)
}

// judgeContent is S11, of a pod that is made.
func (o *oracle) judgeContent(pod *corev1.Pod, id string, seen []*tappv1.TApp, r *request) error {
	has := contentOfPod(pod)
	var why []string
	for _, t := range seen {
		if template(t, id) == nil {
			continue
		}
		lives := o.livesOf(t, pod, r.belief)
		for _, v := range o.views(r) {
			for _, rule := range o.rowsOf(t, id, lives, r) {
				may := o.contents(t, v, id, rule, lives, r.belief)
				if slices.Contains(may, has) {
					return o.marked(pod, has, id, seen)
				}
				why = append(why, fmt.Sprintf("%s, paused: %t, so that it is to be %s", rule, t.Spec.Paused, may))
			}
		}
	}
	slices.Sort(why)
	return fmt.Errorf("S11: pod %s is made as %s: %s", pod.Name, has, strings.Join(slices.Compact(why), "; "))
}

// marked says whether a pod that has not the present template says which one it has.
func (o *oracle) marked(pod *corev1.Pod, has content, id string, seen []*tappv1.TApp) error {
	if pod.Annotations[keptAnnotation] != "" || slices.ContainsFunc(seen, func(t *tappv1.TApp) bool {
		return template(t, id) != nil && contentOfTemplate(template(t, id)) == has
	}) {
		return nil
	}
	return fmt.Errorf("S11: pod %s is made as it was or as usual, and lacks the annotation that says so", pod.Name)
}

// contents that a pod may be made with, by a row of the table.
func (o *oracle) contents(t *tappv1.TApp, v view, id string, rule row, lives []life, b *belief) []content {
	present := []content{contentOfTemplate(template(t, id))}
	was := o.asItWas(t, v, id, lives, b)
	switch {
	case rule == rowUpdated:
		return present
	case rule == rowNew && t.Spec.Paused:
		return o.usual(t, v, id)
	case rule == rowNew && !o.hasRoom(t, v, id):
		return o.usual(t, v, id)
	case rule == rowNew:
		return append(o.usual(t, v, id), present...) // a step of the same plan may have taken the room
	case t.Spec.Paused:
		return was
	case rule == rowLost && !o.hasRoom(t, v, id) && !o.isOrdered(t, id):
		return was
	case rule == rowLost:
		return append(was, present...)
	}
	return present
}

// isOrdered says whether the instance has ever been given another template by name, which is
// an order to it.
func (o *oracle) isOrdered(t *tappv1.TApp, id string) bool {
	return slices.ContainsFunc(o.w.Tables[tapps].History, func(c *change) bool {
		was := c.Object().(*tappv1.TApp)
		return c.Key() == keyOf(t) && was.UID == t.UID && templateName(defaulted(was), id) != templateName(t, id)
	})
}

// hasRoom says whether the update of the instance would have room if it served.
func (o *oracle) hasRoom(t *tappv1.TApp, v view, id string) bool {
	c := o.count(t, v)
	c.takeOut(id)
	return len(c.silent) <= scale(o.budgetOf(t, id), len(c.desired))
}

// asItWas are the contents that the instance had, as far as it can be known, and what stands
// in for them where it cannot.
func (o *oracle) asItWas(t *tappv1.TApp, v view, id string, lives []life, b *belief) []content {
	var out []content
	sure := len(lives) > 0
	for _, l := range lives {
		had := contentOfPod(l.last)
		out = append(out, had)
		still := v.pod(t, id)
		told := still != nil && still.UID == l.last.UID && !o.w.tampered[still.UID]
		r, recorded := o.recorded[instanceKey(t, id)]
		sure = sure && (told || recorded && r.content == had && r.version <= b.told[tapps])
	}
	if !sure || o.forgotten[keyOf(t)] {
		out = append(out, o.usual(t, v, id)...)
	}
	return out
}

// usual are the contents that most serving instances of the same template run: more than one
// where they are as many. None serve: the present one.
func (o *oracle) usual(t *tappv1.TApp, v view, id string) []content {
	counts, most := map[string]int{}, 0
	for _, other := range idsOf(t) {
		pod := v.pod(t, other)
		if other == id || templateName(t, other) != templateName(t, id) || !isServing(t, pod) {
			continue
		}
		has := string(contentOfPod(pod))
		counts[has]++
		most = max(most, counts[has])
	}
	var out []content
	for _, has := range apiserver.SortedKeys(counts) {
		if counts[has] == most {
			out = append(out, content(has))
		}
	}
	if len(out) == 0 {
		out = append(out, contentOfTemplate(template(t, id)))
	}
	return out
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
		if l.over == 0 {
			o.end(l, c, t)
		}
	}
	for len(all) > 1 && all[0].over > 0 && all[0].over <= b.told[pods] && all[1].over <= b.told[pods] {
		all = all[1:]
	}
	return all
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
		case now.Status.Phase == corev1.PodFailed && now.DeletionTimestamp == nil:
			l.rows = []row{rowFailed}
		}
	case now != nil && now.DeletionTimestamp == nil:
	case causeOf(c) != nil:
		l.over, l.by, l.unsure, l.rows = c.Version, causeOf(c).replica.Name, causeOf(c).unsure || causeOf(c).abandoned.Load(), []row{rowUpdated}
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
		return []row{rowNew}
	}
	var out []row
	for _, l := range lives {
		killed, scaled := o.wasOff(t, id, l.over)
		switch {
		case scaled:
			out = append(out, rowNew)
		case killed:
			out = append(out, rowStarted)
		default:
			out = append(out, l.rows...)
		}
		if l.by != "" && (l.unsure || l.by != r.replica.Name) {
			out = append(out, rowLost)
		}
	}
	return out
}

// wasOff says whether the instance was killed or scaled down at some time since its last pod.
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
		last = now
	}
	look(last)
	return killed, scaled
}

func idsOf(t *tappv1.TApp) []string {
	var out []string
	for n := range int(*t.Spec.Replicas) {
		out = append(out, fmt.Sprint(n))
	}
	return out
}

func defaulted(t *tappv1.TApp) *tappv1.TApp {
	d := *t
	d.Spec = *t.Spec.DeepCopy()
	tappv1.Default(&d)
	return &d
}
