package tapp

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/inplace"
	"tkestack.io/tapp/plan/template"
)

// intent is what becomes of an instance. It is decided once, from what was observed:
// Compute carries it out when its turn has come, and Preview tells it ahead.
type intent struct {
	kind   kind
	reason string
	// text is the sentence, where it needs no more than the kind; see why.
	text string
}

// kind of intent.
type kind int

const (
	undecided kind = iota

	keep      // nothing is to be done
	create    // the instance gets a pod
	scaleDown // the pod goes, its id is out of range
	stop      // the pod goes, spec.statuses stops the instance
	replace   // the pod ended, and the next one follows

	stamp            // the pod lacks only our hash
	relabel          // its metadata changes
	updateInPlace    // its images change, and metadata with them
	resize           // its resources change while it runs
	resizeAndRestart // its resources change, and containers restart for it
	awaitResize      // its node is about to change its resources
	recreate         // it is deleted, and created anew
	hold             // it would have to be recreated, and the policy forbids that
)

// disrupts says whether the intent takes an available instance away, and so spends
// the budget.
func (k kind) disrupts() bool { return k == updateInPlace || k == recreate || k == resizeAndRestart }

const (
	reasonResources = "ResourcesChanged"
	reasonTemplate  = "TemplateChanged"
	reasonStopped   = "StoppedByUpdate"
)

// intentOf decides what becomes of the instance.
func (s *spec) intentOf(i *instance) *intent {
	if i.next.kind == undecided {
		i.next = s.decide(i)
	}
	return &i.next
}

func (s *spec) decide(i *instance) intent {
	switch {
	case i.state == missing && i.desired() && i.template != nil:
		return intent{create, "PodMissing", "the instance has no pod"}
	case i.state != alive && i.state != ended:
		return intent{kind: keep}
	case !i.inRange:
		return intent{scaleDown, "ScaledDown", s.ids.Why()}
	case i.stopped:
		return intent{stop, "Killed", "spec.statuses says Killed"}
	case i.template == nil || i.completed:
		return intent{kind: keep}
	case i.state == ended:
		return endIntent(i.pod)
	case isRestartRequested(i.pod):
		return intent{recreate, "RestartRequested", "a restart of the instance was requested"}
	case s.hasObsoleteNodeTie(i):
		return intent{recreate, "NeverMigrateOff", "the pod waits for a node to which spec.neverMigrate tied it, and which it need not wait for any more"}
	}
	if why := inplace.StoppedByUpdate(i.pod); why != "" {
		// Whatever the policy: the container would never run again.
		return intent{recreate, reasonStopped, why}
	}
	return s.decideUpdate(i)
}

// decideUpdate decides how a pod that is alive gets to its template.
func (s *spec) decideUpdate(i *instance) intent {
	n := intent{kind: s.updateOf(i)}
	if n.kind == updateInPlace {
		// A pod that lacks a container of its template cannot be patched into it. That
		// has to be known before it is drained for nothing.
		if err := inplace.CheckContainers(i.pod, i.template.Spec); err != nil {
			n.kind, n.text = recreate, err.Error()
		}
	}
	if n.kind == relabel && !i.updated || n.kind == updateInPlace {
		if reason, why := s.restarts.Asks(s.recordOf(i), i.template.Spec); reason != "" {
			return intent{recreate, reason, why}
		}
	}
	if n.kind == recreate {
		n.reason = reasonTemplate
		if s.tapp.Spec.UpdateStrategy.InPlaceUpdate.Policy == tappv1.InPlaceOnly {
			n.kind, n.reason = hold, ReasonInPlaceOnly
		}
	}
	return n
}

// why is the sentence that actions, reasons and the preview share. Resources are the
// changes of resources that an update in place brings.
func (s *spec) why(i *instance) string {
	n := s.intentOf(i)
	if n.kind == create || n.kind == replace {
		_, told := i.contentTold()
		return n.text + told
	}
	if n.kind == keep || n.text != "" && n.kind != hold {
		return n.text
	}
	switch n.kind {
	case stamp:
		return "the pod is what its template makes, and lacks only the template's hash"
	case relabel:
		switch resources := s.resourcesOf(i); {
		case i.updated:
			return "the pod lost labels of its instance"
		case len(resources) > 0:
			return "the resources follow: " + strings.Join(resources, ", ")
		}
		return "only labels and annotations of the template changed"
	case updateInPlace:
		r := s.recordOf(i)
		why := strings.Join(append(r.ImageChanges(i.pod, i.template.Spec), s.resourcesOf(i)...), ", ")
		if container := r.KeepsPolicy(i.pod, i.template.Spec); container != "" {
			why += fmt.Sprintf("; container %s keeps imagePullPolicy IfNotPresent, with which its node may run an older image of the tag latest: set imagePullPolicy in template %q to have a new pod pull it", container, i.templateName)
		}
		return why
	case awaitResize:
		_, why := inplace.ResizeUnderWay(i.pod)
		return why
	case resize, resizeAndRestart:
		return strings.Join(s.resizeOf(i).Changes, ", ")
	case hold:
		return cmp.Or(n.text, s.whyRecreate(i)) + "; spec.updateStrategy.inPlaceUpdate.policy is InPlaceOnly"
	}
	return s.whyRecreate(i)
}

