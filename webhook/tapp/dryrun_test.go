package tapp

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/webhook/rule"
)

// trial of a change, in a cluster that answers so.
func trial(t *testing.T, from, to string, create func(context.Context, *corev1.Pod) error) ([]rule.Finding, []string) {
	t.Helper()
	v := newTestValidator()
	v.dryRuns.pods = fakePods{create: create}
	c := candidate{now: tapp(t, to)}
	if from != "" {
		c.was = tapp(t, from)
	}
	var w rule.Warnings
	denied := v.dryRuns.run(t.Context(), c, &w)
	return denied, w.Texts
}

// TestPodVerdicts: what rejects a template, and what is only told of.
func TestPodVerdicts(t *testing.T) {
	pods := corev1.Resource("pods")
	invalid := apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), "web-2", field.ErrorList{
		field.Required(field.NewPath("spec", "containers").Index(0).Child("image"), ""),
		field.Invalid(field.NewPath("metadata", "labels"), "a b", "no spaces"),
	})
	plain := &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid, Message: `admission webhook "x" denied the request: no`}}
	policy := &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid, Code: 422, Message: `pods "web-2" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`,
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Message: "no"}}}}}
	for _, c := range []struct {
		name              string
		err               error
		refused, warnings string
	}{
		{"accepted", nil, "", ""},
		{"there is one", apierrors.NewAlreadyExists(pods, "web-2"), "", ""},
		{"invalid", invalid, `
spec.template.spec.containers[0].image: Required value
spec.template.metadata.labels: Invalid value: "a b": no spaces
spec.templatePool[canary].spec.containers[0].image: Required value
spec.templatePool[canary].metadata.labels: Invalid value: "a b": no spaces`, ""},
		{"invalid without fields", plain, "", `spec.template, spec.templatePool[canary]: a pod of it could not be created now: admission webhook "x" denied the request: no`},
		{"a policy's invalid", policy, "", `spec.template, spec.templatePool[canary]: a pod of it could not be created now: ` + policy.ErrStatus.Message},
		{"forbidden", apierrors.NewForbidden(pods, "web-2", errors.New("exceeded quota")), "",
			`spec.template, spec.templatePool[canary]: a pod of it could not be created now: pods "web-2" is forbidden: exceeded quota`},
		{"no answer", errors.New("connection refused"), "", `spec.template, spec.templatePool[canary]: a pod of it could not be created now: connection refused`},
		{"too late", context.DeadlineExceeded, "", `spec.template, spec.templatePool[canary]: whether the cluster takes its pods could not be found out in time`},
	} {
		t.Run(c.name, func(t *testing.T) {
			refused, warnings := trial(t, "", "", func(context.Context, *corev1.Pod) error { return c.err })
			wantFindings(t, refused, c.refused)
			wantLines(t, warnings, c.warnings)
		})
	}
}

// TestQuotaIsToldWhereMoreIsAsked: an image that changes asks a full quota for nothing.
func TestQuotaIsToldWhereMoreIsAsked(t *testing.T) {
	full := apierrors.NewForbidden(corev1.Resource("pods"), "web-2", errors.New("exceeded quota: q, requested: cpu=1, used: cpu=4, limited: cpu=4"))
	pool := func(container string) string {
		return "templatePool: {canary: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, " + container + "}]}}}"
	}
	for name, c := range map[string]struct {
		from, to string
		told     bool
	}{
		"an image":       {pool("image: 'web:2'"), pool("image: 'web:3'"), false},
		"a request":      {pool("image: 'web:2'"), pool("image: 'web:2', resources: {requests: {cpu: 1}}"), true},
		"a lower one":    {pool("image: 'web:2', resources: {requests: {cpu: 2}}"), pool("image: 'web:3', resources: {requests: {cpu: 1}}"), false},
		"a new template": {"templatePool: {}", pool("image: 'web:2'"), true},
		"more instances": {"replicas: 2\n" + pool("image: 'web:2'"), "replicas: 3\n" + pool("image: 'web:3'"), true},
		"created":        {"", pool("image: 'web:2'"), true},
	} {
		_, warnings := trial(t, c.from, c.to, func(context.Context, *corev1.Pod) error { return full })
		if (len(warnings) > 0) != c.told {
			t.Errorf("%s: told %q", name, warnings)
		}
	}
}

// TestTriedPods: only templates that make other pods are tried, as the pod of the
// longest name, with everything that the controller puts into it.
func TestTriedPods(t *testing.T) {
	const from = "replicas: 12"
	for _, c := range []struct {
		name, from, to string
		want           int32
	}{
		{"created", "", from, 2},
		{"nothing", from, from, 0},
		{"replicas", from, "replicas: 20", 0},
		{"hashes", from, "templatePool: {canary: {metadata: {labels: {app: web, tapp_uniq_hash_key: v1-0}}, spec: {containers: [{name: web, image: 'web:2'}]}}}", 0},
		{"image", from, "templatePool: {canary: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: 'web:3'}]}}}", 1},
		{"annotation", from, "templatePool: {canary: {metadata: {labels: {app: web}, annotations: {a: b}}, spec: {containers: [{name: web, image: 'web:2'}]}}}", 1},
		{"another template", from, "templatePool: {blue: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: 'web:2'}]}}}", 1},
		{"a template less", from, "templatePool: {}", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var tried atomic.Int32
			trial(t, c.from, c.to, func(_ context.Context, pod *corev1.Pod) error {
				tried.Add(1)
				if len(pod.OwnerReferences) > 0 || pod.Labels[tappv1.LabelInstanceID] == "" || len(pod.Spec.ReadinessGates) != 1 || len(pod.Spec.TopologySpreadConstraints) != 2 {
					t.Errorf("it tries %+v", pod)
				}
				if c.name == "created" && pod.Name != "web-11" {
					t.Errorf("it tries %s", pod.Name)
				}
				return nil
			})
			if tried.Load() != c.want {
				t.Errorf("%d pods are tried, want %d", tried.Load(), c.want)
			}
		})
	}
}

// TestWarningsOfTheCluster reach the user, each once.
func TestWarningsOfTheCluster(t *testing.T) {
	_, warnings := trial(t, "", "", func(ctx context.Context, pod *corev1.Pod) error {
		collectWarnings{}.HandleWarningHeaderWithContext(ctx, 299, "", "would violate a policy")
		collectWarnings{}.HandleWarningHeaderWithContext(ctx, 199, "", "of another kind")
		return nil
	})
	wantLines(t, warnings, "spec.template, spec.templatePool[canary]: would violate a policy")
	collectWarnings{}.HandleWarningHeaderWithContext(t.Context(), 299, "", "of nobody's request")
}

// TestManyWarnings: they are counted where there would be too many.
func TestManyWarnings(t *testing.T) {
	var m messages
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		m.add(field.NewPath("spec", "templatePool").Key(name), "no")
	}
	wantLines(t, m.texts(), "spec.templatePool[a], spec.templatePool[b], spec.templatePool[c] and 2 more templates: no")
}
