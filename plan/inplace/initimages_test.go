package inplace

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestBehindInitImages: a pod is updated in place step by step, and tells which init
// containers ran another image than its spec names.
func TestBehindInitImages(t *testing.T) {
	of := func(setup, proxy string) *corev1.Pod {
		pod := podWith("a:1")
		pod.Spec.InitContainers = []corev1.Container{{Name: "setup", Image: setup}, {Name: "proxy", Image: proxy, RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{running("setup", setup, "1"), running("proxy", proxy, "1")}
		return pod
	}
	runs := func(pod *corev1.Pod, id string) { pod.Status.InitContainerStatuses[0].ContainerID = id }
	type step struct {
		setup, proxy string // images of the template; empty: no update
		runs         string // is the container that ran then, if it is another one; "none": the status has none
		want         string
	}
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"the same image", []step{{"setup:1", "proxy:1", "", ""}}},
		{"a sidecar", []step{{"setup:1", "proxy:2", "", ""}}},
		{"another name of the image", []step{{"docker.io/library/setup:1", "proxy:1", "", ""}}},
		{"another image", []step{{"setup:2", "proxy:1", "", "init container setup ran setup:1 and not setup:2"}}},
		{"twice", []step{{"setup:2", "proxy:1", "", "init container setup ran setup:1 and not setup:2"}, {"setup:3", "proxy:1", "", "init container setup ran setup:1 and not setup:3"}}},
		{"then another container", []step{{"setup:2", "proxy:1", "", "init container setup ran setup:1 and not setup:2"}, {"setup:2", "proxy:2", "", "init container setup ran setup:1 and not setup:2"}}},
		{"taken back", []step{{"setup:2", "proxy:1", "", "init container setup ran setup:1 and not setup:2"}, {"setup:1", "proxy:1", "", ""}}},
		{"then it runs anew", []step{{"setup:2", "proxy:1", "", "init container setup ran setup:1 and not setup:2"}, {"", "", "2", ""}, {"setup:3", "proxy:1", "", "init container setup ran setup:2 and not setup:3"}}},
		{"it had not run yet", []step{{"", "", "none", ""}, {"setup:2", "proxy:1", "", ""}}},
		{"the status lost it", []step{{"setup:2", "proxy:1", "", "init container setup ran setup:1 and not setup:2"}, {"", "", "none", "init container setup ran setup:1 and not setup:2"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			pod := of("setup:1", "proxy:1")
			for n, s := range c.steps {
				switch s.runs {
				case "":
				case "none":
					runs(pod, "")
				default:
					runs(pod, s.runs)
				}
				if s.setup != "" {
					pod, _ = patchTo(t, pod, of(s.setup, s.proxy))
				}
				if got := BehindInitImages(pod); got != s.want {
					t.Errorf("step %d: %s", n, got)
				}
			}
		})
	}
}
