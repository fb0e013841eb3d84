// Package claim tells whose a PersistentVolumeClaim is. The name proves nothing:
// template data of workload eu-db and template data-eu of workload db make the same one.
//
// First match decides about a claim that has the name of one of our instances:
//
//	the claim has                                           | it is    | a policy may delete it
//	--------------------------------------------------------+----------+-----------------------
//	another controller                                      | another's| no
//	a mark with another kind or name                        | another's| no
//	a mark with our UID                                     | ours     | unless it was found
//	a mark with our name and another UID: of a namesake     | ours     | when it has our mark
//	no mark, but labels that our claims get                 | ours     | when it has our mark
//	no mark, and labels by which a workload that makes this |          |
//	  very name selects, and ours does not                  | another's| no
//	none of these                                           | ours     | if we control it; else it counts as found
//
// What is ours gets our mark once. A found claim is used, and stays: somebody made it by
// hand, or restored it without labels, and no policy of a workload is about it.
package claim

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/ids"
)

// Workload makes claims with the names <template>-<workload>-<id>.
type Workload struct {
	Kind, Name string
	UID        types.UID
	// Templates are the names of its claim templates.
	Templates []string
	// Selector of its pods; nil: it selects nothing.
	Selector labels.Selector
	// Labels that its claims get, beside those of the claim template and the instance.
	Labels map[string]string
	// Tracking is the label by which Argo CD tracks objects, see Spare; empty: nobody does, or
	// the claims have an owner.
	Tracking string
}

// OfTApp is what is to be known of a TApp, which has its defaults.
func OfTApp(t *tappv1.TApp) Workload {
	return workload(tappv1.Kind, &t.ObjectMeta, t.Spec.VolumeClaimTemplates, t.Spec.Selector)
}

// Maker is OfTApp of one whose claims Argo CD tracks by a label, see Spare. Those that go with the
// TApp have it as their owner.
func Maker(t *tappv1.TApp, tracking string) Workload {
	w := OfTApp(t)
	if t.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted != tappv1.DeletePersistentVolumeClaim {
		w.Tracking = tracking
	}
	return w
}

// OfStatefulSet is what is to be known of a StatefulSet.
func OfStatefulSet(s *appsv1.StatefulSet) Workload {
	return workload("StatefulSet", &s.ObjectMeta, s.Spec.VolumeClaimTemplates, s.Spec.Selector)
}

func workload(kind string, m *metav1.ObjectMeta, templates []corev1.PersistentVolumeClaim, selector *metav1.LabelSelector) Workload {
	w := Workload{Kind: kind, Name: m.Name, UID: m.UID}
	for i := range templates {
		w.Templates = append(w.Templates, templates[i].Name)
	}
	if selector == nil {
		return w
	}
	w.Labels = selector.MatchLabels
	if s, err := metav1.LabelSelectorAsSelector(selector); err == nil && !s.Empty() {
		w.Selector = s
	}
	return w
}

// Mark is the value of the annotation by which a claim is the workload's.
func (w *Workload) Mark() string { return w.Kind + "/" + w.Name + "/" + string(w.UID) }

func (w *Workload) words() string { return w.Kind + " " + w.Name }

// makes says whether a claim has the name of one of the workload's.
func (w *Workload) makes(name string) bool {
	return slices.ContainsFunc(w.Templates, func(template string) bool {
		id, ok := strings.CutPrefix(name, template+"-"+w.Name+"-")
		_, canonical := ids.Parse(id)
		return ok && canonical
	})
}

// gives says whether a claim has the labels that the workload gives to those that it makes.
func (w *Workload) gives(c *corev1.PersistentVolumeClaim, id string) bool {
	if has, labelled := c.Labels[tappv1.LabelInstanceID]; labelled && has != id {
		return false
	}
	for key, value := range w.Labels {
		if c.Labels[key] != value {
			return false
		}
	}
	return len(w.Labels) > 0
}

// selects says whether the labels of a claim are those of the workload's pods. Without a
// label other than the instance's, a claim says nothing: a selector may ask for absence.
func (w *Workload) selects(c *corev1.PersistentVolumeClaim) bool {
	return w.Selector != nil && saysMore(c) && w.Selector.Matches(labels.Set(c.Labels))
}

func saysMore(c *corev1.PersistentVolumeClaim) bool {
	_, labelled := c.Labels[tappv1.LabelInstanceID]
	return len(c.Labels) > 1 || len(c.Labels) == 1 && !labelled
}

// Use of a claim.
type Use int

