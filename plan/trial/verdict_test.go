package trial

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// refusal is what an API server answers, as client-go gives it.
func refusal(code int32, message string, causes ...metav1.StatusCause) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Message: message, Details: &metav1.StatusDetails{Causes: causes}}}
}

// TestJudge: the texts are those of Kubernetes 1.37.
func TestJudge(t *testing.T) {
	pods, pod := schema.GroupResource{Resource: "pods"}, schema.GroupKind{Kind: "Pod"}
	denied := `admission webhook "images.example.com" denied the request: `
	policy := `pods "web-0" is forbidden: ValidatingAdmissionPolicy 'images' with binding 'images' denied request: `
	quota := `pods "web-0" is forbidden: exceeded quota: q, requested: cpu=1, used: cpu=4, limited: cpu=4`
	immutable := apierrors.NewInvalid(pod, "web-0", field.ErrorList{field.Forbidden(field.NewPath("spec"), "pod updates may not change fields other than `spec.containers[*].image`")})
	for _, c := range []struct {
		about                  string
		err                    error
		update, resize, create Verdict
	}{
		{"success", nil, Admitted, Admitted, Admitted},
		{"no connection", errors.New("connection refused"), NoAnswer, NoAnswer, NoAnswer},
		{"out of time", fmt.Errorf("patch: %w", context.DeadlineExceeded), NoAnswer, NoAnswer, NoAnswer},
		{"a webhook has side effects", refusal(400, `admission webhook "w" does not support dry run`), Admitted, Admitted, Admitted},
		{"another 400", refusal(400, "the object provided is unrecognized"), Refused, Refused, Refused},
		{"a webhook that uses the words", refusal(400, denied+`admission webhook "w" does not support dry run`), Refused, Refused, Refused},
		{"PodSecurity", refusal(403, `pods "web-0" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false`), Refused, Refused, Refused},
		{"a webhook denies", refusal(403, denied+"no"), Refused, Refused, Refused},
		{"a webhook denies with 409", refusal(409, denied+"no"), Refused, Refused, Refused},
		{"a webhook denies with 429", refusal(429, denied+"no"), Refused, Refused, Refused},
		{"a webhook denies with 500", refusal(500, denied+"no"), Refused, Refused, Refused},
		{"a webhook speaks of quotas", refusal(403, denied+`pods "x" is forbidden: exceeded quota: mine`), Refused, Refused, Refused},
		{"a webhook names a field", refusal(422, denied+"no", metav1.StatusCause{Type: metav1.CauseTypeForbidden, Field: "spec"}), Refused, Refused, Refused},
		{"a policy denies", refusal(422, policy+"no", metav1.StatusCause{Message: policy + "no"}), Refused, Refused, Refused},
		{"a policy denies with 401", refusal(401, policy+"no"), Refused, Refused, Refused},
		{"a webhook is down", refusal(500, `Internal error occurred: failed calling webhook "w": failed to call webhook: Post "https://w": dial tcp: connection refused`), Refused, Refused, Refused},
		{"etcd", refusal(500, "etcdserver: request timed out"), NoAnswer, NoAnswer, NoAnswer},
		{"too many requests", apierrors.NewTooManyRequests("later", 1), NoAnswer, NoAnswer, NoAnswer},
		{"too many in a quota's controller", refusal(503, "unavailable"), NoAnswer, NoAnswer, NoAnswer},
		{"timeout", apierrors.NewTimeoutError("late", 1), NoAnswer, NoAnswer, NoAnswer},
		{"credentials", apierrors.NewUnauthorized("expired"), NoAnswer, NoAnswer, NoAnswer},
		{"gone", apierrors.NewNotFound(pods, "web-0"), Stale, Stale, Stale},
		{"conflict", apierrors.NewConflict(pods, "web-0", errors.New("modified")), Stale, Stale, Stale},
		{"exists", apierrors.NewAlreadyExists(pods, "web-0"), Stale, Stale, Admitted},
		{"another UID", apierrors.NewInvalid(pod, "web-0", field.ErrorList{field.Invalid(field.NewPath("metadata", "uid"), "a", "field is immutable")}), Stale, Stale, Stale},
		{"the namespace ends", refusal(403, "namespace is being terminated", metav1.StatusCause{Type: corev1.NamespaceTerminatingCause}), Stale, Stale, Stale},
		{"quota", refusal(403, quota), Refused, Refused, NoRoom},
		{"a quota that wants requests", refusal(403, `pods "web-0" is forbidden: failed quota: q: must specify cpu`), Refused, Refused, Refused},
		{"immutable", immutable, Immutable, Immutable, Refused},
		{"immutable below spec", apierrors.NewInvalid(pod, "web-0", field.ErrorList{field.Forbidden(field.NewPath("spec", "containers"), "no")}), Immutable, Immutable, Refused},
		{"invalid below spec", apierrors.NewInvalid(pod, "web-0", field.ErrorList{field.Invalid(field.NewPath("spec", "containers"), "", "no")}), Refused, Immutable, Refused},
		{"forbidden, elsewhere", apierrors.NewInvalid(pod, "web-0", field.ErrorList{field.Forbidden(field.NewPath("specifics"), "no")}), Refused, Immutable, Refused},
		{"node too small", refusal(403, "no", metav1.StatusCause{Type: "NodeCapacity"}), Refused, Immutable, Refused},
		{"other rights", apierrors.NewForbidden(pods, "web-0", errors.New(`User "u" cannot patch resource "pods"`)), Refused, Refused, Refused},
		{"too large", refusal(413, "Request entity too large"), Refused, Refused, Refused},
	} {
		for kind, want := range map[Kind]Verdict{Update: c.update, Resize: c.resize, Create: c.create} {
			if got := Judge(kind, c.err); got != want {
				t.Errorf("%s, %s: %s, want %s", c.about, kind, got, want)
			}
		}
	}
}
