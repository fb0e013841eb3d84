//go:build cluster

package e2e

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/test/gen"
)

// service makes a Service for pods with these labels.
func service(t *testing.T, ns, name, clusterIP string, selector map[string]string) {
	t.Helper()
	_, err := suite.Kube.CoreV1().Services(ns).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{ClusterIP: clusterIP, Selector: selector,
			Ports: []corev1.ServicePort{{Port: gen.DemoPort, TargetPort: intstr.FromInt32(gen.DemoPort)}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create Service %s: %v", name, err)
	}
}

// namesLeadTo waits until the first instance is told by DNS where each of the pods
// is, and nothing else, and each of them answers to its name.
func namesLeadTo(t *testing.T, ns string, want map[string]*corev1.Pod) {
	t.Helper()
	for name, p := range want {
		host := name + ".peers." + ns + ".svc.cluster.local"
		eventually(t, "DNS has "+host, func(context.Context) error {
			out, err := tryKubectl(t, ns, "exec", "app-0", "--", "demo", "resolve", host)
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			if strings.TrimSpace(out) != p.Status.PodIP {
				return fmt.Errorf("it has %q, and the pod %s", out, p.Status.PodIP)
			}
			return nil
		})
		if out := kubectl(t, ns, "exec", "app-0", "--", "demo", "get", "http://"+host+":8080/"); strings.TrimSpace(out) != "demo v1 "+name {
			t.Errorf("%s answers %q", host, out)
		}
	}
}

// An instance is told apart by its name and labels, and its pod belongs to the TApp.
// Every instance has a name in DNS that leads to its pod, also after the pod was
// made anew, at another address. Its number is a label that Services select by.
func TestIdentity(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	service(t, ns, "peers", corev1.ClusterIPNone, map[string]string{"app": "app"})
	service(t, ns, "second", "", map[string]string{"app": "app", tappv1.LabelPodIndex: "1"})
	create(t, ns, gen.TApp("app", gen.MaxUnavailable("3"), func(t *tappv1.TApp) { t.Spec.ServiceName = "peers" }))
	settled(t, ns, "app")
	before := onlyPods(t, ns, "app-0", "app-1", "app-2")
	for id := range 3 {
		name, number := fmt.Sprintf("app-%d", id), strconv.Itoa(id)
		if p := before[name]; p.Spec.Hostname != name || p.Spec.Subdomain != "peers" || p.Labels[tappv1.LabelInstanceID] != number || p.Labels[tappv1.LabelPodIndex] != number {
			t.Errorf("%s: hostname %s, subdomain %s, labels %v", name, p.Spec.Hostname, p.Spec.Subdomain, p.Labels)
		}
		if ref := owner(before[name]); ref == nil || ref.BlockOwnerDeletion == nil || !*ref.BlockOwnerDeletion {
			t.Errorf("%s: owners %v", name, before[name].OwnerReferences)
		}
	}
	namesLeadTo(t, ns, before)
	second := func() (string, error) {
		return tryKubectl(t, ns, "exec", "app-0", "--", "demo", "get", "http://second:8080/")
	}
	eventuallyPrints(t, "the Service of one instance", second, "demo v1 app-1")

	change(t, ns, "app", gen.Default(gen.Env("VERSION", "2")))
	settled(t, ns, "app")
	after := onlyPods(t, ns, "app-0", "app-1", "app-2")
	for name, p := range after {
		if old := before[name]; p.UID == old.UID || p.Status.PodIP == old.Status.PodIP {
			t.Errorf("%s should have been made anew: %s at %s", name, cluster.PodLine(p), p.Status.PodIP)
		}
	}
	namesLeadTo(t, ns, after)
	eventuallyPrints(t, "the Service of one instance", second, "demo v1 app-1")
}
