package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// resizable are the resources that a kubelet changes in a running container
// (KEP-1287).
func resizable() [2]corev1.ResourceName {
	return [2]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}
}

const reasonResources = "ResourcesChanged"

// resizing is what it takes to bring a pod's resources to its template's.
type resizing struct {
	patch    resizePatch
	changes  []string // "cpu request of web from 100m to 200m"
	restarts bool     // a container asks to be restarted for it
	blocked  string   // why it cannot be done in place; empty: it can
}

type resizePatch struct {
	Metadata struct {
		UID types.UID `json:"uid"`
	} `json:"metadata"`
	Spec struct {
		InitContainers []containerResources `json:"initContainers,omitempty"`
		Containers     []containerResources `json:"containers,omitempty"`
	} `json:"spec"`
}

type containerResources struct {
	Name      string `json:"name"`
	Resources struct {
		Requests corev1.ResourceList `json:"requests,omitempty"`
		Limits   corev1.ResourceList `json:"limits,omitempty"`
	} `json:"resources"`
}

// An update that changes resources in place is two writes: one patch as for an
// update of images, which brings the hashes and the annotation AnnotationResized,
// and the resize. The annotation goes first and stays: from then on the pod's
// resources are compared with its template's, and it follows the template only
// when they are the same and its node has seen to that. Without it they are not
// looked at: defaults of the namespace and other programs have a say in them.

// mayResize says whether the resources of the pod may change in place: the user
// and the cluster allow it, and nothing else of the template's spec but images
// differs from what the pod was made of.
func (d *decision) mayResize(i *instance) bool {
	u := &d.tapp.Spec.UpdateStrategy.InPlaceUpdate
	return u.Resources && d.in.Policy.Resize && u.Policy != tappv1.ReCreate &&
		cmp.Or(i.pod.Annotations[tappv1.AnnotationShapeHash], i.pod.Labels[tappv1.LabelUniqHash]) == i.template.shape()
}

// hasResources is false while the resources of a pod that is resized are not yet
// what its template says.
func hasResources(pod *corev1.Pod, t *corev1.PodTemplateSpec) bool {
	if pod.Annotations[tappv1.AnnotationResized] == "" {
		return true
	}
	r := resizingTo(pod, t)
	reason, _ := resizeUnderWay(pod)
	return len(r.changes) == 0 && r.blocked == "" && reason == ""
}

// changeToResize says how a pod gets to a template that differs in resources.
func (d *decision) changeToResize(i *instance) change {
	r := resizingTo(i.pod, i.template.Spec)
	switch {
	case !d.mayResize(i) || r.blocked != "":
		return recreate
	case r.restarts || changesImage(i.pod, i.template.Spec, func(a, b string) bool { return a == b }):
		return inPlace
	}
	return relabel
}

// changeOfResources says what is left to do for a pod that has the hashes of its
// template, and not its resources.
func (d *decision) changeOfResources(i *instance) change {
	r := resizingTo(i.pod, i.template.Spec)
	reason, _ := resizeUnderWay(i.pod)
	switch {
	case !d.mayResize(i) || r.blocked != "" || i.resizeRefused():
		return recreate
	case len(r.changes) > 0 && r.restarts:
		return resizeAndRestart
	case len(r.changes) > 0:
		return resize
	case reason == corev1.PodReasonInfeasible:
		return recreate
	}
	return resizes
}

// refusedPrefix stands in the annotation AnnotationResized before the hash of the
// template whose resources the API server refused: the node has not that much.
const refusedPrefix = "refused "

func (i *instance) resizeRefused() bool {
	return i.pod.Annotations[tappv1.AnnotationResized] == refusedPrefix+i.template.Hashes.Template
}

// wantedOf is the pod that an update of images, labels and annotations brings the
// instance's pod to. It is marked for a resize if that follows.
func (d *decision) wantedOf(i *instance) (want *corev1.Pod, resources []string) {
	want = d.podFor(i)
	if i.pod.Labels[tappv1.LabelUniqHash] != i.template.Hashes.Uniq && d.mayResize(i) {
		resources = resizingTo(i.pod, i.template.Spec).changes
	}
	if len(resources) > 0 {
		setAnnotation(want, tappv1.AnnotationResized, "true")
	}
	return want, resources
}

// resizingTo finds the resources in which the pod differs from the template.
func resizingTo(pod *corev1.Pod, t *corev1.PodTemplateSpec) resizing {
	var r resizing
	r.patch.Metadata.UID = pod.UID
	after := pod.DeepCopy().Spec
	for has, want := range sharedContainers(&corev1.Pod{Spec: after}, t) {
		var p containerResources
		p.Name = want.Name
		p.Resources.Requests = r.compare(has, &has.Resources.Requests, withDefaultRequests(want.Resources), "request")
		p.Resources.Limits = r.compare(has, &has.Resources.Limits, want.Resources.Limits, "limit")
		if len(p.Resources.Requests)+len(p.Resources.Limits) == 0 {
			continue
		}
		if slices.ContainsFunc(after.InitContainers, func(c corev1.Container) bool { return c.Name == has.Name }) {
			r.patch.Spec.InitContainers = append(r.patch.Spec.InitContainers, p)
		} else {
			r.patch.Spec.Containers = append(r.patch.Spec.Containers, p)
		}
	}
	if r.blocked == "" && len(r.changes) > 0 && qosOf(&pod.Spec) != qosOf(&after) {
		r.blocked = fmt.Sprintf("the pod's class of service would change from %s to %s, which a running pod cannot", qosOf(&pod.Spec), qosOf(&after))
	}
	return r
}

