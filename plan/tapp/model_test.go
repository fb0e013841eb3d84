package tapp

import (
	"fmt"
	"maps"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/unready"
)

// drawSpec draws a spec that a user may begin with.
func drawSpec(t *rapid.T) tappv1.TAppSpec {
	s := tappv1.TAppSpec{
		Replicas:             new(int32(rapid.IntRange(1, 5).Draw(t, "replicas"))),
		Selector:             &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		Template:             templateOf("web:1"),
		TemplatePool:         map[string]corev1.PodTemplateSpec{"blue": templateOf("blue:1")},
		Templates:            map[string]string{},
		Statuses:             map[string]tappv1.InstanceStatus{},
		MinReadySeconds:      pick(t, "minReadySeconds", int32(0), 0, 5),
		RevisionHistoryLimit: pick(t, "revisionHistoryLimit", nil, new(int32(0)), new(int32(2))),
		NeverMigrate:         sometimes(t, "neverMigrate", 5),
		ForceDeletePod:       sometimes(t, "forceDeletePod", 3),
		Ordinals:             drawOrdinals(t),
	}
	s.Template.Spec.Containers = append(s.Template.Spec.Containers, corev1.Container{Name: "log", Image: "log:1"})
	s.Template.Spec.RestartPolicy = pick(t, "restartPolicy", corev1.RestartPolicyAlways, "", corev1.RestartPolicyOnFailure)
	for i := range s.Template.Spec.Containers {
		s.Template.Spec.Containers[i].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("1Gi")}
	}
	if sometimes(t, "restart for memory", 3) {
		s.Template.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.RestartContainer}}
	}
	s.UpdateStrategy.InPlaceUpdate.Resources = sometimes(t, "resources", 2)
	if sometimes(t, "claims", 4) {
		s.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
		s.VolumeClaimTemplates[0].Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
		s.PersistentVolumeClaimRetentionPolicy = drawRetention(t)
	}
	u := &s.UpdateStrategy
	u.MaxUnavailable = new(pick(t, "maxUnavailable", intstr.FromInt32(1), intstr.FromInt32(2), intstr.FromString("50%")))
	u.ForceUpdate.MaxUnavailable = new(pick(t, "force", intstr.FromInt32(1), intstr.FromString("100%")))
	u.InPlaceUpdate.Drain = new(!sometimes(t, "no drain", 3))
	u.InPlaceUpdate.GracePeriodSeconds = pick(t, "grace", int32(0), 0, 7)
	u.InPlaceUpdate.Policy = pick(t, "policy", "", "", tappv1.ReCreate)
	return s
}

// mostIDs are more than any drawn spec asks for.
const mostIDs = 16

// asksFor says whether the spec asks for the id. It is written apart from IDs.
func asksFor(s *tappv1.TAppSpec, id int) bool {
	start := 0
	if s.Ordinals != nil {
		start = int(s.Ordinals.Start)
	}
	return start <= id && id <= start+int(*s.Replicas)-1
}

// drawOrdinals draws where ids begin.
func drawOrdinals(t *rapid.T) *tappv1.Ordinals {
	return pick(t, "ordinals", nil, nil, &tappv1.Ordinals{}, &tappv1.Ordinals{Start: 1}, &tappv1.Ordinals{Start: 3})
}

