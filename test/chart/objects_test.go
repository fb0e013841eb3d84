package chart

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	psapi "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"
)

// foreign kinds have no type here. Their own CRDs judge them in test/install.
var foreign = []string{"apiextensions.k8s.io/v1/CustomResourceDefinition", "cert-manager.io/v1/Issuer", "cert-manager.io/v1/Certificate"}

// decoded are the objects of a release, each by its own type, which has to know all
// of its fields.
func decoded(t *testing.T, r release) []runtime.Object {
	t.Helper()
	strict := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	var out []runtime.Object
	for _, data := range objects(mustRender(t, r)) {
		var kind struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal(data, &kind); err != nil {
			t.Fatalf("%v\n%s", err, data)
		}
		full := kind.APIVersion + "/" + kind.Kind
		var object runtime.Object
		var err error
		switch {
		case kind.Kind == "" || slices.Contains(foreign, full):
			continue
		case full == "monitoring.coreos.com/v1/ServiceMonitor":
			object = &monitoringv1.ServiceMonitor{}
			err = yaml.UnmarshalStrict(data, object)
		case full == "monitoring.coreos.com/v1/PrometheusRule":
			object = &monitoringv1.PrometheusRule{}
			err = yaml.UnmarshalStrict(data, object)
		default:
			object, _, err = strict.Decode(data, nil, nil)
		}
		if err != nil {
			t.Fatalf("%s: %v\n%s", full, err, data)
		}
		out = append(out, object)
	}
	return out
}

// the first object of its type that is not of `tapp api`.
func the[T runtime.Object](t *testing.T, objects []runtime.Object) T {
	t.Helper()
	for _, o := range objects {
		if found, ok := o.(T); ok && !isOfAPI(o) {
			return found
		}
	}
	var none T
	t.Fatalf("there is no %T", none)
	return none
}

func isOfAPI(o runtime.Object) bool {
	m, err := meta.Accessor(o)
	return err == nil && m.GetLabels()["app.kubernetes.io/component"] == "api"
}

func every[T runtime.Object](objects []runtime.Object) []T {
	var out []T
	for _, o := range objects {
		if found, ok := o.(T); ok {
			out = append(out, found)
		}
	}
	return out
}

// TestPodSecurity: the pods are accepted where only restricted ones are. Host
// networking is asked for, and no restricted namespace accepts it.
func TestPodSecurity(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := psapi.LevelVersion{Level: psapi.LevelRestricted, Version: psapi.LatestVersion()}
	for _, r := range releases {
		for _, deployment := range every[*appsv1.Deployment](decoded(t, r)) {
			pod := deployment.Spec.Template
			pod.Spec.HostNetwork = false
			for i := range pod.Spec.Containers[0].Ports {
				pod.Spec.Containers[0].Ports[i].HostPort = 0
			}
			if result := policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec)); !result.Allowed {
				t.Errorf("%s: %s", r.name, result.ForbiddenDetail())
			}
			if c := pod.Spec.Containers[0].SecurityContext; c.ReadOnlyRootFilesystem == nil || !*c.ReadOnlyRootFilesystem {
				t.Errorf("%s: the root filesystem can be written to", r.name)
			}
		}
	}
}

// TestAPI: the pods of `tapp api` are restricted ones, no selector of the controllers takes
// them in, and its account writes nothing but reviews, and reads no Secrets but the registrations of clusters.
func TestAPI(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := psapi.LevelVersion{Level: psapi.LevelRestricted, Version: psapi.LatestVersion()}
	found := 0
	for _, r := range releases {
		all := decoded(t, r)
		for _, d := range every[*appsv1.Deployment](all) {
			if !isOfAPI(d) {
				continue
			}
			found++
			pod := d.Spec.Template
			if result := policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec)); !result.Allowed {
				t.Errorf("%s: %s", r.name, result.ForbiddenDetail())
			}
			for _, s := range every[*corev1.Service](all) {
				selector := labels.SelectorFromSet(s.Spec.Selector)
				if selector.Matches(labels.Set(pod.Labels)) != isOfAPI(s) {
					t.Errorf("%s: the Service %s selects by %s", r.name, s.Name, selector)
				}
			}
			if labels.SelectorFromSet(the[*appsv1.Deployment](t, all).Spec.Selector.MatchLabels).Matches(labels.Set(pod.Labels)) {
				t.Errorf("%s: the controllers' Deployment selects pods of the API", r.name)
			}
		}
		var rules []rbacv1.PolicyRule
		for _, role := range every[*rbacv1.ClusterRole](all) {
			if isOfAPI(role) {
				rules = append(rules, role.Rules...)
			}
		}
		for _, role := range every[*rbacv1.Role](all) {
			if isOfAPI(role) && !strings.HasSuffix(role.Name, "-clusters") {
				rules = append(rules, role.Rules...)
			} else if isOfAPI(role) && fmt.Sprint(role.Rules) != "[{[list watch] [] [secrets configmaps] [] []}]" {
				t.Errorf("%s: of the registrations the API may %v", r.name, role.Rules)
			}
		}
		for _, rule := range rules {
			text := fmt.Sprint(rule.APIGroups, rule.Resources, rule.Verbs)
			reviews := len(rule.Resources) > 0 && strings.HasSuffix(rule.Resources[0], "reviews")
			for _, verb := range rule.Verbs {
				if !slices.Contains([]string{"get", "list", "watch"}, verb) && (!reviews || verb != "create") {
					t.Errorf("%s: the API may %s", r.name, text)
				}
			}
			if slices.Contains(rule.Resources, "secrets") || slices.Contains(rule.Resources, "configmaps") {
				t.Errorf("%s: the API may %s", r.name, text)
			}
		}
	}
	if found != 2 {
		t.Errorf("%d releases have it", found)
	}
}

