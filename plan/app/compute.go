package app

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appv1 "tkestack.io/tapp/crd/app/v1"
	"tkestack.io/tapp/plan/manifest"
	"tkestack.io/tapp/plan/message"
)

// Compute decides the next step for one App. It never mutates its input; equal
// inputs give equal plans.
func Compute(in Input) Plan {
	if in.App.DeletionTimestamp != nil {
		// The garbage collector deletes the children or sets them free, as whoever
		// deleted the App asked for.
		return Plan{Status: *in.App.Status.DeepCopy()}
	}
	app := in.App.DeepCopy()
	appv1.Default(app)
	c := &computation{in: in, app: app}

	deployments := make([]object, 0, len(in.Deployments))
	for _, d := range in.Deployments {
		deployments = append(deployments, object{Object: d, content: d, selector: d.Spec.Selector})
	}
	services := make([]object, 0, len(in.Services))
	for _, s := range in.Services {
		services = append(services, object{Object: s, content: s})
	}
	if have := c.child(Child{Deployment, app.Spec.DeploymentTemplate.Name}, deploymentManifest, deployments); have != nil {
		c.deployment = have.content.(*appsv1.Deployment)
	}
	if have := c.child(Child{Service, app.Spec.ServiceTemplate.Name}, serviceManifest, services); have != nil {
		c.service = have.content.(*corev1.Service)
	}
	return c.conclude()
}

// object is a child as observed.
type object struct {
	metav1.Object
	content  any
	selector *metav1.LabelSelector // of a Deployment; it cannot be changed
}

// computation is a plan in the making.
type computation struct {
	in  Input
	app *appv1.App // with defaults

	deployment *appsv1.Deployment // ours; nil: there is none
	service    *corev1.Service

	actions []Action
	stalls  []stall
	waits   []string // what is on its way
	notes   []string // what is worth a word when all is well
	taken   bool     // a child's name is
}

// stall is something that needs help.
type stall struct {
	reason, message string
	event           *Event
}

// child decides about one child and the ones that it was before, and returns it if
// there is one that is ours.
func (c *computation) child(wanted Child, render func(*appv1.App) map[string]any, objects []object) *object {
	slices.SortFunc(objects, func(a, b object) int { return strings.Compare(a.GetName(), b.GetName()) })
	var have *object
	upToDate := wanted.Name == ""
	if wanted.Name != "" {
		if i := slices.IndexFunc(objects, func(o object) bool { return o.GetName() == wanted.Name }); i >= 0 {
			have = &objects[i]
		}
		made := render(c.app)
		if have != nil && c.isOurs(*have) {
			keepSelector(made, have.selector)
		}
		have, upToDate = c.present(wanted, manifest.Stamp(made, appv1.AnnotationApplied), have)
	}
	for _, o := range objects {
		if o.GetName() != wanted.Name && c.isOurs(o) {
			c.leftOver(Child{wanted.Kind, o.GetName()}, o, upToDate)
		}
	}
	if why, refused := c.in.Refused[wanted]; refused {
		c.refused(wanted, why)
	}
	return have
}

// present decides about a child that is wanted. It returns the child if it is
// ours, and whether it is there to stay.
func (c *computation) present(wanted Child, made map[string]any, have *object) (ours *object, upToDate bool) {
	if have == nil {
		c.waits = append(c.waits, fmt.Sprintf("%s is being created", wanted))
		c.actions = append(c.actions, Action{Op: Create, Child: wanted, Manifest: made, Why: fmt.Sprintf("%s does not exist", wanted)})
		return nil, false
	}
	act := func(op Op, why string) {
		c.actions = append(c.actions, Action{Op: op, Child: wanted, Manifest: made, UID: have.GetUID(), Version: have.GetResourceVersion(), Why: why})
	}
	switch owner := metav1.GetControllerOf(have); {
	case owner == nil && c.isOrphan(*have) && have.GetDeletionTimestamp() == nil:
		c.waits = append(c.waits, fmt.Sprintf("%s is being adopted", wanted))
		why := fmt.Sprintf("%s was left behind by an App of this name", wanted)
		if patch := manifest.Correction(made, have.content, have.GetUID(), have.GetResourceVersion()); patch != nil && c.isRefused(wanted) {
			act(Correct, why)
			c.actions[len(c.actions)-1].Patch = patch
		} else {
			act(Adopt, why)
		}
		return nil, false
	case !c.isOurs(*have):
		c.foreign(wanted, owner)
		return nil, false
	case have.GetDeletionTimestamp() != nil:
		c.waits = append(c.waits, fmt.Sprintf("%s is being deleted, and will be created again", wanted))
		return have, false
	}
	differences := manifest.Differences(made, have.content)
	switch {
	case len(differences) == 0:
	case slices.Equal(differences, c.in.Overruled[wanted]):
		c.notes = append(c.notes, fmt.Sprintf("the cluster overrules %s: %s", wanted, message.Quote(strings.Join(differences, "; "))))
	default:
		c.waits = append(c.waits, fmt.Sprintf("%s is being changed", wanted))
		why := fmt.Sprintf("%s is not as the App says: %s", wanted, strings.Join(differences, "; "))
		if patch := manifest.Correction(made, have.content, have.GetUID(), have.GetResourceVersion()); patch != nil && (c.isRefused(wanted) || isApplied(made, *have)) {
			act(Correct, why)
			c.actions[len(c.actions)-1].Patch = patch
		} else {
			act(Apply, why)
		}
	}
	return have, true
}

