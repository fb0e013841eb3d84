package template

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

func pointer[T any](v T) *T { return &v }

// wanted is a pod of a template with a bit of everything.
func wanted() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "shop-0", Labels: map[string]string{"app": "shop", tappv1.LabelInstanceID: "0", tappv1.LabelPodIndex: "0",
			tappv1.LabelTemplateHash: "v1-a", tappv1.LabelUniqHash: "v1-b"},
			Annotations: map[string]string{"a": "1", tappv1.AnnotationTemplateKeys: `{"labels":["app"]}`}},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "init", Image: "i:1"}},
			Containers: []corev1.Container{{
				Name: "app", Image: "nginx", Args: []string{"-a", "", "-b"},
				Ports: []corev1.ContainerPort{{ContainerPort: 53}, {ContainerPort: 53, Protocol: corev1.ProtocolUDP}},
				Env: []corev1.EnvVar{{Name: "FOO", Value: "1"}, {Name: "FOO", Value: "2"},
					{Name: "IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}}},
				Resources:    corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("0.5"), "memory": resource.MustParse("1024Mi")}},
				VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
				LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
					Port: intstr.FromInt32(80), HTTPHeaders: []corev1.HTTPHeader{{Name: "a", Value: "b"}}}}},
			}},
			Volumes:                       []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-shop-0"}}}, {Name: "tmp"}},
			Tolerations:                   []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}},
			ReadinessGates:                []corev1.PodReadinessGate{{ConditionType: "example.com/own"}, {ConditionType: tappv1.GateInPlaceUpdate}},
			HostAliases:                   []corev1.HostAlias{{IP: "10.0.0.1", Hostnames: []string{"a", "b"}}},
			ImagePullSecrets:              []corev1.LocalObjectReference{{Name: "pull"}},
			TerminationGracePeriodSeconds: pointer[int64](60),
			AutomountServiceAccountToken:  pointer(false),
			DeprecatedServiceAccount:      "shop",
			Hostname:                      "shop-0", Subdomain: "shop",
			SchedulingGates: []corev1.PodSchedulingGate{{Name: "wait"}},
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{
				{TopologyKey: "zone", MaxSkew: 1, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{}, MatchLabelKeys: []string{"app"}}},
			Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "gpu", Operator: corev1.NodeSelectorOpExists}}}}}}},
		},
	}
}

// legacyPod is what a cluster makes of wanted, with tkestack/tapp's hashes, an
// injected sidecar, and neverMigrate's affinity.
func legacyPod() *corev1.Pod {
	pod := wanted()
	pod.Labels = map[string]string{"app": "shop", tappv1.LabelInstanceID: "0", tappv1.LabelTemplateHash: "2473541281", tappv1.LabelUniqHash: "893720981", "injected": "yes"}
	pod.Annotations = map[string]string{"a": "1", "cni.example.com/ip": "10.1.2.3"}
	app := &pod.Spec.Containers[0]
	app.Image = "docker.io/library/nginx:latest"
	app.Ports = []corev1.ContainerPort{{ContainerPort: 53, Protocol: corev1.ProtocolUDP}, {ContainerPort: 53, Protocol: corev1.ProtocolTCP}}
	app.Env = append([]corev1.EnvVar{{Name: "INJECTED", Value: "1"}, {Name: "FOO", Value: "0"}}, app.Env...)
	app.Env[4].ValueFrom.FieldRef.APIVersion = "v1"
	app.Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("500m"), "memory": resource.MustParse("1Gi"), "ephemeral-storage": resource.MustParse("1Gi")}
	app.Resources.Requests = app.Resources.Limits
	app.VolumeMounts = append([]corev1.VolumeMount{{Name: "token", MountPath: "/var/run/secrets"}}, app.VolumeMounts...)
	app.LivenessProbe.PeriodSeconds, app.LivenessProbe.HTTPGet.Path = 10, "/"
	pod.Spec.Containers = append([]corev1.Container{{Name: "sidecar", Image: "sidecar:1"}}, pod.Spec.Containers...)
	pod.Spec.Volumes = append([]corev1.Volume{{Name: "token"}}, pod.Spec.Volumes...)
	pod.Spec.Volumes[2].EmptyDir = &corev1.EmptyDirVolumeSource{}
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: "node.kubernetes.io/not-ready"})
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/injected"}, {ConditionType: "example.com/own"}}
	pod.Spec.SchedulingGates = nil
	pod.Spec.ServiceAccountName, pod.Spec.NodeName, pod.Spec.Priority = "shop", "node-1", new(int32)
	pod.Spec.EnableServiceLinks, pod.Spec.DNSPolicy = pointer(true), corev1.DNSClusterFirst
	pod.Spec.TopologySpreadConstraints[0].LabelSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"shop"}}}
	RequireNode(&pod.Spec, "node-1")
	return pod
}