// compare brings has to want, and returns what it changed.
func (r *resizing) compare(c *corev1.Container, has *corev1.ResourceList, want corev1.ResourceList, what string) corev1.ResourceList {
	var out corev1.ResourceList
	for _, name := range resizable() {
		is, set := (*has)[name]
		to, wanted := want[name]
		switch {
		case !wanted && set && r.blocked == "":
			r.blocked = fmt.Sprintf("a %s %s cannot be taken from the running container %s", name, what, c.Name)
		case !wanted || set && is.Cmp(to) == 0:
			continue
		}
		if !wanted {
			continue
		}
		if out == nil {
			out = corev1.ResourceList{}
		}
		out[name] = to
		from := "none"
		if set {
			from = is.String()
		}
		r.changes = append(r.changes, fmt.Sprintf("%s %s of %s from %s to %s", name, what, c.Name, from, to.String()))
		r.restarts = r.restarts || slices.Contains(c.ResizePolicy, corev1.ContainerResizePolicy{ResourceName: name, RestartPolicy: corev1.RestartContainer})
		if *has == nil {
			*has = corev1.ResourceList{}
		}
		(*has)[name] = to
	}
	return out
}

// withDefaultRequests are the requests as the API server completes them: one that
// is absent is the limit.
func withDefaultRequests(r corev1.ResourceRequirements) corev1.ResourceList {
	out := r.Requests.DeepCopy()
	for _, name := range resizable() {
		if limit, ok := r.Limits[name]; ok {
			if _, has := out[name]; !has {
				if out == nil {
					out = corev1.ResourceList{}
				}
				out[name] = limit
			}
		}
	}
	return out
}

// resizeUnderWay says what keeps the kubelet from having done what the spec says
// of resources; no reason: it has.
func resizeUnderWay(pod *corev1.Pod) (reason, why string) {
	for _, c := range pod.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		switch c.Type {
		case corev1.PodResizePending:
			return c.Reason, "its node does not resize the pod (" + c.Reason + "): " + c.Message
		case corev1.PodResizeInProgress:
			if c.Message != "" {
				return "ResizeFailing", "its node has not resized the pod yet: " + c.Message
			}
			return "Resizing", "its node resizes the pod"
		}
	}
	if pod.Status.ObservedGeneration < pod.Generation {
		return "Resizing", "its node has not seen yet that the pod is to be resized"
	}
	return "", ""
}

// qosOf a pod by its containers' resources, as ComputePodQOS in
// k8s.io/kubernetes/pkg/apis/core/v1/helper/qos for pods without resources of
// their own.
func qosOf(spec *corev1.PodSpec) corev1.PodQOSClass {
	some, guaranteed := false, true
	for c := range allContainers(spec) {
		for _, name := range resizable() {
			request, limit := c.Resources.Requests[name], c.Resources.Limits[name]
			some = some || request.Sign() > 0 || limit.Sign() > 0
			guaranteed = guaranteed && limit.Sign() > 0 && equalOrZero(request, limit)
		}
	}
	switch {
	case !some:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}

func equalOrZero(request, limit resource.Quantity) bool {
	return request.IsZero() || request.Cmp(limit) == 0
}

func allContainers(spec *corev1.PodSpec) iter.Seq[*corev1.Container] {
	return func(yield func(*corev1.Container) bool) {
		for _, list := range [2][]corev1.Container{spec.InitContainers, spec.Containers} {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
	}
}

// resize changes the pod's resources. Where a container is restarted for it, the
// pod is taken out of its Services first.
func (d *decision) resize(i *instance, c change) {
	r := resizingTo(i.pod, i.template.Spec)
	why := strings.Join(r.changes, ", ")
	switch {
	case c == resizeAndRestart && HasGate(i.pod) && !gateClosed(i.pod):
		i.act(Action{Op: OpDrain, Pod: i.pod, Reason: reasonResources, Why: why,
			Status: GatePatch(i.pod.UID, false, "InPlaceUpdate", why, d.in.Now)})
	case c == resize || !HasGate(i.pod) || d.drained(i):
		patch, _ := json.Marshal(r.patch) // quantities always marshal
		refused := podPatch{Metadata: metaPatch{UID: i.pod.UID, Annotations: map[string]*string{}}}
		refused.Metadata.annotate(tappv1.AnnotationResized, refusedPrefix+i.template.Hashes.Template)
		remember, _ := json.Marshal(refused)
		i.act(Action{Op: OpResize, Pod: i.pod, Patch: patch, Refused: remember, Reason: reasonResources, Why: why})
	}
}

// whyNotResized says why a pod whose resources may change in place is recreated
// all the same; empty: there is another reason.
func (d *decision) whyNotResized(i *instance) string {
	if !d.mayResize(i) {
		return ""
	}
	if r := resizingTo(i.pod, i.template.Spec); r.blocked != "" {
		return r.blocked
	}
	if i.resizeRefused() {
		return "its node is smaller than what the pod is to request"
	}
	if reason, why := resizeUnderWay(i.pod); reason == corev1.PodReasonInfeasible {
		return why
	}
	return ""
}