// isRefused says whether the API server did not take the last action on a child.
func (c *computation) isRefused(child Child) bool {
	_, refused := c.in.Refused[child]
	return refused
}

// isApplied says whether the child was applied as the App is now. What the last apply of
// another version put there, the next one takes away.
func isApplied(made map[string]any, have object) bool {
	hash, _ := manifest.At(made, "metadata", "annotations", appv1.AnnotationApplied).(string)
	return have.GetAnnotations()[appv1.AnnotationApplied] == hash
}

// isOurs says whether this very App controls the object.
func (c *computation) isOurs(o object) bool {
	owner := metav1.GetControllerOf(o)
	return owner != nil && owner.UID == c.app.UID
}

// isOrphan says whether an App of this name made the object that nobody controls.
// A Deployment's selector has to be the App's, as it cannot be changed.
func (c *computation) isOrphan(o object) bool {
	if o.GetLabels()[appv1.LabelApp] != c.app.Name || len(o.GetAnnotations()[appv1.AnnotationApplied]) == 0 {
		return false
	}
	want := metav1.LabelSelector{MatchLabels: selectorOf(c.app)}
	return o.selector == nil || metav1.FormatLabelSelector(o.selector) == metav1.FormatLabelSelector(&want)
}

// foreign notes that a name is taken.
func (c *computation) foreign(wanted Child, owner *metav1.OwnerReference) {
	c.taken = true
	taken := fmt.Sprintf(ResourceExists, wanted.Name)
	whose := "nobody controls it"
	if owner != nil {
		whose = fmt.Sprintf("%s %q controls it", owner.Kind, owner.Name)
		if owner.Kind == appv1.Kind && owner.Name != c.app.Name {
			whose += "; if that App waits for a name that this one has, give one of them a third name first"
		}
	}
	c.stalls = append(c.stalls, stall{
		reason:  appv1.ReasonResourceExists,
		message: fmt.Sprintf("%s: there is a %s of this name, and %s", taken, wanted.Kind, whose),
		event:   &Event{corev1.EventTypeWarning, appv1.ReasonResourceExists, taken},
	})
}

// leftOver decides about a child that is ours and not wanted. It goes when the one
// that takes its place is there.
func (c *computation) leftOver(child Child, o object, upToDate bool) {
	switch {
	case o.GetDeletionTimestamp() != nil:
		c.waits = append(c.waits, fmt.Sprintf("%s is being deleted", child))
	case upToDate:
		c.waits = append(c.waits, fmt.Sprintf("%s is being deleted", child))
		c.actions = append(c.actions, Action{Op: Delete, Child: child, UID: o.GetUID(), Why: fmt.Sprintf("the App does not name %s any more", child)})
	default:
		c.waits = append(c.waits, fmt.Sprintf("%s stays until the one that takes its place is there", child))
	}
	if why, refused := c.in.Refused[child]; refused {
		c.refused(child, why)
	}
}

func (c *computation) refused(child Child, why string) {
	text := fmt.Sprintf("the cluster refuses %s: %s", child, message.Quote(why))
	c.stalls = append(c.stalls, stall{reason: ReasonRefused, message: text, event: &Event{corev1.EventTypeWarning, ReasonRefused, text}})
}
