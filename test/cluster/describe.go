package cluster

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	appv1 "tkestack.io/tapp/crd/app/v1"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// Describe tells of a namespace what a person would look at first: our objects, the pods,
// and the events about ours and all warnings. What cannot be read is left out, as Apps are
// where they are not served.
func (c *Cluster) Describe(ctx context.Context, namespace string) string {
	const mostPods, mostBytes = 30, 20_000
	var b strings.Builder
	fmt.Fprintf(&b, "namespace %s\n", namespace)
	write := func(o metav1.Object) {
		o.SetManagedFields(nil)
		if text, err := yaml.Marshal(o); err == nil && len(text) < mostBytes {
			b.Write(text)
		}
	}
	if tapps, err := c.TApps(namespace).List(ctx, metav1.ListOptions{}); err == nil {
		for i := range tapps.Items {
			write(&tapps.Items[i])
		}
	}
	if apps, err := c.Apps(namespace).List(ctx, metav1.ListOptions{}); err == nil {
		for i := range apps.Items {
			write(&apps.Items[i])
		}
	}
	if pods, err := c.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{}); err == nil {
		for i := range pods.Items[:min(len(pods.Items), mostPods)] {
			fmt.Fprintln(&b, PodLine(&pods.Items[i]))
		}
	}
	if events, err := c.Kube.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{}); err == nil {
		for _, e := range events.Items {
			if kind := e.InvolvedObject.Kind; kind == tappv1.Kind || kind == appv1.Kind || e.Type == corev1.EventTypeWarning {
				fmt.Fprintf(&b, "event of %s: %s\n", e.InvolvedObject.Name, EventLine(e))
			}
		}
	}
	return b.String()
}

// PodLine tells of a pod in one line.
func PodLine(p *corev1.Pod) string {
	var b strings.Builder
	fmt.Fprintf(&b, "pod %s (%s) on %q: %s", p.Name, p.UID, p.Spec.NodeName, p.Status.Phase)
	if p.DeletionTimestamp != nil {
		fmt.Fprintf(&b, ", terminating since %s", p.DeletionTimestamp.Format("15:04:05"))
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady || c.Type == tappv1.GateInPlaceUpdate {
			fmt.Fprintf(&b, ", %s %s (%s)", c.Type, c.Status, c.Reason)
		}
	}
	for _, c := range p.Spec.Containers {
		fmt.Fprintf(&b, ", %s %s", c.Name, c.Image)
		for _, s := range p.Status.ContainerStatuses {
			if s.Name != c.Name {
				continue
			}
			fmt.Fprintf(&b, " (runs %s, %d restarts, ready %v", s.Image, s.RestartCount, s.Ready)
			if s.State.Waiting != nil {
				fmt.Fprintf(&b, ", waits: %s", s.State.Waiting.Reason)
			}
			b.WriteString(")")
		}
	}
	return b.String()
}

// Starts says of each pod that the labels select, or of all, its UID, and how often and as
// what its containers were started. Two of them are equal if nothing went, came or restarted
// in between.
func (r *Rig) Starts(selector string) map[string]string {
	r.Helper()
	list, err := r.Kube.CoreV1().Pods(r.NS).List(r.Context(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		r.Fatal(err)
	}
	out := map[string]string{}
	for i := range list.Items {
		p := &list.Items[i]
		starts := []string{string(p.UID)}
		for _, c := range p.Status.ContainerStatuses {
			starts = append(starts, fmt.Sprintf("%s started %d times as %s", c.Name, c.RestartCount, c.ContainerID))
		}
		out[p.Name] = strings.Join(starts, ", ")
	}
	return out
}