func TestCompareDefaultedPod(t *testing.T) {
	if d := Compare(legacyPod(), wanted()); !d.None || d.ImagesOnly || d.Fields != nil {
		t.Errorf("%+v", d)
	}
	before := wanted()
	want, pod := wanted(), legacyPod()
	Compare(pod, want)
	if !jsonEqual(t, want, before) || !jsonEqual(t, pod, legacyPod()) {
		t.Error("Compare changed its arguments")
	}
}

// TestCompareFindsDifferences that the template makes, each under the name of its
// field.
func TestCompareFindsDifferences(t *testing.T) {
	app := func(p *corev1.Pod) *corev1.Container { return &p.Spec.Containers[0] }
	for field, change := range map[string]func(*corev1.Pod){
		"spec.initContainers[init].command":                               func(p *corev1.Pod) { p.Spec.InitContainers[0].Command = []string{"x"} },
		"spec.initContainers[new]":                                        func(p *corev1.Pod) { p.Spec.InitContainers[0].Name = "new" },
		"spec.containers[app].args":                                       func(p *corev1.Pod) { app(p).Args = []string{"-a", ""} },
		"spec.containers[app].args[1]":                                    func(p *corev1.Pod) { app(p).Args[1] = "x" },
		"spec.containers[app].ports[53/SCTP]":                             func(p *corev1.Pod) { app(p).Ports[0].Protocol = corev1.ProtocolSCTP },
		"spec.containers[app].env[FOO].value":                             func(p *corev1.Pod) { app(p).Env[1].Value = "3" },
		"spec.containers[app].env[BAR]":                                   func(p *corev1.Pod) { app(p).Env[2].Name = "BAR" },
		"spec.containers[app].env[IP].valueFrom.fieldRef.fieldPath":       func(p *corev1.Pod) { app(p).Env[2].ValueFrom.FieldRef.FieldPath = "status.hostIP" },
		"spec.containers[app].resources.limits[cpu]":                      func(p *corev1.Pod) { app(p).Resources.Limits["cpu"] = resource.MustParse("501m") },
		"spec.containers[app].resources.limits[gpu]":                      func(p *corev1.Pod) { app(p).Resources.Limits["gpu"] = resource.MustParse("0") },
		"spec.containers[app].volumeMounts[/data].readOnly":               func(p *corev1.Pod) { app(p).VolumeMounts[0].ReadOnly = true },
		"spec.containers[app].volumeMounts[/other]":                       func(p *corev1.Pod) { app(p).VolumeMounts[0].MountPath = "/other" },
		"spec.containers[app].livenessProbe.httpGet.port":                 func(p *corev1.Pod) { app(p).LivenessProbe.HTTPGet.Port = intstr.FromString("80") },
		"spec.containers[app].livenessProbe.httpGet.httpHeaders[0].value": func(p *corev1.Pod) { app(p).LivenessProbe.HTTPGet.HTTPHeaders[0].Value = "c" },
		"spec.containers[app].readinessProbe":                             func(p *corev1.Pod) { app(p).ReadinessProbe = &corev1.Probe{} },
		"spec.containers[app].securityContext":                            func(p *corev1.Pod) { app(p).SecurityContext = &corev1.SecurityContext{RunAsUser: new(int64)} },
		"spec.volumes[data].persistentVolumeClaim.claimName":              func(p *corev1.Pod) { p.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = "other" },
		"spec.volumes[tmp].hostPath":                                      func(p *corev1.Pod) { p.Spec.Volumes[1].HostPath = &corev1.HostPathVolumeSource{Path: "/tmp"} },
		"spec.tolerations[0]":                                             func(p *corev1.Pod) { p.Spec.Tolerations[0].Key = "other" },
		"spec.readinessGates[example.com/other]":                          func(p *corev1.Pod) { p.Spec.ReadinessGates[0].ConditionType = "example.com/other" },
		"spec.hostAliases[10.0.0.1].hostnames":                            func(p *corev1.Pod) { p.Spec.HostAliases[0].Hostnames = []string{"a"} },
		"spec.imagePullSecrets[other]":                                    func(p *corev1.Pod) { p.Spec.ImagePullSecrets[0].Name = "other" },
		"spec.terminationGracePeriodSeconds":                              func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = pointer[int64](0) },
		"spec.automountServiceAccountToken":                               func(p *corev1.Pod) { p.Spec.AutomountServiceAccountToken = pointer(true) },
		"spec.serviceAccount":                                             func(p *corev1.Pod) { p.Spec.DeprecatedServiceAccount = "other" },
		"spec.serviceAccountName":                                         func(p *corev1.Pod) { p.Spec.ServiceAccountName = "other" },
		"spec.hostname":                                                   func(p *corev1.Pod) { p.Spec.Hostname = "other" },
		"spec.subdomain":                                                  func(p *corev1.Pod) { p.Spec.Subdomain = "other" },
		"spec.hostNetwork":                                                func(p *corev1.Pod) { p.Spec.HostNetwork = true },
		"spec.runtimeClassName":                                           func(p *corev1.Pod) { p.Spec.RuntimeClassName = pointer("gvisor") },
		"spec.nodeSelector[disk]":                                         func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": ""} },
		"spec.topologySpreadConstraints[zone/DoNotSchedule].maxSkew":      func(p *corev1.Pod) { p.Spec.TopologySpreadConstraints[0].MaxSkew = 2 },
		"spec.topologySpreadConstraints[zone/ScheduleAnyway]":             func(p *corev1.Pod) { p.Spec.TopologySpreadConstraints[0].WhenUnsatisfiable = corev1.ScheduleAnyway },
		"spec.affinity.podAffinity":                                       func(p *corev1.Pod) { p.Spec.Affinity.PodAffinity = &corev1.PodAffinity{} },
		"spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].key": func(p *corev1.Pod) {
			p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[0].Key = "tpu"
		},
	} {
		want := wanted()
		change(want)
		if d := Compare(legacyPod(), want); d.None || d.ImagesOnly || !slices.Equal(d.Fields, []string{field}) {
			t.Errorf("%s: %+v", field, d)
		}
	}
}

