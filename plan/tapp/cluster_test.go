package tapp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// cluster is a model of an API server with the shell of the controller in front:
// small, deterministic, and as unforgiving as the real one in what the plans
// depend on. Its kubelets are in kubelet_test.go.
type cluster struct {
	t      *rapid.T
	now    time.Time
	policy Policy
	tapp   *tappv1.TApp
	pods   map[string]*corev1.Pod
	claims map[string]*corev1.PersistentVolumeClaim
	// history are the revisions by name.
	history map[string]*appsv1.ControllerRevision
	nodes   map[string]NodeState
	// forUpdate is what the process knows of instances whose pods it deleted.
	forUpdate map[string]struct{}
	// kubelets by the UID of the pod that they run.
	kubelets map[types.UID]*kubelet
	// weather says whether a write fails; nil: none does.
	weather func(Action) bool
	writes  int
	uids    int
}

func newCluster(t *rapid.T, tapp *tappv1.TApp) *cluster {
	tapp.Name, tapp.Namespace, tapp.UID, tapp.Generation = "web", "shop", "tapp", 1
	c := &cluster{t: t, now: now, tapp: tapp, pods: map[string]*corev1.Pod{}, claims: map[string]*corev1.PersistentVolumeClaim{},
		history: map[string]*appsv1.ControllerRevision{}, forUpdate: map[string]struct{}{},
		nodes: map[string]NodeState{}, kubelets: map[types.UID]*kubelet{}, policy: Policy{NodeLostAfter: 5 * time.Minute, Resize: true}}
	for _, name := range []string{"a", "b", "c"} {
		c.nodes[name] = NodeState{Exists: true}
	}
	return c
}

// names of the pods in order: the model must not depend on the order of maps.
func (c *cluster) names() []string { return slices.Sorted(maps.Keys(c.pods)) }

// plan is what the shell does before it writes: read the cache, and read nodes
// live when the plan asks for that.
func (c *cluster) plan() (Input, Plan) {
	in := Input{TApp: c.tapp.DeepCopy(), Now: c.now, Policy: c.policy}
	for _, name := range c.names() {
		in.Pods = append(in.Pods, c.pods[name].DeepCopy())
	}
	for _, name := range slices.Sorted(maps.Keys(c.claims)) {
		in.Claims = append(in.Claims, c.claims[name].DeepCopy())
	}
	for _, name := range slices.Sorted(maps.Keys(c.history)) {
		r := c.history[name].DeepCopy()
		r.Data = runtime.RawExtension{}
		in.Revisions = append(in.Revisions, r)
	}
	in.ForUpdate = maps.Clone(c.forUpdate)
	p := Compute(in)
	if p.NeedsRevisions {
		for n, r := range in.Revisions {
			in.Revisions[n] = c.history[r.Name].DeepCopy()
		}
		in.RevisionsRead = true
		p = Compute(in)
	}
	if len(p.Evidence) > 0 {
		in.Nodes = map[string]NodeState{}
		for _, name := range p.Evidence {
			in.Nodes[name] = c.nodes[name]
		}
		p = Compute(in)
	}
	judge(c.t, in, p)
	return in, p
}

// apply carries out a plan that was made of an observation that may be old by
// now, and stores the status when it changed.
func (c *cluster) apply(p Plan) {
	// A claim comes before the pod that mounts it, and when that fails the pod does
	// not come. Otherwise all actions are carried out at once, so that any of them
	// may fail.
	failed := map[string]bool{}
	for _, a := range p.History {
		if c.weather == nil || !c.weather(a) {
			c.remember(a)
		}
	}
	for _, a := range p.Actions {
		if failed[a.ID] || c.weather != nil && c.weather(a) {
			failed[a.ID] = true
			continue
		}
		c.write(a)
	}
	if c.weather != nil && c.weather(Action{}) {
		return // with plans that go by the stored status
	}
	if !equality.Semantic.DeepEqual(c.tapp.Status, p.Status) && c.tapp.Generation == p.Status.ObservedGeneration {
		c.tapp.Status = *p.Status.DeepCopy()
		c.writes++
	}
}

