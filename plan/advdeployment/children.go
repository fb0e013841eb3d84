package advdeployment

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/manifest"
	"tkestack.io/tapp/plan/message"
	"tkestack.io/tapp/plan/podset"
)

// Children that a spec asks for, for whoever watches their names. Of a spec that cannot be
// carried out there are none.
func Children(d *v1beta1.AdvDeployment) []Child {
	units, _, _ := podset.Placed(d)
	var out []Child
	if name := serviceOf(d, units); name != "" {
		out = append(out, Child{Service, name})
	}
	for i := range units {
		if kind, known := kindOf(units[i].Content.DeployType); known {
			out = append(out, Child{kind, units[i].PodSet.Name})
		}
	}
	return out
}

// kindOf the child of a deploy type. False: it has none.
func kindOf(deployType string) (Kind, bool) {
	switch deployType {
	case v1beta1.DeployInPlaceSet:
		return TApp, true
	case v1beta1.DeployStatefulSet:
		return StatefulSet, true
	case v1beta1.DeployDeployment:
		return Deployment, true
	}
	return "", false
}

// serviceOf the application; empty: it has none. A chart has its own.
func serviceOf(d *v1beta1.AdvDeployment, units []podset.Unit) string {
	deployType, _ := v1beta1.DeployTypeOf(&d.Spec.PodSpec)
	switch {
	case d.Spec.ServiceName == "" || deployType == v1beta1.DeployHelm || len(units) == 0:
		return ""
	case strings.Contains(d.Spec.ServiceName, "."):
		return d.Name + "-svc"
	}
	return d.Spec.ServiceName
}

// converge decides about all children: the Service, those of podSets, and those that are left
// over.
func (c *computation) converge(units []podset.Unit) {
	asked := map[Child]bool{}
	service := serviceOf(c.d, units)
	if service != "" {
		child := Child{Service, service}
		asked[child] = true
		c.present(child, c.serviceManifest(service))
	}
	for i := range units {
		u := unit{Unit: units[i], placed: &c.d.Spec.Topology.PodSets[i]}
		if c.rolling != nil {
			u.verdict = c.rolling.verdicts[u.PodSet.Name]
		}
		c.converged(&u, service, asked)
		c.units = append(c.units, u)
	}
	atRest := true
	for i := range c.units {
		c.progress(&c.units[i])
		atRest = atRest && c.units[i].isAtRest()
	}
	atRest = atRest && len(c.stalls) == 0
	for _, child := range c.ours() {
		if !asked[child] {
			c.leaves(child, atRest)
		}
	}
	c.leaveReleases(asked, atRest)
	c.goesOn()
}

// converged decides about the child of one podSet.
func (c *computation) converged(u *unit, service string, asked map[Child]bool) {
	if u.Content.DeployType == v1beta1.DeployHelm {
		asked[Child{Release, u.PodSet.Name}] = true
		c.release(u)
		return
	}
	kind, known := kindOf(u.Content.DeployType)
	if !known {
		c.notYet("spec.podSpec.deployType", fmt.Sprintf("%s: not yet supported", u.Content.DeployType))
		return
	}
	u.child = Child{kind, u.PodSet.Name}
	asked[u.child] = true
	if c.rolling != nil && c.rolling.frozen[u.PodSet.Name] {
		u.have, u.upToDate = c.own(u.child), true
	} else {
		made := c.workloadManifest(u, service)
		if u.have = c.own(u.child); u.have != nil {
			u.numbers = c.numbersOf(u)
		}
		if ch := c.changeOf(u); ch != nil {
			ch.apply(u, made)
		}
		u.have, u.upToDate = c.present(u.child, made)
		if why, refused := c.in.Refused[u.child]; refused {
			u.hindrance = stall{reason: v1beta1.ReasonRefused, message: refusal(u.child, why)}
		}
		if other := c.children[u.child]; u.have == nil && other != nil && !c.isOrphan(other) {
			u.hindrance = stall{reason: v1beta1.ReasonProgressing, message: "its name is taken: " + whose(u.child, metav1.GetControllerOf(other))}
		}
	}
	u.numbers = c.numbersOf(u)
}

func (c *computation) notYet(field, what string) {
	text := field + ": " + what
	if !slices.ContainsFunc(c.stalls, func(s stall) bool { return s.message == text }) {
		c.stalls = append(c.stalls, stall{reason: v1beta1.ReasonNotYet, message: text})
	}
}

// own is a child if it is ours.
func (c *computation) own(child Child) *unstructured.Unstructured {
	if o := c.children[child]; o != nil && c.isOurs(o) {
		return o
	}
	return nil
}

