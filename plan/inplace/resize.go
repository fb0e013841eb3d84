package inplace

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/message"
	"tkestack.io/tapp/plan/template"
)

// Resize is what it takes to bring a pod's resources to its template's.
type Resize struct {
	// Changes in words, such as "cpu request of web from 100m to 200m".
	Changes []string
	// Restarts is true when a container asks to be restarted for it.
	Restarts bool
	// Blocked is why it cannot be done in place; empty: it can.
	Blocked string

	patch resizePatch
}

// Patch is the patch of the pod's subresource resize, and refused a strategic merge
// patch of the pod that remembers that the API server refused the resources of the
// template with this hash.
func (r *Resize) Patch(templateHash string) (patch, refused []byte) {
	patch, _ = json.Marshal(r.patch) // quantities always marshal
	p := podPatch{Metadata: metaPatch{Target: Target{UID: r.patch.Metadata.UID}, Annotations: map[string]*string{}}}
	p.Metadata.annotate(tappv1.AnnotationResized, refusedPrefix+templateHash)
	refused, _ = json.Marshal(p)
	return patch, refused
}

// ResizeRefused says whether the API server refused to give the pod the resources of the
// template with this hash, for good.
func ResizeRefused(pod *corev1.Pod, templateHash string) bool {
	return pod.Annotations[tappv1.AnnotationResized] == refusedPrefix+templateHash
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

// HasResources is false while the resources of a pod that is resized are not yet
// what its template says.
func HasResources(pod *corev1.Pod, t *corev1.PodTemplateSpec) bool {
	if pod.Annotations[tappv1.AnnotationResized] == "" {
		return true
	}
	r := ResizeTo(pod, t)
	reason, _ := ResizeUnderWay(pod)
	return len(r.Changes) == 0 && r.Blocked == "" && reason == ""
}

// refusedPrefix stands in the annotation AnnotationResized before the hash of the
// template whose resources the API server refused.
const refusedPrefix = "refused "

// ResizeTo finds the resources in which the pod differs from the template.
func ResizeTo(pod *corev1.Pod, t *corev1.PodTemplateSpec) Resize {
	var r Resize
	r.patch.Metadata.UID = pod.UID
	after := pod.DeepCopy().Spec
	for has, want := range template.SharedContainers(&corev1.Pod{Spec: after}, t) {
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
	if pod.Spec.OS != nil && pod.Spec.OS.Name == corev1.Windows && len(r.Changes) > 0 {
		r.Blocked = "pods on Windows cannot be resized"
	}
	if r.Blocked == "" && len(r.Changes) > 0 && qosOf(&pod.Spec) != qosOf(&after) {
		r.Blocked = fmt.Sprintf("the pod's class of service would change from %s to %s, which a running pod cannot", qosOf(&pod.Spec), qosOf(&after))
	}
	return r
}

// compare brings has to want, and returns what it changed.
func (r *Resize) compare(c *corev1.Container, has *corev1.ResourceList, want corev1.ResourceList, what string) corev1.ResourceList {
	var out corev1.ResourceList
	for _, name := range template.Resizable() {
		is, set := (*has)[name]
		to, wanted := want[name]
		switch {
		case !wanted && set && r.Blocked == "":
			r.Blocked = fmt.Sprintf("a %s %s cannot be taken from the running container %s", name, what, c.Name)
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
		r.Changes = append(r.Changes, fmt.Sprintf("%s %s of %s from %s to %s", name, what, c.Name, from, to.String()))
		r.Restarts = r.Restarts || slices.Contains(c.ResizePolicy, corev1.ContainerResizePolicy{ResourceName: name, RestartPolicy: corev1.RestartContainer})
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
	for _, name := range template.Resizable() {
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

// ResizeUnderWay says what keeps the kubelet from having done what the spec says
// of resources; no reason: it has.
//
// | the kubelet | has done it when |
// |---|---|
// | reports generations | it has seen the spec, and the conditions of a resize are gone |
// | does not, but what its containers have | that is what the spec says |
// | neither | is not waited for: nothing would ever tell |
func ResizeUnderWay(pod *corev1.Pod) (reason, why string) {
	for _, c := range pod.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		switch c.Type {
		case corev1.PodResizePending:
			return c.Reason, "its node does not resize the pod (" + c.Reason + "): " + message.Quote(c.Message)
		case corev1.PodResizeInProgress:
			if c.Message != "" {
				return "ResizeFailing", "its node has not resized the pod yet: " + message.Quote(c.Message)
			}
			return "Resizing", "its node resizes the pod"
		}
	}
	switch pod.Status.Resize { // of kubelets before 1.33
	case corev1.PodResizeStatusDeferred, corev1.PodResizeStatusInfeasible:
		return string(pod.Status.Resize), "its node does not resize the pod (" + string(pod.Status.Resize) + ")"
	}
	unseen := pod.Status.ObservedGeneration < pod.Generation
	if !reportsGeneration(pod) {
		unseen = slices.ContainsFunc(containersOf(pod), container.lacksResources)
	}
	if unseen {
		return "Resizing", "its node has not seen yet that the pod is to be resized"
	}
	return "", ""
}

// lacksResources says whether the status of a running container tells of other cpu or
// memory than the spec.
func (c container) lacksResources() bool {
	if c.status == nil || c.status.Resources == nil || c.status.State.Running == nil {
		return false
	}
	for _, name := range template.Resizable() {
		for _, lists := range [2][2]corev1.ResourceList{
			{c.Resources.Requests, c.status.Resources.Requests}, {c.Resources.Limits, c.status.Resources.Limits},
		} {
			want, wanted := lists[0][name]
			if has, ok := lists[1][name]; wanted && (!ok || !sameShare(name, has, want)) {
				return true
			}
		}
	}
	return false
}

// sameShare knows that kubelets give no less than 10 thousandths of a cpu.
func sameShare(name corev1.ResourceName, has, want resource.Quantity) bool {
	least := resource.NewMilliQuantity(10, resource.DecimalSI)
	return has.Cmp(want) == 0 || name == corev1.ResourceCPU && want.Cmp(*least) < 0 && has.Cmp(*least) <= 0
}

// qosOf a pod by its containers' resources, as ComputePodQOS in
// k8s.io/kubernetes/pkg/apis/core/v1/helper/qos for pods without resources of
// their own.
func qosOf(spec *corev1.PodSpec) corev1.PodQOSClass {
	some, guaranteed := false, true
	for c := range allContainers(spec) {
		for _, name := range template.Resizable() {
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