func (c *cluster) write(a Action) {
	c.writes++
	switch a.Op {
	case OpCreateClaim:
		if c.claims[a.Claim.Name] == nil {
			made := a.Claim.DeepCopy()
			c.uids++
			made.UID = types.UID(fmt.Sprintf("claim-%d", c.uids))
			c.claims[made.Name] = made
		}
	case OpUpdateClaim:
		if has := c.claims[a.Claim.Name]; has != nil && has.UID == a.UID() {
			merge(c.t, has, a.Patch)
		}
	case OpDeleteClaim:
		if has := c.claims[a.Claim.Name]; has != nil && has.UID == a.UID() {
			delete(c.claims, a.Claim.Name)
		}
	case OpCreate:
		c.create(a)
	case OpReplace:
		if old := c.pods[a.Old.Name]; old != nil && old.UID == a.UID() {
			c.delete(old)
		}
		c.create(a)
	case OpDelete:
		if pod := c.pods[a.Pod.Name]; pod != nil && pod.UID == a.UID() {
			if c.delete(pod); a.ForUpdate {
				c.forUpdate[a.ID] = struct{}{}
			}
		}
	case OpForceDelete:
		if pod := c.pods[a.Pod.Name]; pod != nil && pod.UID == a.UID() && pod.ResourceVersion == a.Pod.ResourceVersion {
			delete(c.pods, a.Pod.Name)
		}
	default:
		if a.Op == OpResize && c.weather != nil && sometimes(c.t, "node too small", 4) {
			a.Op, a.Patch = OpRelabel, a.Refused
		}
		if pod := c.pods[a.Pod.Name]; pod != nil && pod.UID == a.UID() { // else: the precondition fails
			c.patch(pod, a)
		}
	}
}

// create is a POST, and the second write that opens the gate.
func (c *cluster) create(a Action) {
	if c.pods[a.Pod.Name] != nil {
		return // AlreadyExists
	}
	for _, v := range a.Pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil && c.claims[v.PersistentVolumeClaim.ClaimName] == nil {
			c.t.Fatalf("pod %s mounts claim %s, which does not exist", a.Pod.Name, v.PersistentVolumeClaim.ClaimName)
		}
	}
	pod := a.Pod.DeepCopy()
	c.uids++
	pod.UID = types.UID(fmt.Sprintf("pod-%d", c.uids))
	pod.CreationTimestamp, pod.Generation = metav1.NewTime(c.now), 1
	pod.Status.Phase = corev1.PodPending
	c.pods[pod.Name] = pod
	c.touch(pod)
	c.kubelets[pod.UID] = &kubelet{}
	if a.Status != nil && (c.weather == nil || !c.weather(a)) {
		merge(c.t, pod, a.Status)
		c.touch(pod)
		c.writes++
	}
}

func (c *cluster) touch(pod *corev1.Pod) {
	c.uids++
	pod.ResourceVersion = fmt.Sprint(c.uids)
}

// delete is what the API server does: what runs nowhere goes at once.
func (c *cluster) delete(pod *corev1.Pod) {
	switch {
	case pod.DeletionTimestamp != nil:
	case isEnded(pod) || pod.Spec.NodeName == "":
		delete(c.pods, pod.Name)
	default:
		pod.DeletionTimestamp = new(metav1.NewTime(c.now.Add(30 * time.Second)))
		c.touch(pod)
	}
}

