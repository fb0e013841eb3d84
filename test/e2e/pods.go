//go:build cluster

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/cluster"
)

// pods returns the pods of a namespace that are not being deleted, by name.
func pods(t *testing.T, ns string) map[string]*corev1.Pod {
	t.Helper()
	out, err := listPods(t.Context(), ns)
	if err != nil {
		t.Fatalf("list pods: %v", err)
	}
	return out
}

func listPods(ctx context.Context, ns string) (map[string]*corev1.Pod, error) {
	list, err := suite.Kube.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	out := map[string]*corev1.Pod{}
	for i := range list.Items {
		if p := &list.Items[i]; p.DeletionTimestamp == nil {
			out[p.Name] = p
		}
	}
	return out, nil
}

// pod reads one pod.
func pod(t *testing.T, ns, name string) *corev1.Pod {
	t.Helper()
	p, err := suite.Kube.CoreV1().Pods(ns).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatalf("get pod %s: %v", name, err)
	}
	return p
}

// podWhere waits until the pod exists and check returns "".
func podWhere(t *testing.T, ns, name, what string, check func(*corev1.Pod) string) *corev1.Pod {
	t.Helper()
	return in(t, ns).WaitPod(name, what, check)
}

// podGone waits until there is no pod of that UID, and says so of any other.
func podGone(t *testing.T, ns, name string, uid types.UID) {
	t.Helper()
	eventually(t, "pod "+name+" is gone", func(ctx context.Context) error {
		p, err := suite.Kube.CoreV1().Pods(ns).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err), err == nil && p.UID != uid:
			return nil
		case err != nil:
			return err
		}
		return fmt.Errorf("%s", cluster.PodLine(p))
	})
}

// onlyPods checks that exactly these pods exist and are not being deleted.
func onlyPods(t *testing.T, ns string, want ...string) map[string]*corev1.Pod {
	t.Helper()
	got := pods(t, ns)
	slices.Sort(want)
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
		t.Fatalf("pods %v, want %v", names, want)
	}
	return got
}

// container returns the status of a container, or nil.
func container(p *corev1.Pod, name string) *corev1.ContainerStatus {
	for i := range p.Status.ContainerStatuses {
		if p.Status.ContainerStatuses[i].Name == name {
			return &p.Status.ContainerStatuses[i]
		}
	}
	return nil
}

// restarts returns how often a container was restarted.
func restarts(p *corev1.Pod, name string) int32 {
	if s := container(p, name); s != nil {
		return s.RestartCount
	}
	return -1
}

// image returns the image in a container's spec.
func image(p *corev1.Pod, name string) string {
	for _, c := range p.Spec.Containers {
		if c.Name == name {
			return c.Image
		}
	}
	return ""
}

func condition(p *corev1.Pod, kind corev1.PodConditionType) corev1.ConditionStatus {
	for _, c := range p.Status.Conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return ""
}

func isReady(p *corev1.Pod) bool { return condition(p, corev1.PodReady) == corev1.ConditionTrue }

func hasGate(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool {
		return g.ConditionType == tappv1.GateInPlaceUpdate
	})
}

func isFinished(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded
}

// sameImages says whether every container runs the image that the spec names. The
// runtime writes names in full.
func sameImages(p *corev1.Pod) bool {
	for _, c := range p.Spec.Containers {
		s := container(p, c.Name)
		if s == nil || !strings.HasSuffix(s.Image, c.Image) {
			return false
		}
	}
	return true
}

// sameUIDs fails when a pod was made anew.
func sameUIDs(t *testing.T, before, after map[string]*corev1.Pod) {
	t.Helper()
	for name, p := range before {
		if after[name] == nil {
			t.Errorf("pod %s is gone", name)
		} else if after[name].UID != p.UID {
			t.Errorf("pod %s was made anew", name)
		}
	}
}

// untouched fails when a pod was restarted, made anew, or changed in spec.
func untouched(t *testing.T, before, after map[string]*corev1.Pod) {
	t.Helper()
	sameUIDs(t, before, after)
	for name, p := range before {
		now := after[name]
		if now == nil {
			continue
		}
		if now.Generation != p.Generation {
			t.Errorf("the spec of pod %s was changed", name)
		}
		for _, s := range p.Status.ContainerStatuses {
			if restarts(now, s.Name) != s.RestartCount {
				t.Errorf("container %s of pod %s was restarted", s.Name, name)
			}
		}
	}
}
