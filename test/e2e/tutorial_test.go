//go:build cluster

package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/cluster"
)

// TestTutorial goes through the tutorial of tkestack/tapp with its manifests as
// they were published, in their order. They name the namespace test.
func TestTutorial(t *testing.T) {
	t.Parallel()
	const name = "example-tapp"
	ns := namespace(t, cluster.Name("test"))
	file := func(section string) string { return "tutorial-" + section + ".yaml" }
	images := func(want ...string) map[string]*corev1.Pod {
		t.Helper()
		settled(t, ns, name)
		got := pods(t, ns)
		for id, i := range want {
			p := got[fmt.Sprintf("%s-%d", name, id)]
			switch {
			case i == "" && p != nil:
				t.Errorf("it should not be there: %s", cluster.PodLine(p))
			case i != "" && (p == nil || image(p, "nginx") != i || !isAvailable(p)):
				t.Errorf("instance %d should run %s: %v", id, i, p)
			}
		}
		return got
	}

	apply(t, ns, file("3.2.1"))
	first := images("nginx:1.7.9", "nginx:1.7.9", "nginx:1.7.9")
	apply(t, ns, file("3.2.2"))
	sameUIDs(t, first, images("nginx:1.8.1", "nginx:1.7.9", "nginx:1.8.1"))
	if out := kubectl(t, ns, "get", "tapps.apps.tkestack.io"); !strings.Contains(out, name) {
		t.Errorf("3.3: %s", out)
	}
	kubectl(t, ns, "describe", "tapps.apps.tkestack.io", name)
	apply(t, ns, file("3.4.1"))
	sameUIDs(t, first, images("nginx:latest", "nginx:1.8.1", "nginx:latest"))
	rollout := watchRollout(t, ns)
	apply(t, ns, file("3.4.2"))
	sameUIDs(t, first, images("nginx:latest", "nginx:1.7.9", "nginx:1.7.9"))
	rollout.neverBelow(t, 2)
	rollout.ascending(t, 1, 1, 2)
	apply(t, ns, file("3.5"))
	images("nginx:latest", "", "nginx:latest")
	instancesAre(t, ns, name, map[string]tappv1.InstanceStatus{"0": running, "1": killed, "2": running})
	kubectl(t, ns, "scale", "--replicas=4", "tapps.apps.tkestack.io", name)
	last := images("nginx:latest", "", "nginx:latest", "nginx:latest")
	sameUIDs(t, map[string]*corev1.Pod{name + "-0": first[name+"-0"], name + "-2": first[name+"-2"]}, last)

	// serviceName is part of the pods' identity, so that 3.7 needs a new TApp.
	out, err := tryKubectl(t, ns, "apply", "--validate=strict", "--filename", filepath.Join("testdata", file("3.7")))
	if err == nil || !strings.Contains(out, "serviceName is immutable") {
		t.Errorf("3.7 on top of 3.6: %v: %s", err, out)
	}
	again := func(section string) {
		t.Helper()
		kubectl(t, ns, "delete", "tapps.apps.tkestack.io", name, "--timeout=5m")
		noPods(t, ns)
		apply(t, ns, file(section))
	}
	again("3.7")
	images("nginx:1.7.9", "nginx:1.7.9", "nginx:1.7.9")
	eventuallyPrints(t, "3.7: DNS", func() (string, error) {
		return tryKubectl(t, ns, "exec", name+"-0", "--", "demo", "resolve", name+"-2.nginx."+ns+".svc.cluster.local")
	}, pod(t, ns, name+"-2").Status.PodIP)

	again("3.8") // with DefaultTemplateName, as the tutorial spells it
	images("nginx:1.7.7", "nginx:1.7.9", "nginx:1.7.7")

	again("3.9")
	eventually(t, "3.9: claims", func(ctx context.Context) error {
		for id := range 2 {
			claim := fmt.Sprintf("www-%s-%d", name, id)
			c, err := suite.Kube.CoreV1().PersistentVolumeClaims(ns).Get(ctx, claim, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if c.Labels["app"] != name || *c.Spec.StorageClassName != "rbd" {
				return fmt.Errorf("claim %s: %v %v", claim, c.Labels, c.Spec)
			}
			p, err := suite.Kube.CoreV1().Pods(ns).Get(ctx, fmt.Sprintf("%s-%d", name, id), metav1.GetOptions{})
			if err != nil {
				return err
			}
			mounts := false
			for _, v := range p.Spec.Volumes {
				mounts = mounts || v.Name == "www" && v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
			}
			if !mounts || p.Status.Phase != corev1.PodPending {
				return fmt.Errorf("%s mounts %v", cluster.PodLine(p), p.Spec.Volumes)
			}
		}
		return nil
	})
	kubectl(t, ns, "delete", "tapps.apps.tkestack.io", name, "--timeout=5m")
	noPods(t, ns)
	if _, err := suite.Kube.CoreV1().PersistentVolumeClaims(ns).Get(t.Context(), "www-"+name+"-0", metav1.GetOptions{}); err != nil {
		t.Errorf("S3: claims are kept unless the policy says otherwise: %v", err)
	}
	if _, err := suite.TApps(ns).Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("3.10: the TApp is still there: %v", err)
	}
}

// noPods waits until all pods of a namespace are gone.
func noPods(t *testing.T, ns string) {
	t.Helper()
	eventually(t, "no pods in "+ns, func(ctx context.Context) error {
		list, err := suite.Kube.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(list.Items) > 0 {
			return fmt.Errorf("%d pods, the first: %s", len(list.Items), cluster.PodLine(&list.Items[0]))
		}
		return nil
	})
}
