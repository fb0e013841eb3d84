package inplace

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/template"
)

func TestQOS(t *testing.T) {
	list := func(cpu, memory string) corev1.ResourceList {
		out := corev1.ResourceList{}
		for name, value := range map[corev1.ResourceName]string{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory} {
			if value != "" {
				out[name] = resource.MustParse(value)
			}
		}
		return out
	}
	for name, c := range map[string]struct {
		containers []corev1.ResourceRequirements
		want       corev1.PodQOSClass
	}{
		"nothing":           {[]corev1.ResourceRequirements{{}, {}}, corev1.PodQOSBestEffort},
		"zero":              {[]corev1.ResourceRequirements{{Requests: list("0", "")}}, corev1.PodQOSBestEffort},
		"a request":         {[]corev1.ResourceRequirements{{Requests: list("1", "")}}, corev1.PodQOSBurstable},
		"limits":            {[]corev1.ResourceRequirements{{Limits: list("1", "1Gi")}}, corev1.PodQOSGuaranteed},
		"limits = requests": {[]corev1.ResourceRequirements{{Requests: list("1000m", "1Gi"), Limits: list("1", "1024Mi")}}, corev1.PodQOSGuaranteed},
		"lower requests":    {[]corev1.ResourceRequirements{{Requests: list("1", "1Gi"), Limits: list("2", "1Gi")}}, corev1.PodQOSBurstable},
		"one limit":         {[]corev1.ResourceRequirements{{Limits: list("1", "")}}, corev1.PodQOSBurstable},
		"one without":       {[]corev1.ResourceRequirements{{Limits: list("1", "1Gi")}, {}}, corev1.PodQOSBurstable},
	} {
		spec := &corev1.PodSpec{}
		for _, r := range c.containers {
			spec.Containers = append(spec.Containers, corev1.Container{Resources: r})
		}
		if got := qosOf(spec); got != c.want {
			t.Errorf("%s: %s, not %s", name, got, c.want)
		}
	}
}

// TestResizeUnderWay: kubelets before 1.34 need not report which generation they saw.
func TestResizeUnderWay(t *testing.T) {
	list := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	}
	has := func(cpu, memory string) *corev1.ResourceRequirements {
		return &corev1.ResourceRequirements{Requests: list(cpu, memory), Limits: list(cpu, memory)}
	}
	for _, c := range []struct {
		about    string
		observed int64
		has      *corev1.ResourceRequirements
		stopped  bool
		resize   func(*corev1.PodStatus)
		want     string
	}{
		{"seen", 2, has("100m", "1Gi"), false, nil, ""},
		{"not seen", 1, has("200m", "2Gi"), false, nil, "Resizing"},
		{"no generations, done", 0, has("0.2", "2048Mi"), false, nil, ""},
		{"no generations, not done", 0, has("100m", "2Gi"), false, nil, "Resizing"},
		{"no generations, memory not done", 0, has("200m", "1Gi"), false, nil, "Resizing"},
		{"no generations, and nothing told", 0, nil, false, nil, ""},
		{"no generations, and not running", 0, has("100m", "1Gi"), true, nil, ""},
		{"put off by an old kubelet", 0, has("100m", "1Gi"), false, func(s *corev1.PodStatus) { s.Resize = corev1.PodResizeStatusDeferred }, "Deferred"},
		{"refused by an old kubelet", 0, has("100m", "1Gi"), false, func(s *corev1.PodStatus) { s.Resize = corev1.PodResizeStatusInfeasible }, "Infeasible"},
	} {
		pod := podWith("a:1")
		pod.Generation, pod.Status.ObservedGeneration = 2, c.observed
		if c.resize != nil {
			c.resize(&pod.Status)
		}
		pod.Spec.Containers[0].Resources = *has("200m", "2Gi")
		pod.Status.ContainerStatuses[0].Resources = c.has
		if c.stopped {
			pod.Status.ContainerStatuses[0].State = corev1.ContainerState{}
		}
		if reason, why := ResizeUnderWay(pod); reason != c.want || (why == "") != (c.want == "") {
			t.Errorf("%s: %q, %q", c.about, reason, why)
		}
	}
	// A kubelet gives no less than 10m, and says so.
	pod := podWith("a:1")
	pod.Status.ObservedGeneration = 0
	pod.Spec.Containers[0].Resources = *has("1m", "1Gi")
	pod.Status.ContainerStatuses[0].Resources = has("10m", "1Gi")
	if reason, _ := ResizeUnderWay(pod); reason != "" {
		t.Errorf("waits for less than there is: %s", reason)
	}
}

