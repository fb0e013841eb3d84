package tapp

import (
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/template"
)

func fullPod(name, memory string) *corev1.Pod {
	pod := ownedBy(somePod(name, "u-"+name, "1"), "TApp", "a", "uid-a")
	pod.Spec = corev1.PodSpec{
		Tolerations:     []corev1.Toleration{{Key: "k", TolerationSeconds: ptr.To(int64(300))}},
		SecurityContext: &corev1.PodSecurityContext{RunAsUser: ptr.To(int64(7))},
		Volumes:         []corev1.Volume{{Name: "token-" + name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}}},
		Containers: []corev1.Container{{Name: "main", Env: []corev1.EnvVar{{Name: "E", Value: "v"}},
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}}}},
	}
	return pod
}

// TestCompact: pods share what is equal, and say what they said before.
func TestCompact(t *testing.T) {
	c := newCompactor()
	pods := []*corev1.Pod{fullPod("a-0", "1Gi"), fullPod("a-1", "1Gi"), fullPod("a-2", "2Gi")}
	for _, p := range pods {
		before := p.DeepCopy()
		before.ManagedFields = []metav1.ManagedFieldsEntry{} // it is trimmed
		if _, err := c.compact(p); err != nil || !reflect.DeepEqual(p, before) {
			t.Errorf("got %+v and error %v, want it to say what it said", p, err)
		}
	}
	a, b, other := &pods[0].Spec, &pods[1].Spec, &pods[2].Spec
	if &a.Tolerations[0] != &b.Tolerations[0] || a.SecurityContext != b.SecurityContext || a.Volumes[0].Projected != b.Volumes[0].Projected ||
		&a.Containers[0].Env[0] != &b.Containers[0].Env[0] {
		t.Error("equal parts are not shared")
	}
	if b.Volumes[0].Name != "token-a-1" || other.Containers[0].Resources.Limits.Memory().String() != "2Gi" {
		t.Error("what differs is lost")
	}
	loner := somePod("x-1", "u", "1")
	if _, err := c.compact(loner); err != nil || len(c.models) != 1 {
		t.Errorf("a pod without an owner: %v, %d models", err, len(c.models))
	}
}

// TestCompactKeepsOverwritten: of managedFields a cached pod keeps whose image somebody wrote,
// however often it is compacted.
func TestCompactKeepsOverwritten(t *testing.T) {
	pod := fullPod("a-0", "1Gi")
	pod.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "tapp", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{"f:name":{}}}}}`)},
		{Manager: "kubectl-set", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{"f:image":{}}}}}`)},
	}
	c := newCompactor()
	for range 2 {
		if _, err := c.compact(pod); err != nil {
			t.Fatal(err)
		}
		if got := template.Overwritten(pod); len(pod.ManagedFields) != 1 || !slices.Equal(got, []string{"main"}) {
			t.Errorf("%d entries, overwritten %q", len(pod.ManagedFields), got)
		}
	}
}

const oldHash, newHash = "v1-0123456789abcdef", "v1-fedcba9876543210"

// storedPod is a pod as the API server has it, and as its kubelet reports it.
func storedPod(id int, hash string) *corev1.Pod {
	name := "a-" + strconv.Itoa(id)
	token := "kube-api-access-" + strconv.Itoa(10000+id)
	pod := ownedBy(somePod(name, "u-"+name, "1"), "TApp", "a", "uid-a")
	pod.Labels = map[string]string{tappv1.LabelInstanceID: strconv.Itoa(id), tappv1.LabelTemplateHash: hash, "app": "a"}
	pod.Spec = corev1.PodSpec{
		NodeName: "node-" + strconv.Itoa(id%7), Hostname: name, Subdomain: "a", RestartPolicy: corev1.RestartPolicyAlways,
		Volumes: []corev1.Volume{
			{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-" + name}}},
			{Name: token, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{DefaultMode: ptr.To(int32(420))}}},
		},
		Containers: []corev1.Container{
			{Name: "main", Image: "image:" + hash, VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}, {Name: token, MountPath: "/var/run/secrets"}}},
			{Name: "side", Image: "side:1", VolumeMounts: []corev1.VolumeMount{{Name: token, MountPath: "/var/run/secrets"}}},
		},
	}
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "main", Image: "image:" + hash, ContainerID: "containerd://" + name, Ready: true,
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: "containerd://earlier-" + name}},
	}}}
	return pod
}

