// Package termination is about claims that are being deleted while a pod mounts them.
// Kubernetes keeps such a claim for as long as the pod is there, running or ended, and no
// longer. Nobody can take the deletion back, so that the pod is what keeps the data.
package termination

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/ids"
)

// Reason of the instances that wait, of the condition Stalled, and of the event.
const Reason = "ClaimTerminating"

// The reasons of the condition ClaimTerminating.
const (
	GoesWithItsPod  = "GoesWithItsPod"
	NoneTerminating = "NoneTerminating"
)

// Claim that is being deleted.
type Claim struct {
	// Instance whose pod mounts it.
	Instance int
	Name     string
	UID      types.UID
	// Volume that it is bound to; empty: none.
	Volume string
}

// Of a claim as it was observed.
func Of(instance int, c *corev1.PersistentVolumeClaim) Claim {
	return Claim{Instance: instance, Name: c.Name, UID: c.UID, Volume: c.Spec.VolumeName}
}

// Claims by the instances whose pods mount them.
type Claims map[int][]Claim

// Add a claim. The order does not matter.
func (l *Claims) Add(c Claim) {
	if *l == nil {
		*l = Claims{}
	}
	of := append((*l)[c.Instance], c)
	slices.SortFunc(of, func(a, b Claim) int { return strings.Compare(a.Name, b.Name) })
	(*l)[c.Instance] = of
}

// Of an instance.
func (l Claims) Of(instance int) []Claim { return l[instance] }

// All of them, in ascending order of the instances.
func (l Claims) All() (out []Claim) {
	for _, id := range slices.Sorted(maps.Keys(l)) {
		out = append(out, l[id]...)
	}
	return out
}

// String tells of the claim, and how to save its volume.
func (c Claim) String() string {
	text := c.head() + " is being deleted, and goes with its pod"
	if c.Volume == "" {
		return text
	}
	return text + fmt.Sprintf(": to save its volume, set persistentVolumeReclaimPolicy of PersistentVolume %s to Retain", c.Volume)
}

func (c Claim) head() string {
	return fmt.Sprintf("claim %s (UID %s) of instance %d", c.Name, c.UID, c.Instance)
}

// toldClaim is how Claim.String begins.
var toldClaim = regexp.MustCompile(`claim (\S+) \(UID (\S+)\) of instance (\d+) is being deleted`)

// Told are the claims that the stored condition tells of, for who may not read claims. Of
// many it tells the first ones.
func Told(conditions []metav1.Condition) (out []Claim) {
	c := meta.FindStatusCondition(conditions, tappv1.ConditionClaimTerminating)
	if c == nil || c.Status != metav1.ConditionTrue {
		return nil
	}
	for _, m := range toldClaim.FindAllStringSubmatch(c.Message, -1) {
		if id, ok := ids.Parse(m[3]); ok {
			out = append(out, Claim{Instance: id, Name: m[1], UID: types.UID(m[2])})
		}
	}
	return out
}

// separator of the UIDs in the annotation.
const separator = ","

// Holding are those of the claims that keep the pod: that nobody let go.
func Holding(pod *corev1.Pod, claims []Claim) []Claim {
	if len(claims) == 0 {
		return nil
	}
	free := strings.Split(pod.Annotations[tappv1.AnnotationClaimMayGo], separator)
	return slices.DeleteFunc(slices.Clone(claims), func(c Claim) bool { return slices.Contains(free, string(c.UID)) })
}

// Release is the value of the annotation that lets the claims go with their pod.
func Release(claims []Claim) string {
	var uids []string
	for _, c := range claims {
		uids = append(uids, string(c.UID))
	}
	return strings.Join(uids, separator)
}

// Why an instance waits, and the way on. The verb is that of kubectl tapp.
func Why(holding []Claim, verb, tapp string) string {
	var names []string
	for _, c := range holding {
		names = append(names, c.Name)
	}
	its := "its claim " + names[0] + " is"
	if len(names) > 1 {
		its = "its claims " + strings.Join(names, ", ") + " are"
	}
	return fmt.Sprintf("%s being deleted, and would go with its pod, which stays; kubectl tapp %s %s %d --now lets both go, and so does the annotation %s=%s of the pod",
		its, verb, tapp, holding[0].Instance, tappv1.AnnotationClaimMayGo, Release(holding))
}
