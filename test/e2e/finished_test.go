//go:build cluster

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/test/gen"
)

const (
	succ   = tappv1.InstanceSucc
	failed = tappv1.InstanceFailed
)

// ends has a container end by itself, with a code.
func ends(policy corev1.RestartPolicy, after, code string) gen.Edit {
	return func(p *corev1.PodTemplateSpec) {
		gen.RestartPolicy(policy)(p)
		gen.Env("DEMO_EXIT_AFTER", after)(p)
		gen.Env("DEMO_EXIT_CODE", code)(p)
	}
}

// Instances that ended keep their pods until all have, and their status after
// that; new ones are not made.
func TestFinishedApp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policy corev1.RestartPolicy
		code   string // of instance 1
		status tappv1.InstanceStatus
		app    tappv1.AppStatus
	}{
		"never-well":    {corev1.RestartPolicyNever, "0", succ, tappv1.AppSucc},
		"never-failing": {corev1.RestartPolicyNever, "3", failed, tappv1.AppFailed},
		"on-failure":    {corev1.RestartPolicyOnFailure, "0", succ, tappv1.AppSucc},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := namespace(t)
			tapp := gen.TApp("job", gen.Pool("one", gen.RestartPolicy(c.policy)), gen.Use("one", 1),
				gen.Default(ends(c.policy, "1s", "0")))
			create(t, ns, tapp)
			podWhere(t, ns, "job-0", "has ended", func(p *corev1.Pod) string { return unless(isFinished(p), "runs") })
			tappWhere(t, ns, "job", "instance 0 has ended", func(tapp *tappv1.TApp) string {
				if tapp.Status.Statuses["0"] != succ {
					return "not yet"
				}
				return unless(tapp.Status.AppStatus == tappv1.AppRunning || tapp.Status.Statuses["1"] != running, "the app should be running")
			})
			uid := pod(t, ns, "job-0").UID // it stays while another one runs
			change(t, ns, "job", gen.Pool("one", ends(c.policy, "1s", c.code)))
			instancesAre(t, ns, "job", map[string]tappv1.InstanceStatus{"0": succ, "1": c.status, "2": succ})
			noPods(t, ns)
			tapp = instancesAre(t, ns, "job", map[string]tappv1.InstanceStatus{"0": succ, "1": c.status, "2": succ})
			if tapp.Status.AppStatus != c.app {
				t.Errorf("status: %s", cluster.StatusOf(tapp))
			}
			cluster.Never(t, time.Second, "nothing starts again", func(ctx context.Context) error {
				list, err := listPods(ctx, ns)
				if len(list) > 0 {
					return fmt.Errorf("%d pods, after %s", len(list), uid)
				}
				return err
			})
		})
	}
}

func TestFinishedAndKilled(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	create(t, ns, gen.TApp("job", gen.Replicas(2), gen.Killed(1), gen.Default(ends(corev1.RestartPolicyNever, "1s", "0"))))
	tapp := instancesAre(t, ns, "job", map[string]tappv1.InstanceStatus{"0": succ, "1": killed})
	if tapp.Status.AppStatus != tappv1.AppSucc {
		t.Errorf("status: %s", cluster.StatusOf(tapp))
	}
}

// simulate sets what the simulated kubelet does next with a pod.
func simulate(t *testing.T, ns, name, what, value string) {
	t.Helper()
	kubectl(t, ns, "annotate", "pod", name, "sim.tkestack.io/"+what+"="+value)
}

// A pod that failed is followed by the next one after a while that grows, and the
// pods themselves tell how often (fault 13).
func TestBackoff(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policy  corev1.RestartPolicy
		what    string
		value   string
		follows bool
	}{
		"evicted":       {corev1.RestartPolicyAlways, "evict", "true", true},
		"evicted-never": {corev1.RestartPolicyNever, "evict", "true", true}, // as rejected: no container ran
		"always":        {corev1.RestartPolicyAlways, "finish", "Succeeded", true},
		"on-failure":    {corev1.RestartPolicyOnFailure, "finish", "Failed", true},
		"well":          {corev1.RestartPolicyOnFailure, "finish", "Succeeded", false},
		"never":         {corev1.RestartPolicyNever, "finish", "Failed", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns, _ := run(t, gen.TApp("app", gen.Replicas(2), gen.Default(gen.Simulated(), gen.RestartPolicy(c.policy))))
			other := pod(t, ns, "app-1").UID
			uid := pod(t, ns, "app-0").UID
			simulate(t, ns, "app-0", c.what, c.value)
			ended := podWhere(t, ns, "app-0", "has ended", func(p *corev1.Pod) string { return unless(isFinished(p), "runs") })
			if !c.follows {
				want := map[string]tappv1.InstanceStatus{"Succeeded": succ, "Failed": failed}[c.value]
				instancesAre(t, ns, "app", map[string]tappv1.InstanceStatus{"0": want, "1": running})
				return
			}
			if ended.UID != uid {
				t.Fatalf("the first failure should be waited for: %s", cluster.PodLine(ended))
			}
			instancesAre(t, ns, "app", map[string]tappv1.InstanceStatus{
				"0": map[bool]tappv1.InstanceStatus{true: tappv1.InstancePodSucc, false: tappv1.InstancePodFailed}[c.value == "Succeeded"], "1": running,
			})
			podGone(t, ns, "app-0", uid)
			settled(t, ns, "app")
			next := pod(t, ns, "app-0")
			if next.Annotations[tappv1.AnnotationFailures] != "1" {
				t.Errorf("failures in a row: %v", next.Annotations)
			}
			// Ended at the earliest when the annotation was written.
			if waited := next.CreationTimestamp.Sub(endOf(ended)); waited < 9*time.Second || waited > patience {
				t.Errorf("the next pod came after %s, want 10 s", waited)
			}
			if pod(t, ns, "app-1").UID != other {
				t.Error("the other instance was made anew")
			}
			// A new template is no failure of the old one: it comes at once.
			simulate(t, ns, "app-0", c.what, c.value)
			podWhere(t, ns, "app-0", "has ended again", func(p *corev1.Pod) string { return unless(isFinished(p), "runs") })
			change(t, ns, "app", gen.Default(gen.Image("demo:v2")))
			settled(t, ns, "app")
			if p := pod(t, ns, "app-0"); image(p, "main") != "demo:v2" || p.Annotations[tappv1.AnnotationFailures] != "" {
				t.Errorf("%s, annotations %v", cluster.PodLine(p), p.Annotations)
			}
		})
	}
}