// TestCompactSpec: pods of one template hold one spec, in the middle of an update too,
// and keep what is each one's own.
func TestCompactSpec(t *testing.T) {
	c := newCompactor()
	hashes := []string{oldHash, newHash}
	var pods []*corev1.Pod
	for id := range 6 {
		pod := storedPod(id, hashes[id%2])
		if _, err := c.compact(pod); err != nil {
			t.Fatal(err)
		}
		pods = append(pods, pod)
	}
	for id, pod := range pods {
		name := "a-" + strconv.Itoa(id)
		if &pod.Spec.Containers[0] != &pods[id%2].Spec.Containers[0] {
			t.Errorf("the containers of %s are not shared", name)
		}
		want := storedPod(id, hashes[id%2])
		want.ManagedFields = []metav1.ManagedFieldsEntry{} // it is trimmed
		want.Spec.Volumes = want.Spec.Volumes[:1]
		want.Spec.Containers[0].VolumeMounts = want.Spec.Containers[0].VolumeMounts[:1]
		want.Spec.Containers[1].VolumeMounts = nil
		want.Status.ContainerStatuses[0].LastTerminationState = corev1.ContainerState{}
		if !reflect.DeepEqual(pod, want) {
			t.Errorf("got  %+v\nwant %+v", pod, want)
		}
	}
}

// TestCompactKeepsWhatIsCompared: a pod whose hash is not ours is compared with its
// template field by field, so that it keeps every volume.
func TestCompactKeepsWhatIsCompared(t *testing.T) {
	for _, hash := range []string{"", "1234567890"} {
		pod := storedPod(0, hash)
		want := pod.Spec.DeepCopy()
		if _, err := newCompactor().compact(pod); err != nil || !reflect.DeepEqual(&pod.Spec, want) {
			t.Errorf("hash %q: got %+v and error %v, want %+v", hash, pod.Spec, err, want)
		}
	}
}