// present decides about a child that is asked for. It returns the child if it is ours,
// and whether it is as it is to be.
func (c *computation) present(child Child, made map[string]any) (ours *unstructured.Unstructured, upToDate bool) {
	manifest.Stamp(made, v1beta1.AnnotationApplied)
	have := c.children[child]
	if why, refused := c.in.Refused[child]; refused {
		c.refused(child, why)
	}
	if have == nil {
		c.waits = append(c.waits, fmt.Sprintf("%s is being created", child))
		c.actions = append(c.actions, Action{Op: Create, Child: child, Manifest: made, Why: fmt.Sprintf("%s does not exist", child)})
		return nil, false
	}
	act := func(op Op, why string) {
		c.actions = append(c.actions, Action{Op: op, Child: child, Manifest: made, UID: have.GetUID(), Version: have.GetResourceVersion(), Observed: have, Why: why})
	}
	switch owner := metav1.GetControllerOf(have); {
	case owner == nil && c.isOrphan(have) && have.GetDeletionTimestamp() == nil:
		c.waits = append(c.waits, fmt.Sprintf("%s is being adopted", child))
		act(Adopt, fmt.Sprintf("%s was left behind by an AdvDeployment of this name", child))
		return nil, false
	case !c.isOurs(have):
		c.foreign(child, owner)
		return nil, false
	case have.GetDeletionTimestamp() != nil:
		c.waits = append(c.waits, fmt.Sprintf("%s is being deleted, and will be created again", child))
		return have, false
	}
	differences := manifest.Differences(made, have)
	switch {
	case len(differences) == 0:
		return have, true
	case slices.Equal(differences, c.in.Overruled[child]):
		c.notes = append(c.notes, fmt.Sprintf("the cluster overrules %s: %s", child, message.Quote(strings.Join(differences, "; "))))
		return have, true
	}
	c.waits = append(c.waits, fmt.Sprintf("%s is being changed", child))
	why := fmt.Sprintf("%s is not as the AdvDeployment says: %s", child, strings.Join(differences, "; "))
	_, refused := c.in.Refused[child]
	if patch := manifest.Correction(made, have, have.GetUID(), have.GetResourceVersion()); patch != nil && (refused || isApplied(made, have)) {
		act(Correct, why)
		c.actions[len(c.actions)-1].Patch = patch
	} else {
		act(Apply, why)
	}
	return have, false
}

// isApplied says whether the child was applied as the AdvDeployment is now.
func isApplied(made map[string]any, have metav1.Object) bool {
	hash, _ := manifest.At(made, "metadata", "annotations", v1beta1.AnnotationApplied).(string)
	return have.GetAnnotations()[v1beta1.AnnotationApplied] == hash
}

// isOrphan says whether an AdvDeployment of this name made the object that nobody
// controls.
func (c *computation) isOrphan(o metav1.Object) bool {
	return o.GetLabels()[v1beta1.LabelAdvDeployment] == c.d.Name && o.GetAnnotations()[v1beta1.AnnotationApplied] != ""
}

// foreign notes that a name is taken.
func (c *computation) foreign(child Child, owner *metav1.OwnerReference) {
	c.taken = true
	taken := fmt.Sprintf("Resource %q already exists and is not managed by AdvDeployment", child.Name)
	c.stalls = append(c.stalls, stall{
		reason:  v1beta1.ReasonResourceExists,
		message: fmt.Sprintf("%s: %s", taken, whose(child, owner)),
		event:   &Event{corev1.EventTypeWarning, v1beta1.ReasonResourceExists, taken},
	})
}

// whose the object is that has the name of a child.
func whose(child Child, owner *metav1.OwnerReference) string {
	if owner == nil {
		return fmt.Sprintf("there is a %s of this name, and nobody controls it", child.Kind)
	}
	return fmt.Sprintf("there is a %s of this name, and %s %q controls it", child.Kind, owner.Kind, owner.Name)
}

// leaves decides about a child that is ours and not asked for. It is deleted when all others
// are at rest, so that a podSet that was removed by mistake does not lose its instances at once.
func (c *computation) leaves(child Child, atRest bool) {
	o := c.children[child]
	c.leftOver = append(c.leftOver, child)
	switch {
	case o.GetDeletionTimestamp() != nil:
		c.waits = append(c.waits, fmt.Sprintf("%s is being deleted", child))
	case atRest:
		c.waits = append(c.waits, fmt.Sprintf("%s is being deleted", child))
		c.remove(child, o, fmt.Sprintf("nothing asks for %s any more", child))
	default:
		c.waits = append(c.waits, fmt.Sprintf("%s stays until all others are done", child))
	}
	if why, refused := c.in.Refused[child]; refused {
		c.refused(child, why)
	}
}

func refusal(child Child, why string) string {
	return fmt.Sprintf("the cluster refuses %s: %s", child, message.Quote(why))
}

func (c *computation) refused(child Child, why string) {
	text := refusal(child, why)
	c.stalls = append(c.stalls, stall{reason: v1beta1.ReasonRefused, message: text, event: &Event{corev1.EventTypeWarning, v1beta1.ReasonRefused, text}})
}