func endOf(p *corev1.Pod) time.Time {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// A pod that its kubelet rejects is recreated after a while too, and not at once
// for ever.
func TestRejectedByKubelet(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	create(t, ns, gen.TApp("app", gen.Replicas(1), gen.Default(func(p *corev1.PodTemplateSpec) {
		p.Spec.NodeName = "node1" // past the scheduler, so that it is the kubelet that says no
		p.Spec.NodeSelector = map[string]string{"no-node": "has-this"}
	})))
	first := podWhere(t, ns, "app-0", "is rejected", func(p *corev1.Pod) string {
		return unless(p.Status.Phase == corev1.PodFailed && len(p.Status.ContainerStatuses) == 0, "is not")
	})
	instancesAre(t, ns, "app", map[string]tappv1.InstanceStatus{"0": tappv1.InstancePodFailed})
	podGone(t, ns, "app-0", first.UID)
	next := podWhere(t, ns, "app-0", "comes again", func(*corev1.Pod) string { return "" })
	if next.Annotations[tappv1.AnnotationFailures] != "1" || next.CreationTimestamp.Sub(first.CreationTimestamp.Time) < 9*time.Second {
		t.Errorf("it came again after %s, annotations %v", next.CreationTimestamp.Sub(first.CreationTimestamp.Time), next.Annotations)
	}
}

// With neverMigrate an instance stays where it first ran.
func TestNeverMigrate(t *testing.T) {
	t.Parallel()
	ns, _ := run(t, gen.TApp("app", func(t *tappv1.TApp) { t.Spec.NeverMigrate = true }))
	before := pods(t, ns)
	tapp := get(t, ns, "app")
	for id := range 3 {
		p := before[fmt.Sprintf("app-%d", id)]
		if tapp.Status.Nodes[fmt.Sprint(id)] != p.Spec.NodeName {
			t.Errorf("status.nodes: %v, want %s on %s", tapp.Status.Nodes, p.Name, p.Spec.NodeName)
		}
	}
	change(t, ns, "app", gen.Default(gen.Env("MODE", "new")), gen.MaxUnavailable("100%"))
	settled(t, ns, "app")
	for name, p := range pods(t, ns) {
		if p.UID == before[name].UID || p.Spec.NodeName != before[name].Spec.NodeName {
			t.Errorf("%s moved from %s to %s", name, before[name].Spec.NodeName, p.Spec.NodeName)
		}
	}
	change(t, ns, "app", func(t *tappv1.TApp) { t.Spec.NeverMigrate = false })
	tappWhere(t, ns, "app", "forgets the nodes", func(tapp *tappv1.TApp) string {
		return unless(len(tapp.Status.Nodes) == 0, "not yet")
	})
}

// Claims are made once, stay with their instance through kills and recreates, and
// go only if the policy says so (S3).
func TestClaims(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	class := "none"
	claims := func() map[string]string {
		t.Helper()
		list, err := suite.Kube.CoreV1().PersistentVolumeClaims(ns).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]string{}
		for _, c := range list.Items {
			out[c.Name] = string(c.UID)
		}
		return out
	}
	create(t, ns, gen.TApp("app", gen.Replicas(2), func(t *tappv1.TApp) {
		c := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}}
		c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		c.Spec.StorageClassName = &class
		c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}
		t.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{c}
		t.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		t.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	}))
	for id := range 2 {
		podWhere(t, ns, fmt.Sprintf("app-%d", id), "mounts its claim", func(p *corev1.Pod) string {
			for _, v := range p.Spec.Volumes {
				if v.Name == "data" && (v.PersistentVolumeClaim == nil || v.PersistentVolumeClaim.ClaimName != "data-"+p.Name) {
					return fmt.Sprintf("mounts %v", v)
				}
			}
			return ""
		})
	}
	before := claims()
	if len(before) != 2 || before["data-app-0"] == "" || before["data-app-1"] == "" {
		t.Fatalf("claims: %v", before)
	}
	uid := pod(t, ns, "app-1").UID
	change(t, ns, "app", gen.Killed(1))
	podGone(t, ns, "app-1", uid)
	change(t, ns, "app", start)
	podWhere(t, ns, "app-1", "is back", func(p *corev1.Pod) string { return unless(p.UID != uid, "is the old one") })
	change(t, ns, "app", gen.Replicas(1))
	tappWhere(t, ns, "app", "one pod", func(tapp *tappv1.TApp) string { return unless(tapp.Status.Replicas == 1, "more") })
	if after := claims(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("claims were %v, and are %v", before, after)
	}
}
