//go:build cluster

package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/test/gen"
)

// told says whether a condition of the TApp has all these words, in its reason or its message.
func told(tapp *tappv1.TApp, words ...string) bool {
	for _, c := range tapp.Status.Conditions {
		missing := false
		for _, w := range words {
			missing = missing || !strings.Contains(c.Reason+": "+c.Message, w)
		}
		if !missing {
			return true
		}
	}
	return false
}

// scratch is a volume of 32 KiB: the kubelet evicts a pod that writes more there.
func scratch(p *corev1.PodTemplateSpec) {
	p.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: new(resource.MustParse("32Ki"))},
	}}}
	p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "scratch", MountPath: "/scratch"}}
}

// The kubelet's eviction is no end of an instance that always restarts: the next pod follows after a while, and with
// neverMigrate on the same node. Until then nobody says that all is well.
// Reported of others: kubernetes/kubernetes#122122, mariadb-operator/mariadb-operator#253.
func TestEvictedByItsKubelet(t *testing.T) {
	t.Parallel()
	for name, neverMigrate := range map[string]bool{"migrates": false, "never-migrates": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns, _ := run(t, gen.TApp("app", gen.Replicas(2), gen.Default(gen.Probe(), scratch), func(t *tappv1.TApp) { t.Spec.NeverMigrate = neverMigrate }))
			before := pods(t, ns)
			lost := before["app-0"]
			kubectl(t, ns, "exec", "app-0", "--", "demo", "write", "/scratch/file", strings.Repeat("x", 60_000))
			podWhere(t, ns, "app-0", "is evicted", func(p *corev1.Pod) string { return unless(isFinished(p) || p.UID != lost.UID, "it runs") })
			tappWhere(t, ns, "app", "is not Ready", func(tapp *tappv1.TApp) string {
				return unless(meta.IsStatusConditionFalse(tapp.Status.Conditions, tappv1.ConditionReady), "it is")
			})
			next := follows(t, ns, lost)
			if neverMigrate && next.Spec.NodeName != lost.Spec.NodeName {
				t.Errorf("it was on %s: %s", lost.Spec.NodeName, cluster.PodLine(next))
			}
			tapp := settled(t, ns, "app")
			if s := tapp.Status; s.AvailableReplicas != 2 || s.Statuses["0"] != running {
				t.Errorf("status: %s", cluster.StatusOf(tapp))
			}
			untouched(t, map[string]*corev1.Pod{"app-1": before["app-1"]}, onlyPods(t, ns, "app-0", "app-1"))
		})
	}
}

// A drain of its node is no end of an instance that may end, whatever its server says when it is told to stop.
func TestDrainIsNoEnd(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]corev1.RestartPolicy{"on-failure": corev1.RestartPolicyOnFailure, "never": corev1.RestartPolicyNever} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns, _ := run(t, gen.TApp("app", gen.Replicas(2), gen.Default(gen.Probe(), gen.RestartPolicy(policy), stopsSoonest, stopsIn("1s")),
				func(t *tappv1.TApp) { t.Spec.NeverMigrate = true }))
			lost := pod(t, ns, "app-0")
			evict(t, ns, "app-0")
			if next := follows(t, ns, lost); next.Spec.NodeName != lost.Spec.NodeName {
				t.Errorf("it was on %s: %s", lost.Spec.NodeName, cluster.PodLine(next))
			}
			settled(t, ns, "app")
		})
	}
}

// An instance that ended by itself is not hidden where all others are available.
func TestCompletedInstancesAreTold(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	create(t, ns, gen.TApp("app", gen.Default(gen.RestartPolicy(corev1.RestartPolicyNever)),
		gen.Pool("once", ends(corev1.RestartPolicyNever, "1s", "0")), gen.Use("once", 1)))
	instancesAre(t, ns, "app", map[string]tappv1.InstanceStatus{"0": running, "1": succ, "2": running})
	tappWhere(t, ns, "app", "tells of the completed one", func(tapp *tappv1.TApp) string {
		c := meta.FindStatusCondition(tapp.Status.Conditions, tappv1.ConditionReady)
		return unless(c != nil && strings.Contains(c.Message, "2 of 3") && strings.Contains(c.Message, "1 completed"), "it does not")
	})
}

// While an update is under way, a pod that no node takes says so in the scheduler's words, and not that its container
// has not started. The corrected template gets through. Reported of others: rancher/fleet#792.
func TestUnschedulableDuringAnUpdate(t *testing.T) {
	t.Parallel()
	hostPort := func(p *corev1.PodTemplateSpec) {
		p.Spec.NodeSelector = map[string]string{"devcluster.tkestack.io/node": "real"} // two nodes
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: gen.DemoPort, HostPort: 18080}}
	}
	ns := namespace(t)
	create(t, ns, gen.TApp("app", gen.Default(gen.Probe(), stopsSoon, hostPort)))
	noPort := func(tapp *tappv1.TApp) string {
		return unless(tapp.Status.ReadyReplicas == 2 && told(tapp, "free ports") && !told(tapp, "has not started"), "it does not")
	}
	tappWhere(t, ns, "app", "tells of the instance that finds no port", noPort)
	change(t, ns, "app", gen.Default(gen.Image("demo:v2")))
	podWhere(t, ns, "app-2", "has the new image", func(p *corev1.Pod) string { return unless(image(p, "main") == "demo:v2", "not yet") })
	tappWhere(t, ns, "app", "still tells of it", noPort)
	rollout := watchRollout(t, ns)
	change(t, ns, "app", gen.Default(func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Ports = nil }))
	settled(t, ns, "app")
	for i := range 3 {
		podIs(t, ns, i, "demo:v2")
	}
	rollout.neverBelow(t, 2)
}

// An instance whose status says that it ended, as former versions stored it of an eviction, runs again.
func TestStoredEndOfAnInstanceThatAlwaysRestarts(t *testing.T) {
	ns, _ := run(t, gen.TApp("app", gen.Replicas(2), gen.Default(gen.Probe(), stopsSoon), func(t *tappv1.TApp) { t.Spec.NeverMigrate = true }))
	lost := pod(t, ns, "app-0")
	stopController(t)
	kubectl(t, ns, "patch", "tapp", "app", "--subresource=status", "--type=merge", `--patch={"status": {"statuses": {"0": "Succ"}}}`)
	deletePods(t, ns, "app-0")
	podGone(t, ns, "app-0", lost.UID)
	restartController(t)
	if next := follows(t, ns, lost); next.Spec.NodeName != lost.Spec.NodeName {
		t.Errorf("it was on %s: %s", lost.Spec.NodeName, cluster.PodLine(next))
	}
	settled(t, ns, "app")
}
