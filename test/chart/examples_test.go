package chart

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// TestExamples: each file of the chart's examples is rendered by these tests, and
// differs from the defaults in what its platform asks for, and in nothing else.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(examplesDir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		if !slices.ContainsFunc(releases, func(r release) bool { return r.name == name }) {
			t.Errorf("%s is rendered by no test", file)
		}
	}
	for _, c := range []struct {
		name string
		// same makes of the pod what it is by default.
		same func(t *testing.T, pod *corev1.PodSpec)
	}{
		{"openshift", func(t *testing.T, pod *corev1.PodSpec) {
			s, inner := pod.SecurityContext, pod.Containers[0].SecurityContext
			if s.RunAsUser != nil || s.RunAsGroup != nil || s.FSGroup != nil || s.SupplementalGroups != nil || inner.RunAsUser != nil || inner.RunAsGroup != nil {
				t.Errorf("it names a user or a group: %v, %v", s, inner)
			}
			s.RunAsUser, s.RunAsGroup = new(int64(65532)), new(int64(65532))
		}},
		{"gke-private", func(t *testing.T, pod *corev1.PodSpec) {
			port(t, pod, "https", 10250, 8443)
		}},
		{"eks-overlay", func(t *testing.T, pod *corev1.PodSpec) {
			if !pod.HostNetwork || pod.DNSPolicy != corev1.DNSClusterFirstWithHostNet {
				t.Errorf("hostNetwork is %t, dnsPolicy %s", pod.HostNetwork, pod.DNSPolicy)
			}
			pod.HostNetwork, pod.DNSPolicy = false, ""
			c := &pod.Containers[0]
			for i := range c.Ports {
				// The ports of kubelet, kube-proxy and the VPC CNI.
				if slices.Contains([]int32{10248, 10249, 10250, 10255, 10256, 50051, 61678, 61679}, c.Ports[i].ContainerPort) {
					t.Errorf("a node has the port %d itself", c.Ports[i].ContainerPort)
				}
			}
			port(t, pod, "https", 10260, 8443)
			port(t, pod, "metrics", 10261, 8080)
			c.Ports = slices.DeleteFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == "metrics-tls" })
			c.Args = slices.DeleteFunc(c.Args, func(arg string) bool { return arg == "--metrics-secure-address=:10262" })
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := releases[slices.IndexFunc(releases, func(r release) bool { return r.name == c.name })]
			pod := the[*appsv1.Deployment](t, decoded(t, r)).Spec.Template.Spec
			c.same(t, &pod)
			if got, want := marshal(t, pod), marshal(t, the[*appsv1.Deployment](t, decoded(t, releases[0])).Spec.Template.Spec); got != want {
				line, _ := firstDifference(got, want)
				t.Errorf("it differs from the default in more, from line %d on:\n%s", line, got)
			}
		})
	}
}

// port has this number, in its flag, too, and gets another one.
func port(t *testing.T, pod *corev1.PodSpec, name string, is, other int32) {
	t.Helper()
	c := &pod.Containers[0]
	found := false
	for i := range c.Ports {
		if c.Ports[i].Name == name {
			found = c.Ports[i].ContainerPort == is
			c.Ports[i].ContainerPort = other
		}
	}
	if !found {
		t.Errorf("port %s is not %d", name, is)
	}
	for i, arg := range c.Args {
		c.Args[i] = strings.ReplaceAll(arg, fmt.Sprintf("=:%d", is), fmt.Sprintf("=:%d", other))
	}
}

func marshal(t *testing.T, pod corev1.PodSpec) string {
	t.Helper()
	out, err := yaml.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
