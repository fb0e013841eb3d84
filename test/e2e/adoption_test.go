//go:build cluster

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/test/gen"
)

func TestOwnerlessPodIsAdopted(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	tapp := gen.TApp("app", gen.Replicas(2))
	createPod(t, ns, handmade(tapp, 1))
	before := podWhere(t, ns, "app-1", "runs", func(p *corev1.Pod) string { return unless(isReady(p), "is not ready") })
	tapp = create(t, ns, tapp)
	settled(t, ns, "app")
	after := onlyPods(t, ns, "app-0", "app-1")
	untouched(t, map[string]*corev1.Pod{"app-1": before}, after)
	if ref := owner(after["app-1"]); ref == nil || ref.UID != tapp.UID {
		t.Errorf("it was not adopted: %v", after["app-1"].OwnerReferences)
	}
	if a, b := after["app-0"].Labels[tappv1.LabelTemplateHash], after["app-1"].Labels[tappv1.LabelTemplateHash]; a == "" || a != b {
		t.Errorf("both pods are of one template, and have the hashes %q and %q", a, b)
	}
	change(t, ns, "app", gen.Default(gen.Image("demo:v2")))
	settled(t, ns, "app")
	sameUIDs(t, after, pods(t, ns))
}

// An adopted pod that differs from its template in more than images is recreated,
// as any other is.
func TestAdoptedPodThatDiffersIsRecreated(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	tapp := gen.TApp("app", gen.Replicas(1))
	p := handmade(tapp, 0)
	p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "MODE", Value: "old"}}
	tapp.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "MODE", Value: "new"}}
	old := createPod(t, ns, p)
	create(t, ns, tapp)
	settled(t, ns, "app")
	if p := pod(t, ns, "app-0"); p.UID == old.UID || p.Spec.Containers[0].Env[0].Value != "new" {
		t.Errorf("it should have been made anew: %s", cluster.PodLine(p))
	}
}

// A pod of another controller keeps its name and is never touched (S7).
func TestPodOfAnotherController(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	log := follow(t)
	other, err := suite.Kube.CoreV1().ConfigMaps(ns).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tapp := gen.TApp("app")
	p := handmade(tapp, 1)
	p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(other, corev1.SchemeGroupVersion.WithKind("ConfigMap"))}
	before := createPod(t, ns, p)
	create(t, ns, tapp)
	instancesAre(t, ns, "app", map[string]tappv1.InstanceStatus{"0": running, "1": tappv1.InstanceNotCreated, "2": running})
	change(t, ns, "app", gen.MaxUnavailable("2"), gen.Default(gen.Image("demo:v2"))) // instance 1 is one of the two
	podIs(t, ns, 0, "demo:v2")
	podIs(t, ns, 2, "demo:v2")
	if after := pod(t, ns, "app-1"); after.UID != before.UID || after.Generation != before.Generation || image(after, "main") != "demo:v1" || owner(after) != nil {
		t.Errorf("it was touched: %s", cluster.PodLine(after))
	}
	tries := 0
	for _, r := range ourRequests(t, log, ns) {
		switch {
		case r.Resource != "pods" || r.Name != "app-1" || !r.IsWrite():
		case r.Verb == "create": // a cache may not know yet that the name is taken
			tries++
		default:
			t.Errorf("a write to it: %s", r)
		}
	}
	if tries > 3 {
		t.Errorf("%d tries to take its name", tries)
	}
	// When the other is done with it, the instance gets its pod.
	kubectl(t, ns, "delete", "pod", "app-1")
	settled(t, ns, "app")
	onlyPods(t, ns, "app-0", "app-1", "app-2")
}

// A pod without owner that only looks like ours by name is left alone.
func TestOwnerlessPodWithOtherLabels(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	tapp := gen.TApp("app", gen.Replicas(2))
	p := handmade(tapp, 0)
	p.Labels["app"] = "other"
	before := createPod(t, ns, p)
	create(t, ns, tapp)
	instancesAre(t, ns, "app", map[string]tappv1.InstanceStatus{"0": tappv1.InstanceNotCreated, "1": running})
	if after := pod(t, ns, "app-0"); after.UID != before.UID || len(after.OwnerReferences) != 0 {
		t.Errorf("it was touched: %s", cluster.PodLine(after))
	}
	kubectl(t, ns, "label", "pod", "app-0", "--overwrite", "app=app") // now it is ours
	settled(t, ns, "app")
	if after := pod(t, ns, "app-0"); after.UID != before.UID || owner(after) == nil {
		t.Errorf("it was not adopted: %s", cluster.PodLine(after))
	}
}

// A pod whose labels stop matching is released, not deleted; with its labels it
// comes back.
func TestRelease(t *testing.T) {
	t.Parallel()
	ns, _ := run(t, gen.TApp("app", gen.Replicas(2)))
	before := pods(t, ns)
	kubectl(t, ns, "label", "pod", "app-0", "--overwrite", "app=debug")
	podWhere(t, ns, "app-0", "is released", func(p *corev1.Pod) string { return unless(len(p.OwnerReferences) == 0, "has an owner") })
	instancesAre(t, ns, "app", map[string]tappv1.InstanceStatus{"0": tappv1.InstanceNotCreated, "1": running})
	cluster.Never(t, time.Second, "it stays", func(ctx context.Context) error {
		p, err := suite.Kube.CoreV1().Pods(ns).Get(ctx, "app-0", metav1.GetOptions{})
		if err == nil && (p.UID != before["app-0"].UID || p.DeletionTimestamp != nil) {
			return fmt.Errorf("%s", cluster.PodLine(p))
		}
		return err
	})
	kubectl(t, ns, "label", "pod", "app-0", "--overwrite", "app=app")
	settled(t, ns, "app")
	untouched(t, before, pods(t, ns))
}
