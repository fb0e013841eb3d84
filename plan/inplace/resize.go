package inplace

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

	follows template.ResourceSet
	patch   resizePatch
}

// Patch is the patch of the pod's subresource resize, and refused a strategic merge
// patch of the pod that remembers that the API server refused the resources of the
// template with this hash.
func (r *Resize) Patch(templateHash string) (patch, refused []byte) {
	patch, _ = json.Marshal(r.patch) // quantities always marshal
	p := podPatch{Metadata: metaPatch{Target: Target{UID: r.patch.Metadata.UID}, Annotations: map[string]*string{}}}
	p.Metadata.annotate(tappv1.AnnotationResized, refusedPrefix+templateHash+" "+r.follows.String())
	refused, _ = json.Marshal(p)
	return patch, refused
}

// refusedPrefix stands in the annotation AnnotationResized before the hash of the
// template whose resources the API server refused, and the fields that were to change.
const refusedPrefix = "refused "

// ResizeRefused says whether the API server refused to give the pod the resources of the
// template with this hash, for good.
func ResizeRefused(pod *corev1.Pod, templateHash string) bool {
	text, refused := strings.CutPrefix(pod.Annotations[tappv1.AnnotationResized], refusedPrefix)
	hash, _, _ := strings.Cut(text, " ")
	return refused && hash == templateHash
}

// Resized are the resources in which the pod follows its template since that changed them.
func Resized(pod *corev1.Pod) template.ResourceSet {
	text := pod.Annotations[tappv1.AnnotationResized]
	if refused, ok := strings.CutPrefix(text, refusedPrefix); ok {
		hash, fields, _ := strings.Cut(refused, " ")
		text = cmp.Or(fields, hash) // earlier versions leave out the fields, which then are all
	}
	return template.ReadResourceSet(text)
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
	r := ResizeTo(pod, t, Resized(pod))
	reason, _ := ResizeUnderWay(pod)
	return len(r.Changes) == 0 && r.Blocked == "" && reason == ""
}

// ResizeTo finds the resources in which the pod differs from the template, among those
// that follow it. The others are left alone: admission or an autoscaler may have set them.
func ResizeTo(pod *corev1.Pod, t *corev1.PodTemplateSpec, follows template.ResourceSet) Resize {
	r := Resize{follows: follows}
	r.patch.Metadata.UID = pod.UID
	after := pod.DeepCopy().Spec
	for has, want := range template.SharedContainers(&corev1.Pod{Spec: after}, t) {
		p := r.compare(has, want)
		if len(p.Resources.Requests)+len(p.Resources.Limits) == 0 {
			continue
		}
		if slices.ContainsFunc(after.InitContainers, func(c corev1.Container) bool { return c.Name == has.Name }) {
			r.patch.Spec.InitContainers = append(r.patch.Spec.InitContainers, p)
		} else {
			r.patch.Spec.Containers = append(r.patch.Spec.Containers, p)
		}
		r.checkLimits(has)
	}
	if pod.Spec.OS != nil && pod.Spec.OS.Name == corev1.Windows && len(r.Changes) > 0 {
		r.Blocked = "pods on Windows cannot be resized"
	}
	if r.Blocked == "" && len(r.Changes) > 0 && !hasPodResources(&pod.Spec) && qosOf(&pod.Spec) != qosOf(&after) {
		r.Blocked = fmt.Sprintf("the pod's class of service would change from %s to %s, which a running pod cannot", qosOf(&pod.Spec), qosOf(&after))
	}
	return r
}

// compare brings has to want, and returns what it changed.
func (r *Resize) compare(has, want *corev1.Container) containerResources {
	p := containerResources{Name: want.Name}
	for field, to := range template.ResourceFields(want) {
		list, out, what := &has.Resources.Requests, &p.Resources.Requests, "request"
		if field.List == "limits" {
			list, out, what = &has.Resources.Limits, &p.Resources.Limits, "limit"
		}
		is, set := (*list)[field.Name]
		switch {
		case !r.follows.Has(field) || to == nil && !set || to != nil && set && is.Cmp(*to) == 0:
		case to == nil:
			if r.Blocked == "" {
				r.Blocked = fmt.Sprintf("a %s %s cannot be taken from the running container %s", field.Name, what, has.Name)
			}
		default:
			from := "none"
			if set {
				from = is.String()
			}
			r.Changes = append(r.Changes, fmt.Sprintf("%s %s of %s from %s to %s", field.Name, what, has.Name, from, to.String()))
			r.Restarts = r.Restarts || slices.Contains(has.ResizePolicy, corev1.ContainerResizePolicy{ResourceName: field.Name, RestartPolicy: corev1.RestartContainer})
			setResource(list, field.Name, *to)
			setResource(out, field.Name, *to)
		}
	}
	return p
}

func setResource(list *corev1.ResourceList, name corev1.ResourceName, to resource.Quantity) {
	if *list == nil {
		*list = corev1.ResourceList{}
	}
	(*list)[name] = to
}

// checkLimits finds a request above its limit: the template changes one of them, and
// somebody else changed the other one.
func (r *Resize) checkLimits(c *corev1.Container) {
	for _, name := range template.Resizable() {
		request, limit := c.Resources.Requests[name], c.Resources.Limits[name]
		if _, limited := c.Resources.Limits[name]; limited && request.Cmp(limit) > 0 && r.Blocked == "" {
			r.Blocked = fmt.Sprintf("the %s request of %s would be %s, above its limit of %s", name, c.Name, request.String(), limit.String())
		}
	}
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

// hasPodResources says whether the pod as a whole has resources. They alone decide about
// its class of service, and a resize of containers leaves them alone.
func hasPodResources(spec *corev1.PodSpec) bool {
	return spec.Resources != nil && len(spec.Resources.Requests)+len(spec.Resources.Limits) > 0
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