// updateOf says how the pod gets to its template. Hashes of our own scheme are
// compared as they are; without one the fields decide.
func (s *spec) updateOf(i *instance) kind {
	pod, want, policy := i.pod, i.template, s.tapp.Spec.UpdateStrategy.InPlaceUpdate.Policy
	switch {
	case i.updated:
		if pod.Labels[tappv1.LabelInstanceID] != i.name || pod.Labels[tappv1.LabelUniqHash] != want.Hashes.Uniq {
			return relabel
		}
		return keep
	case i.hash == want.Hashes.Template:
		return s.resizeToEnd(i)
	case i.isForeign():
		switch diff := template.Compare(pod, s.podFor(i)); {
		case diff.None:
			return stamp
		case diff.ImagesOnly && !s.changesImages(i):
			return relabel
		case !diff.ImagesOnly:
			return recreate
		}
	case pod.Labels[tappv1.LabelUniqHash] != want.Hashes.Uniq:
		return s.resizeToBegin(i)
	case !s.changesImages(i) && policy != tappv1.ReCreate:
		return relabel
	}
	if policy == tappv1.ReCreate {
		return recreate
	}
	return updateInPlace
}

// surelyDisrupts is true where the update must be a disruption, and costs less than
// updateOf: to find for each pod, plan after plan until it is its turn, what its update
// would be is much of the cost of a plan, and for 10,000 pods of tkestack/tapp, which are
// compared field by field, most of it. False says nothing.
func (s *spec) surelyDisrupts(i *instance) bool {
	u := &s.tapp.Spec.UpdateStrategy.InPlaceUpdate
	return i.serving && i.template != nil && !s.tapp.Spec.Paused && u.Policy == tappv1.InPlaceIfPossible &&
		i.hash != i.template.Hashes.Template && s.changesImages(i)
}

// changesImages says whether the template changes an image of the pod.
func (s *spec) changesImages(i *instance) bool {
	return s.recordOf(i).ChangesImages(i.pod, i.template.Spec)
}

// isForeign says whether the pod's hash was written by another program than
// TApp: tkestack/tapp, or the owner of a pod that was adopted.
func (i *instance) isForeign() bool { return !template.IsOurs(i.hash) }

// whyRecreate says why a pod cannot get to its template in place.
func (s *spec) whyRecreate(i *instance) string {
	if s.tapp.Spec.UpdateStrategy.InPlaceUpdate.Policy == tappv1.ReCreate {
		return fmt.Sprintf("template %q changed, and spec.updateStrategy.inPlaceUpdate.policy is ReCreate", i.templateName)
	}
	if why := s.whyNotResized(i); why != "" {
		return fmt.Sprintf("template %q changed: %s", i.templateName, why)
	}
	if why, known := i.template.recreations[i.hash]; known {
		return why
	}
	why := fmt.Sprintf("template %q changed in more than images, labels and annotations", i.templateName)
	// What left the template cannot be told from what others added to the pod.
	if diff := template.Compare(i.pod, s.podFor(i)); !diff.ImagesOnly && !diff.None {
		why = fmt.Sprintf("template %q changed: %s", i.templateName, strings.Join(diff.Fields, ", "))
	}
	if !i.isForeign() {
		if i.template.recreations == nil {
			i.template.recreations = map[string]string{}
		}
		i.template.recreations[i.hash] = why
	}
	return why
}

// isRestartRequested says whether somebody asked for another pod in the place of
// this one. It is asked of the pod and not of the spec, so that it is done when
// the pod is gone, and nothing has to be taken back. To the rollout it is an update;
// InPlaceOnly does not hold it, since that is about what a new template may do.
func isRestartRequested(pod *corev1.Pod) bool { return pod.Annotations[tappv1.AnnotationRestart] != "" }

// hasObsoleteNodeTie says whether the pod has no node because neverMigrate, which is off
// by now, tied it to one.
func (s *spec) hasObsoleteNodeTie(i *instance) bool {
	return !s.tapp.Spec.NeverMigrate && i.pod.Spec.NodeName == "" &&
		template.RequiresNode(&i.pod.Spec) && !template.RequiresNode(&i.template.Spec.Spec)
}
