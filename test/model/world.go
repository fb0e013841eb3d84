package main

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
)

// Config is one space to explore: what users do not edit in it, and how fine it is.
type Config struct {
	Name      string
	Instances int
	// Rolling and Forced are the budgets.
	Rolling, Forced intstr.IntOrString
	Policy          tappv1.InPlaceUpdatePolicy
	Paused          bool
	// Gated: pods are made with the readiness gate.
	Gated    bool
	MinReady int32
	Force    bool // spec.forceDeletePod
	// Keep is DeletePodAfterAppFinish.
	Keep bool

	// Images is the number of images that the templates of one shape have had.
	Images uint8
	// Coarse: a kubelet does at once what otherwise are steps.
	Coarse bool
	// Killed: users stop and start instances. Forces: they give them the template that
	// updates by force. Scaled: they scale.
	Killed, Forces, Scaled bool
	// Roles that the instances have for good, one letter each: r or f.
	Roles string
	// Late: writes are made one step after they were planned, too.
	Late bool
	// Ends: pods succeed and are rejected. Crashes: containers restart by themselves.
	// Owners: pods lose their owner, and others take their names. Lost: nodes are lost.
	Ends, Crashes, Owners, Lost bool
}

// world makes the planner's input of the states of one space. Objects are built
// once, and shared by all states that have them.
type world struct {
	Config
	compute func(plan.Input) plan.Plan
	now     time.Time

	base      [2]map[uint8]*corev1.Pod // gated or not: the pods of instance 0 by version, as created
	hashes    map[string]uint8         // template hash to version
	pods      map[placed]*corev1.Pod
	tapps     map[tappKey]*tappv1.TApp
	revisions []*appsv1.ControllerRevision
	former    []*appsv1.ControllerRevision // of the versions, the oldest first
	patches   map[patchKey]pod
	grown     map[instance][]step
	edited    map[instance][]step
}

type placed struct {
	id  int
	pod pod
}

const most = 4 // instances

// state of the TApp and its instances.
type state [most]instance

type wish struct {
	role   role
	stored end
	told   bool
}

type tappKey [most]wish

// shape is the version that differs in more than the image.
func (w *world) shape() uint8 { return w.Images }

func newWorld(c Config, compute func(plan.Input) plan.Plan) (*world, error) {
	w := &world{
		Config: c, compute: compute, now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC),
		hashes: map[string]uint8{}, pods: map[placed]*corev1.Pod{}, tapps: map[tappKey]*tappv1.TApp{},
		patches: map[patchKey]pod{}, grown: map[instance][]step{}, edited: map[instance][]step{},
	}
	for g := range 2 {
		w.base[g] = map[uint8]*corev1.Pod{}
		for v := range w.Images + 1 {
			t := w.newTApp(state{})
			t.Spec.Replicas, t.Spec.UpdateStrategy.InPlaceUpdate.Drain = new(int32(1)), new(g == 1)
			t.Spec.Template = w.template(v)
			p := plan.Compute(plan.Input{TApp: t, Now: w.now})
			if len(p.Actions) != 1 || p.Actions[0].Op != plan.OpCreate || len(p.History) != 1 {
				return nil, fmt.Errorf("a new TApp does not create its pod: %+v", p)
			}
			w.base[g][v] = p.Actions[0].Pod
			if r := p.History[0].Revision.DeepCopy(); g == 0 && v > 0 {
				r.UID, r.Revision = types.UID("revision-"+strconv.Itoa(int(v))), int64(v)
				w.former = append(w.former, r)
			}
			w.hashes[p.Actions[0].Pod.Labels[tappv1.LabelTemplateHash]] = v
		}
	}
	if err := w.record(); err != nil {
		return nil, err
	}
	return w, nil
}

// record makes the revision of the spec: what is left of a rollout then are the pods.
func (w *world) record() error {
	p := plan.Compute(plan.Input{TApp: w.newTApp(state{}), Now: w.now})
	if len(p.History) != 1 || p.History[0].Op != plan.OpCreateRevision {
		return fmt.Errorf("a new TApp does not record its revision: %+v", p.History)
	}
	r := p.History[0].Revision.DeepCopy()
	r.UID, r.Revision = "revision", int64(w.Images)+2 // the newest
	w.revisions = []*appsv1.ControllerRevision{r}
	clear(w.tapps)
	return nil
}

func image(v uint8) string { return "web:" + strconv.Itoa(int(v)) }

func (w *world) template(v uint8) corev1.PodTemplateSpec {
	t := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}}
	t.Spec.RestartPolicy = corev1.RestartPolicyOnFailure // one that succeeds has come to its end
	c := corev1.Container{Name: "main", Image: image(v)}
	if v == w.shape() {
		c.WorkingDir = "/old"
	}
	t.Spec.Containers = []corev1.Container{c}
	return t
}