// edit draws one thing that a user changes.
func drawEdit(t *rapid.T) (string, func(*tappv1.TAppSpec)) {
	id := strconv.Itoa(rapid.IntRange(0, 6).Draw(t, "id"))
	image := pick(t, "image", "web:1", "web:2", "docker.io/library/web:2", "web:3", "web:bad", "web:sick")
	value := pick(t, "value", "", "1", "2")
	edits := map[string]func(*tappv1.TAppSpec){
		"image":  func(s *tappv1.TAppSpec) { s.Template.Spec.Containers[0].Image = image },
		"second": func(s *tappv1.TAppSpec) { s.Template.Spec.Containers[1].Image = "log:" + value },
		"init":   func(s *tappv1.TAppSpec) { s.Template.Spec.InitContainers[0].Image = "setup:" + value },
		"blue": func(s *tappv1.TAppSpec) {
			b := templateOf(image)
			s.TemplatePool = map[string]corev1.PodTemplateSpec{"blue": b}
		},
		"env": func(s *tappv1.TAppSpec) {
			s.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: value}}
		},
		"cpu": func(s *tappv1.TAppSpec) {
			s.Template.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse(pick(t, "cpu", "100m", "200m"))
		},
		"memory": func(s *tappv1.TAppSpec) {
			s.Template.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse(pick(t, "memory", "1Gi", "2Gi"))
		},
		"limit": func(s *tappv1.TAppSpec) {
			s.Template.Spec.Containers[0].Resources.Limits = pick(t, "limit", nil, corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")})
		},
		"label": func(s *tappv1.TAppSpec) { put(s.Template.Labels, "tier", value) },
		"annotation": func(s *tappv1.TAppSpec) {
			s.Template.Annotations = map[string]string{"team": value, "note" + value: ""}
		},
		"replicas":  func(s *tappv1.TAppSpec) { s.Replicas = new(int32(rapid.IntRange(0, 6).Draw(t, "to"))) },
		"ordinals":  func(s *tappv1.TAppSpec) { s.Ordinals = drawOrdinals(t) },
		"kill":      func(s *tappv1.TAppSpec) { s.Statuses[id] = tappv1.InstanceKilled },
		"start":     func(s *tappv1.TAppSpec) { delete(s.Statuses, id) },
		"start all": func(s *tappv1.TAppSpec) { clear(s.Statuses) },
		"template":  func(s *tappv1.TAppSpec) { put(s.Templates, id, pick(t, "name", "", "blue", "default", "gone")) },
		"all blue":  func(s *tappv1.TAppSpec) { s.DefaultTemplateName = pick(t, "name", "", "blue") },
		"rolling":   func(s *tappv1.TAppSpec) { s.UpdateStrategy.Template = pick(t, "name", "", "blue", "default") },
		"budget": func(s *tappv1.TAppSpec) {
			s.UpdateStrategy.MaxUnavailable = new(pick(t, "budget", intstr.FromInt32(1), intstr.FromInt32(3), intstr.FromString("50%")))
		},
		"retention": func(s *tappv1.TAppSpec) { s.PersistentVolumeClaimRetentionPolicy = drawRetention(t) },
		"growth": func(s *tappv1.TAppSpec) {
			for i := range s.VolumeClaimTemplates {
				size := s.VolumeClaimTemplates[i].Spec.Resources.Requests[corev1.ResourceStorage]
				size.Add(resource.MustParse("1Gi"))
				s.VolumeClaimTemplates[i].Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: size}
			}
		},
		"paused": func(s *tappv1.TAppSpec) { s.Paused = !s.Paused },
		"drain": func(s *tappv1.TAppSpec) {
			s.UpdateStrategy.InPlaceUpdate.Drain = new(!*s.UpdateStrategy.InPlaceUpdate.Drain)
		},
		"policy": func(s *tappv1.TAppSpec) {
			s.UpdateStrategy.InPlaceUpdate.Policy = pick(t, "policy", "", tappv1.InPlaceOnly, tappv1.ReCreate)
		},
	}
	what := rapid.SampledFrom(sortedKeys(edits)).Draw(t, "edit")
	return what, edits[what]
}

func put(m map[string]string, key, value string) {
	if m[key] = value; value == "" {
		delete(m, key)
	}
}