func TestWindowsIsNotResized(t *testing.T) {
	pod := podWith("a:1")
	pod.Spec.OS = &corev1.PodOS{Name: corev1.Windows}
	want := &corev1.PodTemplateSpec{Spec: *pod.Spec.DeepCopy()}
	if r := ResizeTo(pod, want, template.ReadResourceSet("true")); r.Blocked != "" {
		t.Error(r.Blocked)
	}
	want.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	if r := ResizeTo(pod, want, template.ReadResourceSet("true")); r.Blocked != "pods on Windows cannot be resized" {
		t.Errorf("blocked: %q", r.Blocked)
	}
}

// TestPodResourcesDecideTheClass: containers of a pod that has resources as a whole can get
// their first ones in place.
func TestPodResourcesDecideTheClass(t *testing.T) {
	cpu := corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web"}}}}
	want := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Resources: cpu}}}}
	for _, c := range []struct {
		whole   *corev1.ResourceRequirements
		blocked string
	}{
		{nil, "the pod's class of service would change from BestEffort to Burstable, which a running pod cannot"},
		{&corev1.ResourceRequirements{}, "the pod's class of service would change from BestEffort to Burstable, which a running pod cannot"},
		{&cpu, ""},
	} {
		pod.Spec.Resources = c.whole
		if r := ResizeTo(pod, want, template.ReadResourceSet("true")); r.Blocked != c.blocked || len(r.Changes) != 1 {
			t.Errorf("%v: %+v", c.whole, r)
		}
	}
}

// TestResizeIsThreeWay: a resize changes what the template changed. What admission gave the
// same container, or another one, stays.
func TestResizeIsThreeWay(t *testing.T) {
	pod := podWith("a:1")
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "log"})
	app, log := &pod.Spec.Containers[0], &pod.Spec.Containers[1]
	list := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	}
	app.Resources.Requests, log.Resources.Requests = list("100m", "1Gi"), list("50m", "1Gi")
	want := &corev1.PodTemplateSpec{Spec: *pod.Spec.DeepCopy()}
	pod.Annotations = map[string]string{tappv1.AnnotationTemplateKeys: template.MarshalRecord(want)}
	app.Resources.Requests, log.Resources.Requests, log.Resources.Limits = list("100m", "3Gi"), list("70m", "1Gi"), list("1", "4Gi")
	want.Spec.Containers[0].Resources.Requests = list("200m", "1Gi")

	mark := template.ReadRecord(pod.Annotations[tappv1.AnnotationTemplateKeys]).ChangedResources(pod, want)
	r := ResizeTo(pod, want, mark)
	patch, refused := r.Patch("v1-aaaaaaaaaaaaaaaa")
	if r.Blocked != "" || string(patch) != `{"metadata":{"uid":"uid-1"},"spec":{"containers":[{"name":"`+app.Name+`","resources":{"requests":{"cpu":"200m"}}}]}}` {
		t.Errorf("%s: %s", r.Blocked, patch)
	}
	if want := `{"metadata":{"uid":"uid-1","annotations":{"tkestack.io/resized":"refused v1-aaaaaaaaaaaaaaaa ` + app.Name + `:requests.cpu"}}}`; string(refused) != want {
		t.Errorf("%s, not %s", refused, want)
	}
	for _, text := range []string{mark.String(), "refused v1-aaaaaaaaaaaaaaaa " + mark.String()} {
		pod.Annotations[tappv1.AnnotationResized] = text
		if got := Resized(pod); got.String() != mark.String() || HasResources(pod, want) {
			t.Errorf("%q: %s, %t", text, got, HasResources(pod, want))
		}
		if is := ResizeRefused(pod, "v1-aaaaaaaaaaaaaaaa"); is != (text != mark.String()) || ResizeRefused(pod, "v1-bbbbbbbbbbbbbbbb") {
			t.Errorf("%q: refused: %t", text, is)
		}
	}
	// What earlier versions wrote is about all resources.
	for _, text := range []string{"true", "refused v1-aaaaaaaaaaaaaaaa"} {
		pod.Annotations[tappv1.AnnotationResized] = text
		if got := Resized(pod); got.String() != "true" {
			t.Errorf("%q: %s", text, got)
		}
	}
	app.Resources.Requests = list("200m", "3Gi")
	if pod.Annotations[tappv1.AnnotationResized] = mark.String(); !HasResources(pod, want) {
		t.Error("a pod with the resources that the template changed does not follow it")
	}
}