const forcedTemplate = "forced"

// newTApp makes the TApp of a state, with the status that is stored.
func (w *world) newTApp(s state) *tappv1.TApp {
	t := &tappv1.TApp{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "tapp", Generation: 1}}
	t.Spec = tappv1.TAppSpec{
		Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		Template:     w.template(0),
		TemplatePool: map[string]corev1.PodTemplateSpec{forcedTemplate: w.template(0)},
		Templates:    map[string]string{}, Statuses: map[string]tappv1.InstanceStatus{},
		Paused: w.Paused, MinReadySeconds: w.MinReady, ForceDeletePod: w.Force,
	}
	u := &t.Spec.UpdateStrategy
	u.MaxUnavailable, u.ForceUpdate.MaxUnavailable = &w.Rolling, &w.Forced
	u.InPlaceUpdate.Policy, u.InPlaceUpdate.Drain = w.Policy, &w.Gated
	replicas := int32(0)
	t.Status.Statuses = map[string]tappv1.InstanceStatus{}
	told := ""
	for num := range w.Instances {
		i, id := s[num], strconv.Itoa(num)
		if i.role != beyond {
			replicas = int32(num) + 1
		}
		switch i.role {
		case forced:
			t.Spec.Templates[id] = forcedTemplate
		case killed:
			t.Spec.Statuses[id] = tappv1.InstanceKilled
		}
		switch i.stored {
		case succeeded:
			t.Status.Statuses[id] = tappv1.InstanceSucc
		case failed:
			t.Status.Statuses[id] = tappv1.InstanceFailed
		}
		if i.told {
			told += "; " + words(num)
		}
	}
	t.Spec.Replicas = &replicas
	if told != "" {
		t.Status.Conditions = []metav1.Condition{{Type: tappv1.ConditionForceDeleted, Status: metav1.ConditionTrue, Reason: "NodeLost",
			Message: told[len("; "):], LastTransitionTime: metav1.NewTime(w.now)}}
	}
	if len(w.revisions) > 0 {
		t.Status.ObservedGeneration = 1
		t.Status.UpdateRevision, t.Status.CurrentRevision = w.revisions[0].Name, w.revisions[0].Name
	}
	return t
}

// words of the evidence that the node of an instance is lost.
func words(num int) string { return fmt.Sprintf("node node-%d does not exist any more", num) }

// tapp of a state, shared.
func (w *world) tapp(s *state) *tappv1.TApp {
	var key tappKey
	for num := range w.Instances {
		key[num] = wish{s[num].role, s[num].stored, s[num].told}
	}
	t := w.tapps[key]
	if t == nil {
		t = w.newTApp(*s)
		w.tapps[key] = t
	}
	return t
}

// input of the planner in a state.
func (w *world) input(s *state) plan.Input {
	in := plan.Input{TApp: w.tapp(s), Revisions: w.revisions, Now: w.now,
		Policy: plan.Policy{DeletePodAfterAppFinish: w.Keep, NodeLostAfter: 5 * time.Minute}}
	in.Pods = make([]*corev1.Pod, 0, w.Instances)
	for num := range w.Instances {
		if s[num].pod.forUpdate {
			if in.ForUpdate == nil {
				in.ForUpdate = map[string]struct{}{}
			}
			in.ForUpdate[strconv.Itoa(num)] = struct{}{}
		}
		if s[num].pod.place != none {
			in.Pods = append(in.Pods, w.concrete(num, s[num].pod))
		}
	}
	return in
}

// plan is what the shell does: when the plan asks for evidence it reads the nodes,
// and plans again.
func (w *world) plan(s *state) (plan.Input, plan.Plan) {
	in := w.input(s)
	p := w.compute(in)
	if p.NeedsRevisions {
		in.Revisions, in.RevisionsRead = append(slices.Clone(w.former), w.revisions...), true
		p = w.compute(in)
	}
	if len(p.Evidence) == 0 {
		return in, p
	}
	in.Nodes = map[string]plan.NodeState{}
	for num := range w.Instances {
		in.Nodes[nodeOf(num)] = plan.NodeState{Exists: !s[num].pod.lost}
	}
	return in, w.compute(in)
}

func nodeOf(num int) string { return "node-" + strconv.Itoa(num) }

func uidOf(num int) types.UID { return types.UID("pod-" + strconv.Itoa(num)) }

// concrete pod of an instance, shared.
func (w *world) concrete(num int, p pod) *corev1.Pod {
	key := placed{num, p}
	out := w.pods[key]
	if out == nil {
		out = w.newPod(num, p)
		w.pods[key] = out
	}
	return out
}