// The uses.
const (
	// Unclear: workloads that may make a claim of this name have not been read.
	Unclear Use = iota
	// Taken: it is another's.
	Taken
	// Ours: instances use it.
	Ours
)

// Verdict about a claim.
type Verdict struct {
	Use Use
	// Why it is another's, in words that name both; empty: it is not.
	Why string
	// Marked: it has our mark.
	Marked bool
	// Proven: a policy may delete it.
	Proven bool
	// Found: it was there before us, without our labels: no policy is about it.
	Found bool
	// Unread are the names of workloads to read, where the use is unclear.
	Unread []string
}

// Judge tells whose a claim is that has the name of the workload's instance id. The others
// are workloads of the namespace by name; a name without an entry has not been read.
func (w *Workload) Judge(c *corev1.PersistentVolumeClaim, id string, others map[string][]Workload) Verdict {
	owner := metav1.GetControllerOfNoCopy(c)
	if owner != nil && owner.UID != w.UID {
		return Verdict{Use: Taken, Why: fmt.Sprintf("there is a claim %s that %s %s controls (UID %s), and not %s (UID %s)",
			c.Name, owner.Kind, owner.Name, owner.UID, w.words(), w.UID)}
	}
	v := Verdict{Use: Ours, Proven: owner != nil, Found: c.Annotations[tappv1.AnnotationClaimFound] != "" && owner == nil}
	kind, name, uid := readMark(c)
	switch {
	case kind != "" && (kind != w.Kind || name != w.Name):
		return Verdict{Use: Taken, Why: fmt.Sprintf("there is a claim %s of %s %s, and not of %s, as its annotation %s says",
			c.Name, kind, name, w.words(), tappv1.AnnotationClaimOf)}
	case kind != "" && uid == w.UID:
		v.Marked, v.Proven = true, v.Proven || !v.Found
		return v
	case kind != "", w.gives(c, id):
		return v
	}
	if saysMore(c) && (w.Selector == nil || !w.Selector.Matches(labels.Set(c.Labels))) {
		if other, unread := w.makerOf(c, others); other != nil {
			return Verdict{Use: Taken, Why: fmt.Sprintf("there is a claim %s with the labels of %s, and not of %s, and both make that name",
				c.Name, other.words(), w.words())}
		} else if len(unread) > 0 {
			return Verdict{Use: Unclear, Unread: unread}
		}
	}
	v.Found = owner == nil
	return v
}

// makerOf finds another workload that makes a claim of this very name, and selects it; else
// the names of the workloads that may, and have not been read.
func (w *Workload) makerOf(c *corev1.PersistentVolumeClaim, others map[string][]Workload) (maker *Workload, unread []string) {
	for _, name := range makers(c.Name) {
		known, read := others[name]
		if !read {
			unread = append(unread, name)
		}
		for i := range known {
			if known[i].UID != w.UID && known[i].makes(c.Name) && known[i].selects(c) {
				return &known[i], nil
			}
		}
	}
	return nil, unread
}

// makers are the names of the workloads that can make a claim of this name: what follows a
// dash, and comes before the id.
func makers(claim string) (names []string) {
	rest, at := claim, strings.LastIndexByte(claim, '-')
	if at < 0 {
		return nil
	}
	for rest = rest[:at]; ; {
		_, after, ok := strings.Cut(rest, "-")
		if !ok {
			return names
		}
		if rest = after; rest != "" {
			names = append(names, rest)
		}
	}
}

// readMark of a claim; one that is no mark proves nothing, and counts as none.
func readMark(c *corev1.PersistentVolumeClaim) (kind, name string, uid types.UID) {
	parts := strings.Split(c.Annotations[tappv1.AnnotationClaimOf], "/")
	if len(parts) != 3 || parts[0] == "" || parts[1] == "" {
		return "", "", ""
	}
	return parts[0], parts[1], types.UID(parts[2])
}

// Collision is a pair of claim templates of two workloads that make claims of the same names.
type Collision struct {
	// Template and Other are their names, and Stem the claims' names without the instance id.
	Template, Other, Stem string
}

// Collisions are those with another workload of the namespace, in the order of our templates.
func (w *Workload) Collisions(other *Workload) (out []Collision) {
	if w.Name == other.Name {
		return nil
	}
	for _, template := range w.Templates {
		stem := template + "-" + w.Name
		if theirs, ok := strings.CutSuffix(stem, "-"+other.Name); ok && slices.Contains(other.Templates, theirs) {
			out = append(out, Collision{template, theirs, stem})
		}
	}
	return out
}
