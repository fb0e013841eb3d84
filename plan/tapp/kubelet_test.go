package tapp

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/inplace"
)

// kubelet is what a model kubelet knows of one pod. The status lags behind it,
// and it lags behind the spec: seeing, acting and reporting are steps of their
// own, in any order.
type kubelet struct {
	pod  *corev1.Pod // as last seen
	runs map[string]*corev1.ContainerStatus
	next int // number of the next container
	// refuses says why the node does not resize the pod, at this generation.
	refuses string
	at      int64
}

// An image whose tag has one of these is never pulled, or never gets ready.
const (
	neverPulled = "bad"
	neverReady  = "sick"
)

// schedule gives a pod its node, as its affinity says.
func (c *cluster) schedule(pod *corev1.Pod, node string) bool {
	if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil || isEnded(pod) {
		return false
	}
	if a := pod.Spec.Affinity; a != nil {
		node = a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values[0]
	}
	pod.Spec.NodeName = node
	pod.Status.StartTime = new(metav1.NewTime(c.now))
	c.touch(pod)
	return true
}

// alive says whether a kubelet runs the pod.
func (c *cluster) runsOn(pod *corev1.Pod) bool {
	return pod.Spec.NodeName != "" && c.nodes[pod.Spec.NodeName].Exists && !isEnded(pod)
}

// see takes the pod as it is now. The kubelet reports its generation from then on.
func (k *kubelet) see(pod *corev1.Pod) { k.pod = pod.DeepCopy() }

// act starts what has to run, and restarts what has another image: if and only
// if the text of the image differs.
func (k *kubelet) act(at time.Time) {
	if k.pod == nil {
		return
	}
	if k.runs == nil {
		k.runs = map[string]*corev1.ContainerStatus{}
		for _, x := range k.pod.Spec.InitContainers {
			k.start(&x, at, true)
		}
	}
	for _, x := range k.pod.Spec.Containers {
		if has := k.runs[x.Name]; has == nil || has.Image != x.Image || has.State.Running == nil {
			k.start(&x, at, false)
		}
	}
}

// start a container. An image that cannot be pulled leaves the container that
// was there dead.
func (k *kubelet) start(x *corev1.Container, at time.Time, init bool) {
	old := k.runs[x.Name]
	s := &corev1.ContainerStatus{Name: x.Name, Image: x.Image, ImageID: "sha256:" + x.Image, Started: new(true), Ready: !strings.Contains(x.Image, neverReady)}
	if old != nil {
		s.RestartCount = old.RestartCount + 1
		s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ContainerID: old.ContainerID}
	}
	if strings.Contains(x.Image, neverPulled) {
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}
		s.Ready, s.Started = false, new(false)
		if old != nil {
			s.ContainerID, s.ImageID, s.RestartCount = old.ContainerID, old.ImageID, old.RestartCount
		}
		if old != nil && old.State.Waiting != nil {
			s.LastTerminationState = old.LastTerminationState
		}
		k.runs[x.Name] = s
		return
	}
	k.next++
	s.ContainerID = fmt.Sprintf("containerd://%s-%d", k.pod.UID, k.next)
	if s.State.Running = (&corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at)}); init {
		s.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: s.ContainerID, FinishedAt: metav1.NewTime(at)}}
	}
	k.runs[x.Name] = s
}

// report writes the pod's status. Ready is the containers and the gates, as the
// kubelet saw them.
func (c *cluster) report(pod *corev1.Pod) bool {
	k := c.kubelets[pod.UID]
	if k.pod == nil {
		return false
	}
	old := pod.Status.DeepCopy()
	s := &pod.Status
	c.reportResize(pod, k)
	s.ObservedGeneration = k.pod.Generation
	s.Phase = corev1.PodPending
	ready := len(k.runs) > 0
	statuses := func(list []corev1.Container) (out []corev1.ContainerStatus) {
		for _, x := range list {
			if has := k.runs[x.Name]; has != nil {
				out = append(out, *has.DeepCopy())
			}
		}
		return out
	}
	s.InitContainerStatuses, s.ContainerStatuses = statuses(pod.Spec.InitContainers), statuses(pod.Spec.Containers)
	for _, x := range s.ContainerStatuses {
		if ready = ready && x.Ready; x.ContainerID != "" {
			s.Phase = corev1.PodRunning
		}
	}
	if inplace.HasGate(k.pod) {
		gate := conditionOf(k.pod, tappv1.GateInPlaceUpdate)
		ready = ready && gate != nil && gate.Status == corev1.ConditionTrue
	}
	c.setReady(pod, ready)
	if equality.Semantic.DeepEqual(*old, *s) {
		return false
	}
	c.touch(pod)
	return true
}

func (c *cluster) setReady(pod *corev1.Pod, is bool) {
	want := corev1.ConditionFalse
	if is {
		want = corev1.ConditionTrue
	}
	at := metav1.NewTime(c.now.Truncate(time.Second))
	switch has := conditionOf(pod, corev1.PodReady); {
	case has == nil:
		if start := pod.Status.StartTime; start != nil && !is { // a kubelet says so before it starts a container
			at = *start
		}
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: want, LastTransitionTime: at})
	case has.Status != want:
		has.Status, has.LastTransitionTime = want, at
	}
}

// end is a pod that ends without being told to.
func (c *cluster) end(pod *corev1.Pod, phase corev1.PodPhase, reason string) {
	pod.Status.Phase, pod.Status.Reason = phase, reason
	for i := range pod.Status.ContainerStatuses {
		s := &pod.Status.ContainerStatuses[i]
		s.Ready, s.State = false, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(c.now), ContainerID: s.ContainerID}}
	}
	c.setReady(pod, false)
	c.touch(pod)
}

// terminate ends a pod that is being deleted: first a final phase, as kubelets do,
// and then the object.
func (c *cluster) terminate(pod *corev1.Pod) {
	if !isEnded(pod) {
		c.end(pod, corev1.PodFailed, "")
		return
	}
	delete(c.pods, pod.Name)
}

// crash restarts a container by itself.
func (k *kubelet) crash(name string, at time.Time) {
	if k.pod == nil || k.runs[name] == nil || k.runs[name].State.Running == nil {
		return
	}
	i := slices.IndexFunc(k.pod.Spec.Containers, func(x corev1.Container) bool { return x.Name == name })
	if i >= 0 {
		k.start(&k.pod.Spec.Containers[i], at, false)
	}
}

// runKubelets has every kubelet do all that it has to do now.
func (c *cluster) runKubelets() (moved bool) {
	moved = c.provision()
	for n, name := range c.names() {
		pod := c.pods[name]
		if pod.DeletionTimestamp != nil {
			c.terminate(pod)
			moved = true
			continue
		}
		moved = c.schedule(pod, []string{"a", "b", "c"}[n%3]) || moved
		if c.runsOn(pod) {
			k := c.kubelets[pod.UID]
			k.see(pod)
			k.act(c.now)
			moved = c.report(pod) || moved
		}
	}
	return moved
}
