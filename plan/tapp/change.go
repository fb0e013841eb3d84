package tapp

import (
	"fmt"
	"strings"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/template"
)

// change is how a pod gets to its template.
type change int

const (
	nothing  change = iota
	stamp           // it lacks only our hash
	relabel         // its metadata changes
	inPlace         // its images change, and metadata with them
	recreate        // it is deleted, and created anew

	resize           // its resources change while it runs
	resizeAndRestart // its resources change, and containers restart for it
	resizes          // its node is about to change its resources
)

// interrupts says whether the change takes an available instance away, and so
// spends the budget.
func (c change) interrupts() bool { return c == inPlace || c == recreate || c == resizeAndRestart }

// changeOf says how the pod gets to its template. Hashes of our own scheme are
// compared as they are; without one the fields decide.
func (d *decision) changeOf(i *instance) change {
	pod, want := i.pod, i.template
	switch {
	case want == nil:
		return nothing
	case isRestartRequested(pod), d.isTiedInVain(i):
		return recreate
	case i.current:
		if pod.Labels[tappv1.LabelInstanceID] != i.id || pod.Labels[tappv1.LabelUniqHash] != want.Hashes.Uniq {
			return relabel
		}
		return nothing
	case pod.Labels[tappv1.LabelTemplateHash] == want.Hashes.Template:
		return d.changeOfResources(i)
	case d.isForeignHash(i):
		switch diff := template.Compare(pod, d.podFor(i)); {
		case diff.None:
			return stamp
		case diff.ImagesOnly && !template.ChangesImage(pod, want.Spec, d.sameImage):
			return relabel
		case !diff.ImagesOnly:
			return recreate
		}
	case pod.Labels[tappv1.LabelUniqHash] != want.Hashes.Uniq:
		return d.changeToResize(i)
	case !template.ChangesImage(pod, want.Spec, func(a, b string) bool { return a == b }) &&
		d.tapp.Spec.UpdateStrategy.InPlaceUpdate.Policy != tappv1.ReCreate:
		return relabel
	}
	if d.tapp.Spec.UpdateStrategy.InPlaceUpdate.Policy == tappv1.ReCreate {
		return recreate
	}
	return inPlace
}

// isForeignHash says whether the pod's hash was written by another program than
// TApp: tkestack/tapp, or the owner of a pod that was adopted.
func (d *decision) isForeignHash(i *instance) bool {
	return !template.IsOurs(i.pod.Labels[tappv1.LabelTemplateHash])
}

func (d *decision) whyRecreate(i *instance) string {
	if _, why := d.remade(i); why != "" {
		return why
	}
	if d.tapp.Spec.UpdateStrategy.InPlaceUpdate.Policy == tappv1.ReCreate {
		return fmt.Sprintf("template %q changed, and spec.updateStrategy.inPlaceUpdate.policy is ReCreate", i.templateName)
	}
	if why := d.whyNotResized(i); why != "" {
		return fmt.Sprintf("template %q changed: %s", i.templateName, why)
	}
	// What left the template cannot be told from what others added to the pod.
	if diff := template.Compare(i.pod, d.podFor(i)); !diff.ImagesOnly && !diff.None {
		return fmt.Sprintf("template %q changed: %s", i.templateName, strings.Join(diff.Fields, ", "))
	}
	return fmt.Sprintf("template %q changed in more than images, labels and annotations", i.templateName)
}

// sameImage asks about each pair of references only once: parsing them takes
// longer than all else that a plan does with a pod.
func (d *decision) sameImage(a, b string) bool {
	if a == b {
		return true
	}
	pair := [2]string{a, b}
	same, known := d.images[pair]
	if !known {
		same = template.SameImage(a, b)
		if d.images == nil {
			d.images = map[[2]string]bool{}
		}
		d.images[pair] = same
	}
	return same
}
