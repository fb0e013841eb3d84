package sim

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
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
	// may are the contents that it can tell, and sure says that it is the only one.
	may     []content
	sure    bool
	version int64
}

// remember notes what a status of the controller can tell from now on: while a rollout is
// unfinished, which content each instance has.
func (o *oracle) remember(c *change) {
	t := o.observed(c.After.(*tappv1.TApp))
	if t == nil {
		return
	}
	unfinished := false
	for _, id := range idsOf(t) {
		versions := versionsOf[*corev1.Pod](o, pods, keyOf(t)+"-"+id, causeOf(c).belief)
		if !slices.ContainsFunc(versions, func(p *corev1.Pod) bool { return p != nil }) {
			continue // what was recorded stays
		}
		key, has := instanceKey(t, id), o.surely(t, versions)
		if has != "" {
			o.recorded[key] = record{[]content{has}, true, c.Version}
			behind := template(t, id) != nil && has != contentOfTemplate(template(t, id))
			if behind && !slices.ContainsFunc(versions, func(p *corev1.Pod) bool { return !o.hasFailed(p) }) {
				o.toldFailed[versions[0].UID] = c.Version
			}
			unfinished = unfinished || behind && !o.isCompleted(t, versions[0], id)
			continue
		}
		may := slices.Clone(o.recorded[key].may)
		for _, p := range versions {
			may = append(may, contentOfPod(p))
		}
		o.recorded[key] = record{may, false, c.Version}
	}
	if unfinished {
		return
	}
	for key, r := range o.recorded { // instances without a pod may have the status go on
		if strings.HasPrefix(key, string(t.UID)+" ") {
			r.sure = false
			o.recorded[key] = r
		}
	}
}

// observed is the TApp of the generation that its status is about; nil: it is not known.
func (o *oracle) observed(now *tappv1.TApp) *tappv1.TApp {
	for _, c := range slices.Backward(o.w.Tables[tapps].History) {
		if t, ok := c.After.(*tappv1.TApp); ok && t.UID == now.UID && t.Generation == now.Status.ObservedGeneration {
			return defaulted(t)
		}
	}
	return nil
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
	if pod.Annotations[tappv1.AnnotationKept] != "" || slices.ContainsFunc(seen, func(t *tappv1.TApp) bool {
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
		return o.usual(t, v, id, b)
	case rule == rowNew && !o.hasRoom(t, v, id):
		return o.usual(t, v, id, b)
	case rule == rowNew:
		return append(o.usual(t, v, id, b), present...) // a step of the same plan may have taken the room
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
		r := o.recorded[instanceKey(t, id)]
		sure = sure && (told || r.sure && r.may[0] == had && r.version <= b.told[tapps])
		if !told {
			out = append(out, r.may...) // the status may tell of the pod before
		}
	}
	if !sure || slices.ContainsFunc(out, func(c content) bool { return !o.isStored(t, c, b) }) {
		out = append(out, o.usual(t, v, id, b)...)
	}
	return out
}

// isStored says whether a revision has a content for all that a process saw. Somebody may have
// deleted it, or the template was followed by the next one before it was stored. One that we
// deleted was forgotten too early, or it would not be asked for.
func (o *oracle) isStored(t *tappv1.TApp, has content, b *belief) bool {
	if slices.ContainsFunc(o.w.plan.Edits, func(e Edit) bool { return e.Kind == "resources" }) {
		return false // a content does not tell which one it was, nor its resources
	}
	stored := false
	for _, c := range o.w.Tables[revisions].History {
		r := c.Object().(*appsv1.ControllerRevision)
		switch {
		case controllerOf(r) != t.UID:
		case c.After == nil && causeOf(c) == nil:
			return false
		case c.Version <= b.told[revisions]:
			stored = stored || hasContent(r, has)
		}
	}
	return stored
}

// hasContent says whether a template of a revision has a content.
func hasContent(r *appsv1.ControllerRevision, has content) bool {
	var data struct{ Spec tappv1.TAppSpec }
	if err := json.Unmarshal(r.Data.Raw, &data); err != nil {
		return false
	}
	for _, other := range data.Spec.TemplatePool {
		if contentOfTemplate(&other) == has {
			return true
		}
	}
	return contentOfTemplate(&data.Spec.Template) == has
}

// usual are the contents that most serving instances of the same template run: more than one
// where they are as many. None serve: the present one. Where somebody overwrote a hash, or no
// revision has a content, it can be any of these.
func (o *oracle) usual(t *tappv1.TApp, v view, id string, b *belief) []content {
	counts, most, unsure := map[string]int{}, 0, false
	for _, other := range idsOf(t) {
		pod := v.pod(t, other)
		if other == id || wanted(t, other) != "" || templateName(t, other) != templateName(t, id) || !isServing(t, pod) {
			continue
		}
		has := string(contentOfPod(pod))
		counts[has]++
		most, unsure = max(most, counts[has]), unsure || o.w.tampered[pod.UID] || !o.isStored(t, content(has), b)
	}
	var out []content
	for _, has := range apiserver.SortedKeys(counts) {
		if unsure || counts[has] == most {
			out = append(out, content(has))
		}
	}
	if unsure || len(out) == 0 {
		out = append(out, contentOfTemplate(template(t, id)))
	}
	return out
}