// patch merges a patch of the pod or of its status, and lets through what an API
// server lets through.
func (c *cluster) patch(pod *corev1.Pod, a Action) {
	old := pod.DeepCopy()
	for _, patch := range [][]byte{a.Patch, a.Status} {
		if patch != nil {
			merge(c.t, pod, patch)
		}
	}
	if a.Op == OpRelabel && a.Patch == nil {
		c.t.Fatalf("Relabel %s changes nothing", a.ID)
	}
	if a.Status != nil && !equality.Semantic.DeepEqual(old.Spec, pod.Spec) {
		c.t.Fatalf("%s %s changes the spec by a patch of the status", a.Op, a.ID)
	}
	images := func(spec *corev1.PodSpec) []byte {
		spec = spec.DeepCopy()
		for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
			for i := range list {
				if a.Op == OpResize {
					list[i].Resources = corev1.ResourceRequirements{}
				} else {
					list[i].Image = ""
				}
			}
		}
		text, _ := json.Marshal(spec)
		return text
	}
	if !bytes.Equal(images(&old.Spec), images(&pod.Spec)) {
		c.t.Fatalf("%s %s changes more than images, or resources: %s", a.Op, a.ID, a.Patch)
	}
	if !equality.Semantic.DeepEqual(old.Spec, pod.Spec) {
		pod.Generation++
		switch a.Op {
		case OpUpdateInPlace:
		case OpResize:
			c.refuse(pod)
		default:
			c.t.Fatalf("%s %s changes the spec: %s", a.Op, a.ID, a.Patch)
		}
	}
	c.touch(pod)
}

// edit is a user's write of the spec.
func (c *cluster) edit(change func(*tappv1.TAppSpec)) {
	old := c.tapp.Spec.DeepCopy()
	change(&c.tapp.Spec)
	if !equality.Semantic.DeepEqual(*old, c.tapp.Spec) {
		c.tapp.Generation++
	}
}

// calm lets everything that can happen happen, until nothing does any more: L1.
// Then there are no actions, no writes and nothing to wait for.
func (c *cluster) calm() Plan {
	c.weather = nil
	for name := range c.nodes {
		c.nodes[name] = NodeState{Exists: true}
	}
	const most = 600
	for range most {
		before := c.writes
		_, p := c.plan()
		c.apply(p)
		moved := c.runKubelets()
		if c.writes > before || moved {
			c.now = c.now.Add(time.Second)
			continue
		}
		if p.Wait == 0 {
			c.atRest()
			return p
		}
		c.now = c.now.Add(p.Wait)
	}
	_, p := c.plan()
	c.t.Fatalf("L1: no rest after %d rounds\n%s", most, c.describe(p))
	return Plan{}
}

// atRest: however late it is, there is nothing to do and nothing to write.
func (c *cluster) atRest() {
	c.now = c.now.Add(24 * time.Hour)
	if _, p := c.plan(); len(p.Actions)+len(p.History) > 0 || !equality.Semantic.DeepEqual(c.tapp.Status, p.Status) {
		c.t.Fatalf("L1: not at rest\n%s\nstored %+v", c.describe(p), c.tapp.Status)
	}
}

func (c *cluster) describe(p Plan) string {
	var b bytes.Buffer
	for _, a := range append(p.History, p.Actions...) {
		fmt.Fprintf(&b, "%s %s %s: %s\n", a.Op, a.ID, a.Reason, a.Why)
	}
	for _, i := range p.Instances {
		fmt.Fprintf(&b, "%s %s available %t current %t %s: %s\n", i.ID, i.Status, i.Available, i.Current, i.Reason, i.Why)
	}
	for _, x := range p.Status.Conditions {
		fmt.Fprintf(&b, "%s=%s %s: %s\n", x.Type, x.Status, x.Reason, x.Message)
	}
	for _, name := range c.names() {
		pod := c.pods[name]
		fmt.Fprintf(&b, "pod %s %s %s, generation %d, labels %v, owned %t, dying %t\n", pod.Name, pod.UID, pod.Status.Phase,
			pod.Generation, pod.Labels, controls(c.tapp, pod), pod.DeletionTimestamp != nil)
		for _, x := range pod.Spec.Containers {
			fmt.Fprintf(&b, "  %s %s\n", x.Name, x.Image)
		}
		for _, x := range pod.Status.ContainerStatuses {
			fmt.Fprintf(&b, "  %s: %+v\n", x.Name, x)
		}
		for _, x := range pod.Status.Conditions {
			fmt.Fprintf(&b, "  %s=%s since %s\n", x.Type, x.Status, x.LastTransitionTime.UTC().Format(time.TimeOnly))
		}
	}
	fmt.Fprintf(&b, "wait %s\n", p.Wait)
	return b.String()
}