// disturb is one thing that happens to the cluster by itself.
func (c *cluster) disturb() {
	t := c.t
	names := c.names()
	if len(names) == 0 {
		return
	}
	pod := c.pods[rapid.SampledFrom(names).Draw(t, "pod")]
	k := c.kubelets[pod.UID]
	running := c.runsOn(pod) && pod.DeletionTimestamp == nil
	switch what := pick(t, "happens", "schedule", "see", "act", "report", "all", "terminate", "crash", "evict", "finish", "reject", "delete", "node", "relabel", "restart", "orphan"); {
	case what == "schedule":
		c.schedule(pod, pick(t, "on", "a", "b", "c"))
	case what == "delete":
		c.delete(pod)
	case what == "terminate" && pod.DeletionTimestamp != nil && c.nodes[pod.Spec.NodeName].Exists:
		c.terminate(pod)
	case what == "node":
		node := pick(t, "node", "a", "b", "c")
		c.nodes[node] = pick(t, "state", NodeState{}, NodeState{Exists: true}, NodeState{Exists: true, NotReadySince: c.now.Add(-3 * time.Minute)})
	case what == "relabel" && running && controls(c.tapp, pod):
		pod.Labels[pick(t, "label", tappv1.LabelInstanceID, tappv1.LabelUniqHash)] = "wrong"
		c.touch(pod)
	case what == "restart" && running:
		setAnnotation(pod, tappv1.AnnotationRestart, "now")
		c.touch(pod)
	case what == "orphan" && running && pod.Labels[tappv1.LabelInstanceID] != "wrong": // else only the user can help
		pod.OwnerReferences = nil
		c.touch(pod)
	case !running:
	case what == "see":
		k.see(pod)
	case what == "act":
		k.act(c.now)
	case what == "report":
		c.report(pod)
	case what == "all":
		k.see(pod)
		k.act(c.now)
		c.report(pod)
	case what == "crash":
		k.crash("app", c.now)
	case what == "evict":
		c.end(pod, corev1.PodFailed, "Evicted")
	case what == "finish" && pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure && len(pod.Status.ContainerStatuses) > 0:
		c.end(pod, corev1.PodSucceeded, "")
	case what == "reject" && len(pod.Status.ContainerStatuses) == 0:
		c.end(pod, corev1.PodFailed, "UnexpectedAdmissionError")
	}
}

// steps of controller, cluster and user in any order, with writes that fail and
// plans that are old when they are carried out.
func (c *cluster) live(edits bool) {
	t := c.t
	c.weather = func(a Action) bool { return sometimes(t, "fails", 12) }
	for range rapid.IntRange(1, 40).Draw(t, "steps") {
		c.now = c.now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "seconds")) * time.Second)
		switch what := rapid.IntRange(0, 9).Draw(t, "step"); {
		case what < 3:
			_, p := c.plan()
			for range rapid.IntRange(0, 1).Draw(t, "meanwhile") {
				c.disturb()
			}
			c.apply(p)
		case what == 9 && edits:
			name, edit := drawEdit(t)
			t.Logf("the user edits: %s", name)
			c.edit(edit)
		case what == 8:
			c.runKubelets()
		default:
			c.disturb()
		}
	}
}

// mend is the user who makes the spec one that can be met.
func (c *cluster) mend() {
	c.edit(func(s *tappv1.TAppSpec) {
		s.Paused = false
		s.UpdateStrategy.InPlaceUpdate.Policy = tappv1.InPlaceIfPossible
		s.Template.Spec.Containers[0].Image = "web:9"
		s.TemplatePool = map[string]corev1.PodTemplateSpec{"blue": templateOf("blue:9")}
		maps.DeleteFunc(s.Templates, func(_, name string) bool { return name == "gone" })
	})
}

