package tapp

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/inplace"
	"tkestack.io/tapp/plan/template"
)

// now is the time of every scenario.
var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

// podStory is the shorthand for one or more observed pods. What it leaves out is
// as in a pod that has been well for an hour.
type podStory struct {
	IDs string `json:"ids"` // "0", "0-3", "0,2"
	// Made from this version; "" is what the instance's template is now.
	From string `json:"from"`
	// Patched in place to this version afterwards, and how far the kubelet got:
	// unseen, restarting, stopped (the first container ended with 0, and none follows),
	// early (the same, and no status told of the containers before), or done.
	Patched string `json:"patched"`
	Kubelet string `json:"kubelet"`

	// Resized to the resources of this version, and what the kubelet says of it:
	// "not yet", "refused", "unseen", "progress", "Deferred: message", "Infeasible: message"; "" is done.
	Resized string `json:"resized"`
	Resize  string `json:"resize"`

	Ready string `json:"ready"` // since: "1h"; "not", "not 5s"; "unset"
	// Silent: its node is, so that the node controller called it not Ready.
	Silent   bool            `json:"silent"`
	Gate     string          `json:"gate"` // "open"; "closed 5s"; "unset"; "none" is a pod without
	Phase    corev1.PodPhase `json:"phase"`
	Reason   string          `json:"reason"`
	Rejected bool            `json:"rejected"` // by its kubelet: no container ever was
	Age      string          `json:"age"`
	Ended    string          `json:"ended"`         // its containers did so long ago
	Waiting  string          `json:"waiting"`       // its containers do: "reason: message"
	NoNode   string          `json:"unschedulable"` // why it has none
	Dying    string          `json:"dying"`         // its grace period ends: "in 20s", "5s ago"
	Left     bool            `json:"left"`          // it is dying, and has no grace period
	Node     string          `json:"node"`
	// Finalizers that it has.
	Finalizers []string `json:"finalizers"`
	Failures   int      `json:"failures"`
	Restart    bool     `json:"restart"` // was asked for
	// Collected: Kubernetes is about to remove it, since its node is gone.
	Collected bool `json:"collected"`
	// Tied to this node, while it was made with neverMigrate.
	Tied   string             `json:"tied"`
	Owner  string             `json:"owner"` // none, other; "older" is a TApp of the same name
	Labels map[string]*string `json:"labels"`
	// Annotations that others wrote; null takes one away.
	Annotations map[string]*string `json:"annotations"`
	Images      map[string]string  `json:"images"`
	// Overwritten are the containers whose image somebody wrote with kubectl set image.
	Overwritten []string `json:"overwritten"`
	// Resources that admission gave containers.
	Resources map[string]corev1.ResourceRequirements `json:"resources"`
	// Pull is the imagePullPolicy that the API server gave its containers.
	Pull corev1.PullPolicy `json:"pull"`
	// Runs says which images the status reports, where they are others than the spec's.
	Runs    map[string]string `json:"runs"`
	Sidecar string            `json:"sidecar"` // image of a container that something injected in front
	Hash    string            `json:"hash"`    // of tkestack/tapp, in place of ours
}

