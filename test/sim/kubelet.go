package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"tkestack.io/tapp/test/sim/apiserver"
)

// An image whose tag begins with one of these is never pulled, never gets ready, or
// ends again and again.
const (
	neverPulled = "bad"
	neverReady  = "sick"
	crashes     = "crash"
)

// sandbox is what a kubelet knows of one pod. Seeing, acting and reporting are steps
// of their own, so that the status lags behind it, and it behind the spec.
type sandbox struct {
	uid  types.UID
	key  string
	node string
	seen *corev1.Pod
	// began is when it was seen first, by the clock of its node, and seenAt when it was seen last.
	began  metav1.Time
	seenAt time.Time
	runs   map[string]*corev1.ContainerStatus
	next   int
	// settling: containers that started and are not ready yet.
	settling bool
	// ended is the phase of a pod that has ended; stopped: all has been killed.
	ended   corev1.PodPhase
	reason  string
	stopped bool
	// hangs: its kubelet does not get on with ending it.
	hangs bool
	// lost: it was taken away, and byItself: it ended by itself, at endedAt. disrupted is what
	// its kubelet says of that.
	lost, byItself bool
	endedAt        metav1.Time
	disrupted      *corev1.PodCondition
	// byUpdate: the pod, or a container of it, ended because an update killed it, and what
	// follows it was never started.
	byUpdate bool
	// cpu that the node gave each container, where it does not resize.
	cpu map[string]resource.Quantity
	// unreported: the status of the API server may not be what this one is.
	unreported bool
}

// kubelets of all nodes.
type kubelets struct {
	*apiserver.Server
	sandboxes map[types.UID]*sandbox
	// slow kubelets take a step between a container's start and its readiness.
	slow bool
	// down are the nodes whose kubelet is silent. What it runs goes on.
	down map[string]bool
	// classes of the run.
	classes []string
	// refusing is how many pods that come to a node are refused there.
	refusing int
	// lost is the node that never comes back; empty: each does.
	lost string
	// idle is true while the garbage collector stands still.
	idle bool
}

// due lists the pods that a kubelet has something to do about, by key.
func (k *kubelets) due() []string {
	var out []string
	for _, name := range k.Tables[pods].Keys() {
		pod := k.Tables[pods].Objects[name].(*corev1.Pod)
		if pod.Spec.NodeName == "" || k.down[pod.Spec.NodeName] || k.Get(nodes, pod.Spec.NodeName) == nil {
			continue
		}
		s := k.sandboxes[pod.UID]
		if s != nil && (s.hangs && k.holdsOut() || k.reportsLate(s, pod) && k.Now().Sub(s.seenAt) < late) {
			continue
		}
		if s == nil || s.seen.ResourceVersion != pod.ResourceVersion || s.unreported || s.settling ||
			pod.DeletionTimestamp != nil && !s.isHeld(pod) || len(s.runs) == 0 && s.ended == "" && k.mounted(pod) {
			out = append(out, name)
		}
	}
	return out
}

// step is the next thing that the kubelet of a pod does.
func (k *kubelets) step(key string) {
	pod, ok := apiserver.Find[*corev1.Pod](k.Store, pods, key)
	if !ok {
		return
	}
	s := k.sandboxes[pod.UID]
	switch {
	case s == nil:
		s = &sandbox{uid: pod.UID, key: keyOf(pod), node: pod.Spec.NodeName, runs: map[string]*corev1.ContainerStatus{}, began: k.clockOf(pod.Spec.NodeName)}
		k.sandboxes[pod.UID] = s
		if k.refuse(s) {
			s.seen = pod
			break
		}
		fallthrough
	case s.seen.ResourceVersion != pod.ResourceVersion:
		if k.reportsLate(s, pod) {
			break
		}
		s.seen, s.seenAt = pod, k.Now()
		if isFinished(pod) && s.ended == "" {
			s.ended = pod.Status.Phase
		}
		if pod.DeletionTimestamp != nil {
			break
		}
		k.act(s)
		k.forget()
		if k.slow || k.has(classLate) {
			return
		}
	case len(s.runs) == 0 && pod.DeletionTimestamp == nil:
		k.act(s)
	case s.settling && pod.DeletionTimestamp == nil:
		s.settle()
		s.seenAt = k.Now()
	}
	if pod.DeletionTimestamp != nil {
		k.terminate(s, pod)
		return
	}
	k.report(s, pod)
}