// assertSettled: every instance that is to run does, and is what its template makes.
func (c *cluster) assertSettled(p Plan) {
	t := c.t
	t.Helper()
	spec := &defaulted(c.tapp).Spec
	pods := 0
	for num := range mostIDs {
		if !asksFor(spec, num) {
			continue
		}
		id := strconv.Itoa(num)
		pod := c.pods["web-"+id]
		if spec.Statuses[id] == tappv1.InstanceKilled {
			if pod != nil || p.Status.Statuses[id] != tappv1.InstanceKilled {
				t.Fatalf("instance %s is stopped: %s", id, p.Status.Statuses[id])
			}
			continue
		}
		if isEnd(p.Status.Statuses[id]) && (pod == nil || isEnded(pod)) {
			continue
		}
		if pod == nil || !unready.IsReady(pod) || p.Status.Statuses[id] != tappv1.InstanceRunning {
			t.Fatalf("instance %s does not run\n%s", id, c.describe(p))
		}
		if isRestartRequested(pod) {
			t.Fatalf("instance %s was to restart\n%s", id, c.describe(p))
		}
		pods++
		want := newPod(t, c.tapp, num)
		for _, key := range []string{"app", "tier", tappv1.LabelTemplateHash, tappv1.LabelUniqHash, tappv1.LabelInstanceID} {
			if pod.Labels[key] != want.Labels[key] {
				t.Fatalf("instance %s: label %s is %q, not %q\n%s", id, key, pod.Labels[key], want.Labels[key], c.describe(p))
			}
		}
		if fmt.Sprint(pod.Annotations["team"]) != want.Annotations["team"] {
			t.Fatalf("instance %s: annotation team is %q", id, pod.Annotations["team"])
		}
		for i, x := range want.Spec.Containers {
			if has := pod.Spec.Containers[i]; has.Image != x.Image || has.Resources.Requests.Cpu().Cmp(*x.Resources.Requests.Cpu()) != 0 ||
				has.Resources.Requests.Memory().Cmp(*x.Resources.Requests.Memory()) != 0 || has.Resources.Limits.Cpu().Cmp(*x.Resources.Limits.Cpu()) != 0 || fmt.Sprint(has.Env) != fmt.Sprint(x.Env) {
				t.Fatalf("instance %s: container %+v, not %+v", id, has, x)
			}
			if runs := pod.Status.ContainerStatuses[i].Image; runs != x.Image {
				t.Fatalf("instance %s: container %s runs %s, not %s", id, x.Name, runs, x.Image)
			}
		}
	}
	for _, pod := range c.pods {
		if controls(c.tapp, pod) && !isEnded(pod) {
			pods--
		}
	}
	if pods != 0 {
		t.Fatalf("%d pods too few\n%s", pods, c.describe(p))
	}
	c.assertHistory()
	c.assertClaims()
	for _, x := range p.Status.Conditions {
		if x.Type == tappv1.ConditionStalled && x.Status == metav1.ConditionTrue {
			t.Fatalf("stalled: %s", x.Message)
		}
	}
}

// TestModel: S1 to S5 and S7 at every plan, whatever happens; and when it ends, L1.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCluster(t, &tappv1.TApp{Spec: drawSpec(t)})
		c.policy.DeletePodAfterAppFinish = rapid.Bool().Draw(t, "deletePodAfterAppFinish")
		c.live(true)
		c.calm() // whatever the spec says by now
		c.mend()
		c.assertSettled(c.calm())
	})
}

// TestModelRollback: S6. Whatever happens between, a TApp that is rolled back ends
// on the old hashes.
func TestModelRollback(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCluster(t, &tappv1.TApp{Spec: drawSpec(t)})
		c.policy.DeletePodAfterAppFinish = rapid.Bool().Draw(t, "deletePodAfterAppFinish")
		c.assertSettled(c.calm())
		before, hashes, revision := c.tapp.Spec.DeepCopy(), c.hashes(), c.tapp.Status.CurrentRevision
		c.live(true)
		c.edit(func(s *tappv1.TAppSpec) { *s = *before.DeepCopy() })
		c.live(false)
		c.assertSettled(c.calm())
		if c.tapp.Status.CurrentRevision != revision {
			t.Fatalf("S6: it is on revision %s, and was on %s", c.tapp.Status.CurrentRevision, revision)
		}
		after := c.hashes()
		for name, hash := range after {
			if hashes[name] != hash {
				t.Fatalf("S6: %s is on %s, and was on %s", name, hash, hashes[name])
			}
		}
	})
}

func (c *cluster) hashes() map[string]string {
	out := map[string]string{}
	for name, pod := range c.pods {
		if isEnded(pod) || !controls(c.tapp, pod) {
			continue // it stays as it ended, or nobody's
		}
		out[name] = pod.Labels[tappv1.LabelTemplateHash]
	}
	return out
}