// tell makes the pods of a story.
func (s *scenario) tell(t rapid.TB, p podStory) []*corev1.Pod {
	t.Helper()
	var out []*corev1.Pod
	for _, id := range readIDs(t, p.IDs) {
		pod := s.make(t, id, p.From, p.Gate != "none")
		patched := ""
		if p.Patched != "" {
			pod, patched = s.patched(t, pod, id, p)
		}
		if p.Resized != "" {
			p.resize(pod, newPod(t, s.at(t, id, p.Resized, true), id))
		}
		p.settle(t, pod, patched)
		p.disturb(pod)
		for _, name := range p.Overwritten {
			pod.ManagedFields = append(pod.ManagedFields, metav1.ManagedFieldsEntry{Manager: "kubectl-set", Operation: metav1.ManagedFieldsOperationUpdate,
				FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:containers":{"k:{\"name\":\"` + name + `\"}":{"f:image":{}}}}}`)})
		}
		out = append(out, pod)
	}
	return out
}

// make has the planner itself make the pod, as it would for a TApp of that
// version, and the API server and a kubelet start it.
func (s *scenario) make(t rapid.TB, id int, version string, gated bool) *corev1.Pod {
	t.Helper()
	pod := newPod(t, s.at(t, id, version, gated), id)
	pod.UID, pod.ResourceVersion = types.UID("pod-"+strconv.Itoa(id)), "9"
	pod.ResourceVersion, pod.Generation = "1", 1
	start(pod, 1)
	return pod
}

// at is the TApp at the time when the instance was made from the version.
func (s *scenario) at(t rapid.TB, id int, version string, gated bool) *tappv1.TApp {
	t.Helper()
	tapp := s.TApp.DeepCopy()
	replicas := int32(id + 1)
	tapp.Spec.Replicas = &replicas
	tapp.Spec.Ordinals = nil
	tapp.Spec.Statuses, tapp.Spec.Selector, tapp.Status.ScaleLabelSelector = nil, nil, ""
	tapp.Spec.UpdateStrategy.InPlaceUpdate.Drain = &gated
	if spec := s.version(t, version); spec != nil {
		tapp.Spec.Template = *spec
		tapp.Spec.Templates, tapp.Spec.DefaultTemplateName = nil, ""
	}
	return tapp
}

// version of the template; nil for the one that the spec has now.
func (s *scenario) version(t rapid.TB, name string) *corev1.PodTemplateSpec {
	t.Helper()
	if name == "" {
		return nil
	}
	if name == tappv1.DefaultTemplateName {
		return &s.TApp.Spec.Template
	}
	if spec, ok := s.TApp.Spec.TemplatePool[name]; ok {
		return &spec
	}
	patch, ok := s.Versions[name]
	if !ok {
		t.Fatalf("no version %q", name)
	}
	out := s.TApp.Spec.Template
	merge(t, &out, patch)
	return &out
}

// newPod is the pod that the planner makes for an instance.
func newPod(t rapid.TB, tapp *tappv1.TApp, id int) *corev1.Pod {
	t.Helper()
	in := Input{TApp: tapp, Now: now}
	s := readSpec(in)
	all := observe(s, &clock{now: now}, in, readClaims(s, &Input{}))
	at := slices.IndexFunc(all, func(i *instance) bool { return i.id == id })
	if at < 0 || all[at].template == nil {
		t.Fatalf("instance %d has no template: %v", id, s.problems)
	}
	return s.newPod(all[at], 0)
}

// patched has the planner patch the pod in place, five minutes ago.
func (s *scenario) patched(t rapid.TB, pod *corev1.Pod, id int, p podStory) (*corev1.Pod, string) {
	t.Helper()
	want := newPod(t, s.at(t, id, p.Patched, p.Gate != "none"), id)
	h := template.Hashes{Template: want.Labels[tappv1.LabelTemplateHash], Uniq: want.Labels[tappv1.LabelUniqHash]}
	started := pod.Status.ContainerStatuses
	if p.Kubelet == "early" {
		pod.Status.ContainerStatuses = nil
	}
	patch, err := inplace.Update{Pod: pod, Want: want, Hashes: h, Now: now.Add(-5 * time.Minute)}.Patch()
	if err != nil {
		t.Fatal(err)
	}
	merge(t, pod, patch)
	pod.Generation++
	switch p.Kubelet {
	case "unseen":
	case "restarting":
		pod.Status.ObservedGeneration = pod.Generation
		for i := range pod.Status.ContainerStatuses {
			pod.Status.ContainerStatuses[i].Ready = false
		}
	case "stopped", "early":
		pod.Status.ObservedGeneration, pod.Status.ContainerStatuses = pod.Generation, started
		first := &pod.Status.ContainerStatuses[0]
		first.Ready, first.State = false, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: ago(time.Minute)}}
	case "done", "":
		start(pod, 2)
	default:
		t.Fatalf("kubelet: %q", p.Kubelet)
	}
	return pod, p.Kubelet
}

// start is what a kubelet reports of containers that run what the spec says.
func start(pod *corev1.Pod, attempt int) {
	pod.Status.Phase, pod.Status.ObservedGeneration = corev1.PodRunning, pod.Generation
	run := func(containers []corev1.Container) (out []corev1.ContainerStatus) {
		for _, c := range containers {
			out = append(out, corev1.ContainerStatus{
				Name: c.Name, Image: c.Image, ImageID: "sha256:" + c.Image, Ready: true, Started: new(true), RestartCount: int32(attempt - 1),
				ContainerID: fmt.Sprintf("containerd://%s-%s-%d", pod.Name, c.Name, attempt),
				State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: ago(time.Hour)}},
			})
		}
		return out
	}
	pod.Status.ContainerStatuses = run(pod.Spec.Containers)
	ran := pod.Status.InitContainerStatuses
	pod.Status.InitContainerStatuses = run(pod.Spec.InitContainers)
	for i := range ran { // those that do not keep running ran once
		if !template.IsSidecar(&pod.Spec.InitContainers[i]) {
			pod.Status.InitContainerStatuses[i] = ran[i]
		}
	}
}

// settle sets conditions, times and the end of the pod.
func (p *podStory) settle(t rapid.TB, pod *corev1.Pod, kubelet string) {
	t.Helper()
	age := span(t, p.Age, time.Hour)
	pod.CreationTimestamp = ago(age)
	started := ago(age)
	pod.Status.StartTime = &started
	if kind, since, _ := strings.Cut(p.Gate, " "); kind != "unset" && kind != "none" {
		setCondition(pod, tappv1.GateInPlaceUpdate, kind != "closed", span(t, since, age))
	}
	if p.Silent {
		setCondition(pod, corev1.ContainersReady, true, age)
		p.Ready = "not 1m"
	}
	kind, since, _ := strings.Cut(p.Ready, " ")
	switch kind {
	case "unset":
	case "not":
		setCondition(pod, corev1.PodReady, false, span(t, since, age))
	default:
		well := !strings.HasPrefix(p.Gate, "closed") && p.Gate != "unset" && p.Phase == "" && kubelet != "restarting"
		setCondition(pod, corev1.PodReady, well || p.Ready != "", span(t, p.Ready, age))
	}
	if p.Phase != "" {
		pod.Status.Phase = p.Phase
	}
	pod.Status.Reason = p.Reason
	for i := range pod.Status.ContainerStatuses {
		if c := &pod.Status.ContainerStatuses[i]; isEnded(pod) {
			c.Ready = false
			c.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: ago(span(t, p.Ended, time.Minute))}}
		}
	}
	if p.Rejected || pod.Status.Phase == corev1.PodPending {
		pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses = nil, nil
	}
	if p.Dying != "" {
		at := ago(0)
		if in, ok := strings.CutPrefix(p.Dying, "in "); ok {
			at = ago(-span(t, in, 0))
		} else if past, ok := strings.CutSuffix(p.Dying, " ago"); ok {
			at = ago(span(t, past, 0))
		}
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &at, new(int64(30))
		if p.Left {
			*pod.DeletionGracePeriodSeconds = 0
		}
	}
	if pod.Spec.NodeName = p.Node; p.Node == "" && !p.Rejected && pod.Status.Phase != corev1.PodPending {
		pod.Spec.NodeName = "node-1"
	}
}

// disturb is what people and other programs did to the pod.
func (p *podStory) disturb(pod *corev1.Pod) {
	if reason, message, ok := strings.Cut(p.Waiting, ": "); ok {
		for i := range pod.Status.ContainerStatuses {
			c := &pod.Status.ContainerStatuses[i]
			c.Ready, c.State = false, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
		}
	}
	if p.NoNode != "" {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: p.NoNode})
	}
	if p.Failures > 0 {
		setAnnotation(pod, tappv1.AnnotationFailures, strconv.Itoa(p.Failures))
	}
	if p.Collected {
		setCondition(pod, corev1.DisruptionTarget, true, 0)
		pod.Status.Conditions[len(pod.Status.Conditions)-1].Reason = "DeletionByPodGC"
	}
	if p.Tied != "" {
		template.RequireNode(&pod.Spec, p.Tied)
	}
	pod.Finalizers = append(pod.Finalizers, p.Finalizers...)
	if p.Restart {
		setAnnotation(pod, tappv1.AnnotationRestart, now.Format(time.RFC3339))
	}
	switch p.Owner {
	case "none":
		pod.OwnerReferences = nil
	case "other":
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "other", UID: "other", Controller: new(true)}}
	case "older":
		pod.OwnerReferences[0].UID = "tapp-before"
	}
	for i := range pod.Spec.Containers {
		if p.Pull != "" {
			pod.Spec.Containers[i].ImagePullPolicy = p.Pull
		}
		if image, ok := p.Images[pod.Spec.Containers[i].Name]; ok {
			pod.Spec.Containers[i].Image = image
		}
		if admitted, ok := p.Resources[pod.Spec.Containers[i].Name]; ok {
			pod.Spec.Containers[i].Resources = admitted
		}
	}
	if p.Sidecar != "" {
		pod.Spec.Containers = append([]corev1.Container{{Name: "sidecar", Image: p.Sidecar}}, pod.Spec.Containers...)
	}
	if p.Hash != "" {
		pod.Labels[tappv1.LabelTemplateHash], pod.Labels[tappv1.LabelUniqHash] = p.Hash, p.Hash
		delete(pod.Labels, tappv1.LabelPodIndex)
		delete(pod.Annotations, tappv1.AnnotationTemplateKeys)
	}
	for i := range pod.Status.ContainerStatuses {
		c := &pod.Status.ContainerStatuses[i]
		if image, ok := p.Runs[c.Name]; ok {
			c.Image, c.ImageID = image, "sha256:"+image
		}
	}
	write := func(to map[string]string, change map[string]*string) {
		for k, v := range change {
			if v == nil {
				delete(to, k)
				continue
			}
			to[k] = *v
		}
	}
	write(pod.Labels, p.Labels)
	write(pod.Annotations, p.Annotations)
}