// forget kills what runs for pods that are gone.
func (k *kubelets) forget() {
	for _, s := range k.sandboxes {
		if pod, ok := apiserver.Find[*corev1.Pod](k.Store, pods, s.key); (!ok || pod.UID != s.uid) && !k.down[s.node] {
			s.stopped = true
		}
	}
}

// act starts what has to run, and restarts what has another image: if and only if the
// text of the image differs.
func (k *kubelets) act(s *sandbox) {
	if s.ended != "" || !k.mounted(s.seen) {
		return
	}
	if len(s.runs) == 0 {
		for i := range s.seen.Spec.InitContainers {
			k.start(s, &s.seen.Spec.InitContainers[i], true)
		}
	}
	for i := range s.seen.Spec.Containers {
		c := &s.seen.Spec.Containers[i]
		if has := s.runs[c.Name]; has == nil || has.Image != c.Image && has.State.Terminated == nil {
			k.start(s, c, false)
		}
	}
	s.unreported = true
}

// mounted says whether the claims of a pod are there.
func (k *kubelets) mounted(pod *corev1.Pod) bool {
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil && k.Get(claims, apiserver.KeyOf(pod.Namespace, v.PersistentVolumeClaim.ClaimName)) == nil {
			return false
		}
	}
	return true
}

func tagOf(image string) string {
	_, tag, _ := strings.Cut(image, ":")
	return tag
}

// start a container. An image that cannot be pulled leaves the container that was
// there dead.
func (k *kubelets) start(s *sandbox, c *corev1.Container, init bool) {
	old, now, tag := s.runs[c.Name], k.clockOf(s.node), tagOf(c.Image)
	policy := s.seen.Spec.RestartPolicy
	status := &corev1.ContainerStatus{Name: c.Name, Image: c.Image, ImageID: "sha256:" + c.Image, Started: ptr.To(true)}
	if old != nil {
		status.RestartCount = old.RestartCount + 1
		status.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ContainerID: old.ContainerID, FinishedAt: now}
	}
	s.runs[c.Name] = status
	if strings.HasPrefix(tag, neverPulled) {
		if old != nil && old.State.Running != nil && policy != corev1.RestartPolicyAlways && k.has(classExits) {
			k.stay(s, old, now)
			return
		}
		status.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: k.words()}
		status.Started = ptr.To(false)
		if old != nil {
			status.ContainerID, status.ImageID, status.RestartCount = old.ContainerID, old.ImageID, old.RestartCount
			if old.State.Waiting != nil {
				status.LastTerminationState = old.LastTerminationState
			}
		}
		return
	}
	s.next++
	status.ContainerID = fmt.Sprintf("containerd://%s-%d", s.uid, s.next)
	switch {
	case init:
		status.State.Terminated = &corev1.ContainerStateTerminated{ContainerID: status.ContainerID, FinishedAt: now, Reason: "Completed"}
		status.Ready = true
	case strings.HasPrefix(tag, crashes) && policy == corev1.RestartPolicyNever:
		k.end(s, corev1.PodFailed, "")
	case strings.HasPrefix(tag, crashes):
		status.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: k.words()}
		status.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ContainerID: status.ContainerID, FinishedAt: now, ExitCode: 1}
		status.Started = ptr.To(false)
	default:
		status.State.Running = &corev1.ContainerStateRunning{StartedAt: now}
		s.settling = true
		if !k.slow {
			s.settle()
		}
	}
}

// settle makes ready what runs.
func (s *sandbox) settle() {
	s.settling = false
	for _, c := range s.runs {
		if c.State.Running != nil && !c.Ready && !strings.HasPrefix(tagOf(c.Image), neverReady) {
			c.Ready = true
			s.unreported = true
		}
	}
}