// TestGracePeriod: what the container needs to end fits in.
func TestGracePeriod(t *testing.T) {
	for _, r := range releases {
		pod := serving(t, decoded(t, r), the[*corev1.Service](t, decoded(t, r))).Spec.Template.Spec
		var delay time.Duration
		for _, arg := range pod.Containers[0].Args {
			if text, ok := strings.CutPrefix(arg, "--admission-shutdown-delay="); ok {
				var err error
				if delay, err = time.ParseDuration(text); err != nil {
					t.Error(err)
				}
			}
		}
		const grace, margin = 20 * time.Second, 10 * time.Second // the grace is controller.Defaults'
		if got := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second; delay == 0 || got < max(delay, grace)+margin {
			t.Errorf("%s: the grace period is %s, with a shutdown delay of %s", r.name, got, delay)
		}
	}
}

// TestWebhookScope: the webhooks are asked about TApps and their scale, about the other
// kinds where those are looked after, and about nothing that TApp itself, its pods or its recovery depend on.
func TestWebhookScope(t *testing.T) {
	for _, r := range releases {
		all := decoded(t, r)
		mutating, validating := the[*admissionregistrationv1.MutatingWebhookConfiguration](t, all), the[*admissionregistrationv1.ValidatingWebhookConfiguration](t, all)
		got := fmt.Sprint(rules(mutating.Webhooks[0].Rules), rules(validating.Webhooks[0].Rules))
		const want = "[[CREATE UPDATE] [apps.tkestack.io] [v1] [tapps]Namespaced][[CREATE UPDATE] [apps.tkestack.io] [v1] [tapps tapps/scale]Namespaced]"
		if got != want {
			t.Errorf("%s: got %s, want %s", r.name, got, want)
		}
		var others []string
		for _, w := range validating.Webhooks[1:] {
			others = append(others, w.Name+rules(w.Rules))
		}
		for _, w := range mutating.Webhooks[1:] {
			others = append(others, w.Name+rules(w.Rules))
		}
		ofOthers := ""
		if r.name == "everything" {
			ofOthers = "validate.advdeployment.tkestack.io[[CREATE UPDATE] [workload.dmall.com] [v1beta1] [advdeployments]Namespaced] " +
				"validate.appset.tkestack.io[[CREATE UPDATE] [workload.dmall.com] [v1beta1] [appsets appsets/scale]Namespaced] " +
				"validate.app.tkestack.io[[CREATE UPDATE] [appcontroller.k8s.io] [v1] [apps]Namespaced] " +
				"mutate.confirmation.tkestack.io[[CREATE] [workload.dmall.com] [v1beta1] [confirmations]Namespaced]"
		}
		if got := strings.Join(others, " "); got != ofOthers {
			t.Errorf("%s: also %q", r.name, got)
		}
	}
}

func rules(rules []admissionregistrationv1.RuleWithOperations) string {
	var parts []string
	for _, r := range rules {
		parts = append(parts, fmt.Sprint(r.Operations, r.APIGroups, r.APIVersions, r.Resources, *r.Scope))
	}
	return "[" + strings.Join(parts, "; ") + "]"
}

// TestServiceFindsPods: the Service, the budget and the Deployment select the pods,
// and the Service's ports have names that the container has.
func TestServiceFindsPods(t *testing.T) {
	for _, r := range releases {
		all := decoded(t, r)
		services := every[*corev1.Service](all)
		if len(services) != len(every[*appsv1.Deployment](all)) {
			t.Errorf("%s: %d Services", r.name, len(services))
		}
		for _, service := range services {
			deployment := serving(t, all, service)
			for _, p := range service.Spec.Ports {
				if !slices.ContainsFunc(deployment.Spec.Template.Spec.Containers[0].Ports, func(c corev1.ContainerPort) bool { return c.Name == p.TargetPort.StrVal }) {
					t.Errorf("%s: the container has no port %s", r.name, p.TargetPort.String())
				}
			}
		}
	}
}

// serving is the one Deployment whose pods the Service selects.
func serving(t *testing.T, all []runtime.Object, service *corev1.Service) *appsv1.Deployment {
	t.Helper()
	var found []*appsv1.Deployment
	for _, d := range every[*appsv1.Deployment](all) {
		selects := func(labels map[string]string) bool {
			for key, value := range service.Spec.Selector {
				if labels[key] != value {
					return false
				}
			}
			return true
		}
		if selects(d.Spec.Template.Labels) && selects(d.Spec.Selector.MatchLabels) {
			found = append(found, d)
		}
	}
	if len(found) != 1 {
		t.Fatalf("the Service %s selects the pods of %d Deployments", service.Name, len(found))
	}
	return found[0]
}