// TestCompactBytes: what a cached pod costs, which 10,000 of them cost 10,000 times.
func TestCompactBytes(t *testing.T) {
	const pods, most = 2000, 2700
	c := newCompactor()
	held := make([]*corev1.Pod, pods)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for id := range held {
		data, err := storedPod(id, oldHash).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		held[id] = &corev1.Pod{}
		if err := held[id].Unmarshal(data); err != nil {
			t.Fatal(err)
		}
		if _, err := c.compact(held[id]); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if each := (after.HeapAlloc - before.HeapAlloc) / pods; each > most {
		t.Errorf("%d bytes a pod, want at most %d", each, most)
	} else {
		t.Logf("%d bytes a pod", each)
	}
	runtime.KeepAlive(held)
}

// TestCompactWords: words that pods have in common are one string, and those of an
// instance alone are not remembered.
func TestCompactWords(t *testing.T) {
	c := newCompactor()
	var images []string
	for id := range 100 {
		pod := fullPod("a-"+strconv.Itoa(id), "1Gi")
		pod.Labels = map[string]string{tappv1.LabelInstanceID: strconv.Itoa(id), tappv1.LabelPodIndex: strings.Clone(strconv.Itoa(id)), "app": "a"}
		pod.Spec.Containers[0].Image = strings.Clone("image:1")
		want := maps.Clone(pod.Labels)
		if _, err := c.compact(pod); err != nil || !maps.Equal(pod.Labels, want) {
			t.Fatalf("labels %v and error %v, want %v", pod.Labels, err, want)
		}
		images = append(images, pod.Spec.Containers[0].Image)
		if unsafe.StringData(pod.Labels[tappv1.LabelInstanceID]) != unsafe.StringData(pod.Labels[tappv1.LabelPodIndex]) {
			t.Fatal("an id is held twice")
		}
	}
	for _, image := range images {
		if unsafe.StringData(image) != unsafe.StringData(images[0]) {
			t.Fatal("an image is held more than once")
		}
	}
	if len(c.words) > 20 {
		t.Errorf("%d words are remembered: %v", len(c.words), slices.Sorted(maps.Keys(c.words)))
	}
}

// TestCompactTwice: client-go compacts listed pods twice. The second time nothing is
// written to what they share with cached pods, not even an equal string.
func TestCompactTwice(t *testing.T) {
	c := newCompactor()
	compact := func(name, owner string) *corev1.Pod {
		pod := fullPod(name, "1Gi")
		pod.OwnerReferences[0].UID = types.UID(owner)
		pod.Spec.Containers[0].Image = strings.Clone("image:1")
		if _, err := c.compact(pod); err != nil {
			t.Fatal(err)
		}
		return pod
	}
	cached, listed := compact("a-0", "uid-a"), compact("a-1", "uid-a")
	if &listed.Spec.Containers[0] != &cached.Spec.Containers[0] {
		t.Fatal("containers are not shared")
	}
	clear(c.words) // as when there are too many
	compact("b-0", "uid-b")
	image := &cached.Spec.Containers[0].Image
	before := unsafe.StringData(*image)
	var reader sync.WaitGroup
	reader.Go(func() { _ = strings.Clone(*image) }) // as a sync does; the race detector watches
	_, err := c.compact(listed)
	reader.Wait()
	if err != nil || unsafe.StringData(*image) != before {
		t.Errorf("a cached pod was written to, or %v", err)
	}
}

// TestTrimStatus: the planner's answers do not depend on what is dropped.
func TestTrimStatus(t *testing.T) {
	condition := func(kind corev1.PodConditionType, status corev1.ConditionStatus) corev1.PodCondition {
		return corev1.PodCondition{Type: kind, Status: status}
	}
	s := corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: "10.0.0.1", PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}}, HostIP: "10.0.0.2", HostIPs: []corev1.HostIP{{IP: "10.0.0.2"}},
		Conditions: []corev1.PodCondition{
			condition(corev1.PodScheduled, corev1.ConditionTrue), condition(corev1.PodInitialized, corev1.ConditionFalse), condition(corev1.PodReady, corev1.ConditionTrue),
			condition(corev1.ContainersReady, corev1.ConditionTrue), condition(corev1.DisruptionTarget, corev1.ConditionTrue), condition(tappv1.GateInPlaceUpdate, corev1.ConditionTrue),
		},
		ContainerStatuses: []corev1.ContainerStatus{{Name: "main", Ready: true, VolumeMounts: []corev1.VolumeMountStatus{{Name: "v"}}}},
	}
	trimStatus(&s)
	want := corev1.PodStatus{
		Phase: corev1.PodRunning,
		Conditions: []corev1.PodCondition{
			condition(corev1.PodInitialized, corev1.ConditionFalse), condition(corev1.PodReady, corev1.ConditionTrue),
			condition(corev1.DisruptionTarget, corev1.ConditionTrue), condition(tappv1.GateInPlaceUpdate, corev1.ConditionTrue),
		},
		ContainerStatuses: []corev1.ContainerStatus{{Name: "main", Ready: true}},
	}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("got  %+v\nwant %+v", s, want)
	}
	unscheduled := corev1.PodStatus{Conditions: []corev1.PodCondition{condition(corev1.PodScheduled, corev1.ConditionFalse)}}
	if trimStatus(&unscheduled); len(unscheduled.Conditions) != 1 {
		t.Error("why a pod has no node is lost")
	}
	silent := corev1.PodStatus{Conditions: []corev1.PodCondition{condition(corev1.PodReady, corev1.ConditionFalse), condition(corev1.ContainersReady, corev1.ConditionTrue)}}
	if trimStatus(&silent); len(silent.Conditions) != 2 {
		t.Error("who called a pod not ready is lost")
	}
}

func TestCompactorIsBounded(t *testing.T) {
	c := newCompactor()
	for n := range 3 * maxModels {
		pod := ownedBy(somePod("a-1", "u", "1"), "TApp", "a", string(rune('A'+n)))
		if _, err := c.compact(pod); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.models) > maxModels || len(c.words) > maxWords+100 {
		t.Errorf("%d models and %d words", len(c.models), len(c.words))
	}
}