// report writes the pod's status. Ready is the containers and the gates, as the
// kubelet saw them.
func (k *kubelets) report(s *sandbox, pod *corev1.Pod) {
	s.unreported = false
	k.write(keyOf(pod), pod.UID, "kubelet", func(p *corev1.Pod) {
		if !k.has(classOldKubelets) {
			p.Status.ObservedGeneration = s.seen.Generation
		}
		if p.Status.StartTime == nil {
			p.Status.StartTime = &s.began
		}
		k.resize(s, p)
		p.Status.InitContainerStatuses = s.statuses(s.seen.Spec.InitContainers)
		p.Status.ContainerStatuses = s.statuses(s.seen.Spec.Containers)
		ready := len(p.Status.ContainerStatuses) == len(s.seen.Spec.Containers)
		p.Status.Phase = corev1.PodPending
		for _, c := range p.Status.ContainerStatuses {
			ready = ready && c.Ready
			if c.ContainerID != "" {
				p.Status.Phase = corev1.PodRunning
			}
		}
		if s.ended != "" {
			ready = false
			p.Status.Phase, p.Status.Reason = s.ended, s.reason
		}
		if s.disrupted != nil { // its own word goes before another's
			p.Status.Conditions = slices.DeleteFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.DisruptionTarget })
			p.Status.Conditions = append(p.Status.Conditions, *s.disrupted)
		}
		setCondition(p, corev1.ContainersReady, ready, k.foundAt(s))
		setReady(p, ready && gatesOpen(s.seen), k.foundAt(s))
	})
}

func (s *sandbox) statuses(list []corev1.Container) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for _, c := range list {
		if has := s.runs[c.Name]; has != nil {
			status := *has.DeepCopy()
			status.Resources, status.AllocatedResources = c.Resources.DeepCopy(), c.Resources.Requests.DeepCopy()
			out = append(out, status)
		}
	}
	return out
}

// write changes the status of a pod, if it is still that one.
func (k *kubelets) write(key string, uid types.UID, who string, edit func(*corev1.Pod)) {
	pod, ok := apiserver.Find[*corev1.Pod](k.Store, pods, key)
	if !ok || pod.UID != uid {
		return
	}
	next := pod.DeepCopy()
	edit(next)
	if equality.Semantic.DeepEqual(pod.Status, next.Status) {
		return
	}
	_, _ = k.Update(pods, key, "status", k.as(who), func(o object) error { return apiserver.Assign(o, next) })
}

// terminate ends a pod that is being deleted: it stops, gets a final phase, as
// kubelets do, and goes.
func (k *kubelets) terminate(s *sandbox, pod *corev1.Pod) {
	if !s.stopped {
		s.stopped = true
		if s.ended == "" {
			k.end(s, corev1.PodFailed, "")
		}
		k.report(s, pod)
		return
	}
	if len(pod.Finalizers) == 0 || *pod.DeletionGracePeriodSeconds > 0 {
		_, _ = k.Remove(pods, keyOf(pod), metav1.DeleteOptions{GracePeriodSeconds: new(int64),
			Preconditions: &metav1.Preconditions{UID: &pod.UID}}, k.as("kubelet"))
	}
}

// end is a pod that ends.
func (k *kubelets) end(s *sandbox, phase corev1.PodPhase, reason string) {
	s.ended, s.reason, s.unreported, s.endedAt = phase, reason, true, k.clockOf(s.node)
	code := int32(0)
	if phase == corev1.PodFailed {
		code = 1
	}
	for _, name := range apiserver.SortedKeys(s.runs) {
		c := s.runs[name]
		c.Ready = false
		c.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: s.endedAt, ContainerID: c.ContainerID, ExitCode: code}}
	}
}

// crash restarts a container by itself.
func (k *kubelets) crash(s *sandbox) {
	if s.seen == nil || s.ended != "" || s.stopped {
		return
	}
	i := slices.IndexFunc(s.seen.Spec.Containers, func(c corev1.Container) bool { return s.runs[c.Name] != nil && s.runs[c.Name].State.Running != nil })
	switch {
	case i < 0:
	case s.seen.Spec.RestartPolicy == corev1.RestartPolicyNever:
		s.byItself = true
		k.end(s, corev1.PodFailed, "")
	default:
		k.start(s, &s.seen.Spec.Containers[i], false)
		s.unreported = true
	}
}