// TestCompareInPlace: differences that need no recreation.
func TestCompareInPlace(t *testing.T) {
	want := wanted()
	want.Spec.Containers[0].Image, want.Spec.InitContainers[0].Image = "nginx:2", "i:2"
	want.Labels["app"], want.Annotations["new"] = "other", ""
	fields := []string{"metadata.labels[app]", "metadata.annotations[new]", "spec.initContainers[init].image", "spec.containers[app].image"}
	if d := Compare(legacyPod(), want); d.None || !d.ImagesOnly || !slices.Equal(d.Fields, fields) {
		t.Errorf("%+v", d)
	}
	want.Spec.HostPID = true
	if d := Compare(legacyPod(), want); d.ImagesOnly {
		t.Errorf("%+v", d)
	}
}

func TestCompareQuirks(t *testing.T) {
	same := map[string]func(pod, want *corev1.Pod){
		"negative grace": func(pod, want *corev1.Pod) {
			pod.Spec.TerminationGracePeriodSeconds, want.Spec.TerminationGracePeriodSeconds = pointer[int64](1), pointer[int64](-5)
		},
		"both names of the account": func(pod, want *corev1.Pod) {
			want.Spec.ServiceAccountName, want.Spec.DeprecatedServiceAccount = "shop", "other"
		},
		"resources are rounded up": func(pod, want *corev1.Pod) {
			want.Spec.Containers[0].Resources.Limits["cpu"] = resource.MustParse("499999u")
		},
		"pod without our gate": func(pod, want *corev1.Pod) { pod.Spec.ReadinessGates = pod.Spec.ReadinessGates[1:] },
		"pod with our gate": func(pod, want *corev1.Pod) {
			pod.Spec.ReadinessGates = append(pod.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: tappv1.GateInPlaceUpdate})
			want.Spec.ReadinessGates = nil
		},
		"nothing wanted": func(pod, want *corev1.Pod) { *want = corev1.Pod{} },
	}
	for _, name := range slices.Sorted(maps.Keys(same)) {
		pod, want := legacyPod(), wanted()
		same[name](pod, want)
		if d := Compare(pod, want); !d.None {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestCompareLimitsTheFields(t *testing.T) {
	want := &corev1.Pod{}
	for i := range 26 {
		want.Spec.Containers = append(want.Spec.Containers, corev1.Container{Name: string(rune('a' + i))})
	}
	if d := Compare(&corev1.Pod{}, want); d.None || len(d.Fields) != maxFields || d.Fields[0] != "spec.containers[a]" {
		t.Errorf("%+v", d)
	}
}

// TestCompareEveryField: a template that sets one more field is never the same,
// but for the few fields that say nothing of a running pod.
func TestCompareEveryField(t *testing.T) {
	template, leaves := filled()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	have := pod.DeepCopy()
	exempt := []string{".spec.schedulingGates[0].name", ".spec.serviceAccount"} // the latter yields to serviceAccountName
	for path, v := range leaves {
		if !strings.HasPrefix(path, ".spec.") || slices.Contains(exempt, path) ||
			strings.Contains(path, "volumeClaimTemplate.metadata.") { // times mean nothing there
			continue
		}
		old := reflect.New(v.Type()).Elem()
		old.Set(v)
		v.Set(another(v))
		want := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
		zero := v.IsZero() // false is not set
		if d := Compare(have, want); d.None && !zero {
			t.Errorf("%s: no difference", path)
		}
		v.Set(old)
	}
}
