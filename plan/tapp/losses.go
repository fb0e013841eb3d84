package tapp

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/kept"
	"tkestack.io/tapp/plan/template"
)

// followLosses decides which content pods get that are made anew, see plan/kept. Former
// templates are nil while they are not read.
func followLosses(s *spec, in *Input, former *kept.Templates, all []*instance) {
	d := &kept.Decider{Former: former, Foresees: s.foresees, Serving: map[string]map[string]int{},
		Selects: func(t *corev1.PodTemplateSpec) bool {
			return s.selector == nil || s.selector.Matches(labels.Set(t.Labels))
		}}
	lacks := func(i *instance) bool {
		return i.desired() && i.template != nil && (i.state == missing || i.state == ended)
	}
	if !slices.ContainsFunc(all, lacks) {
		return
	}
	for _, i := range all {
		if i.serving && template.IsOurs(i.hash) {
			if d.Serving[i.templateName] == nil {
				d.Serving[i.templateName] = map[string]int{}
			}
			d.Serving[i.templateName][i.hash]++
		}
	}
	stored, hold := kept.ReadContents(s.stored.Status.Contents), s.holds(all)
	for _, i := range all {
		if !lacks(i) {
			continue
		}
		had := i.had(stored)
		_, forUpdate := in.ForUpdate[i.name]
		if b := d.Decide(&kept.Instance{ID: i.name, Template: i.templateName, Present: i.template.Hashes.Template, Had: had.Hash,
			Cause: kept.CauseOf(i.pod, had, forUpdate, s.wasKilled(i)), Hold: hold(i)}); b != (kept.Birth{}) {
			i.birth = &b
		}
	}
}

// holds says of instances that do not serve what would keep each from its update if it did.
func (s *spec) holds(all []*instance) func(*instance) kept.Hold {
	desired := count(all, (*instance).desired)
	budgets, now := s.budgetsOf(desired), countServing(all)
	return func(i *instance) kept.Hold {
		b := budgets.Rolling
		if s.isForced(i) {
			b = budgets.Forced
		}
		switch {
		case s.tapp.Spec.Paused:
			return kept.Paused
		case !b.Valid || now.Serving < desired-b.MaxUnavailable:
			return kept.NoRoom
		}
		return kept.Free
	}
}

// wasKilled says whether the instance was stopped when the status was stored.
func (s *spec) wasKilled(i *instance) bool {
	return s.stored.Status.Statuses[i.name] == tappv1.InstanceKilled
}

// had is which content the instance has, or had last.
func (i *instance) had(stored kept.Contents) kept.Last {
	last := stored.Of(i.id)
	if i.state == missing || i.state == foreign {
		return last
	}
	return kept.Last{Hash: i.hash, Follows: i.state == ended && last.Follows && last.Hash == i.hash}
}

func (i *instance) isUnread() bool { return i.birth != nil && i.birth.Unread }

// contentTold is what is told of the content of the instance's next pod.
func (i *instance) contentTold() (reason, why string) {
	if i.birth == nil {
		return "", ""
	}
	return i.birth.Reason, i.birth.Why
}

// nextTemplate is what the next pod of the instance is made from.
func (s *spec) nextTemplate(i *instance) *podTemplate {
	if i.birth == nil || i.birth.Template == nil {
		return i.template
	}
	was := i.birth.Template
	t := s.former[was.Hashes.Template]
	if t == nil {
		t = &podTemplate{Spec: was.Spec, Hashes: was.Hashes, Record: template.MarshalRecord(was.Spec)}
		s.former[was.Hashes.Template] = t
	}
	return t
}

// stillStarts says whether the pod was made as the instance was, or as usual, and has its
// chance to become Ready: to update it needs room in the budget as if it served.
func (s *spec) stillStarts(c *clock, i *instance) bool {
	if i.updated || i.isDrained() || !kept.IsKept(i.pod) {
		return false
	}
	left, is := kept.StillStarts(i.pod, c.now, seconds(*s.tapp.Spec.ProgressDeadlineSeconds))
	if is {
		c.waitFor(max(left, time.Second))
	}
	return is
}

// contents is which content each instance had last, while one that is to run has another
// one than its template. It is a hint: without it an instance comes as usual.
func (m *summary) contents() map[string]string {
	stored := kept.ReadContents(m.stored.Status.Contents)
	if !slices.ContainsFunc(m.instances, func(i *instance) bool {
		had := i.had(stored).Hash
		return i.desired() && (i.template == nil || had != i.template.Hashes.Template) && template.IsOurs(had)
	}) {
		return nil
	}
	var w kept.Writer
	for _, i := range m.instances {
		had, own := i.had(stored), i.pod
		if i.state == foreign {
			own = nil
		}
		if i.desired() && i.template != nil {
			had = kept.LastOf(own, had, i.template.Hashes.Template, m.wasKilled(i))
		}
		if i.inRange && template.IsOurs(had.Hash) {
			w.Add(i.id, had)
		}
	}
	return w.Stored()
}

// inUse are the hashes that instances or status.contents name, and that no present template
// has: what a pod may have to come back with.
func (s *spec) inUse(all []*instance) map[string]bool {
	out := map[string]bool{}
	for _, i := range all {
		if i.desired() && template.IsOurs(i.hash) {
			out[i.hash] = true
		}
	}
	for hash := range s.stored.Status.Contents {
		out[hash] = true
	}
	for _, hash := range s.hashes() {
		delete(out, hash)
	}
	return out
}

// formerTemplates are those of revisions that were read; nil: they were not.
func formerTemplates(read bool, own []*appsv1.ControllerRevision) *kept.Templates {
	if !read {
		return nil
	}
	return kept.ReadTemplates(own)
}
