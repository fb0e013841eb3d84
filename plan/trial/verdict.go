package trial

import (
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Verdict is what an answer of the API server means.
type Verdict string

// The verdicts.
const (
	// Admitted: it takes the patch or the pod.
	Admitted Verdict = "Admitted"
	// Refused: it does not, and will not before somebody changes something.
	Refused Verdict = "Refused"
	// NoRoom: a quota is full, which is checked last. The pod that goes gives room back.
	NoRoom Verdict = "NoRoom"
	// Immutable: its own validation does not let a running pod change so.
	Immutable Verdict = "Immutable"
	// NoAnswer: it did not come to a decision.
	NoAnswer Verdict = "NoAnswer"
	// Stale: the pod is gone, or another one by now.
	Stale Verdict = "Stale"
)

// The causes that the API server gives when it refuses a resize because of the node: it
// has not that much, or cannot resize pods (plugin/pkg/admission/podresize in
// k8s.io/kubernetes).
const (
	nodeCapacity        metav1.CauseType = "NodeCapacity"
	unsupportedPlatform metav1.CauseType = "UnsupportedPlatform"
)

// Codes of HTTP. The reasons that go with them are for webhooks and policies to choose.
const (
	badRequest      = 400
	unauthorized    = 401
	forbidden       = 403
	notFound        = 404
	requestTimeout  = 408
	conflict        = 409
	unprocessable   = 422
	tooManyRequests = 429
	internalError   = 500
)

// Judge an answer; nil is a success.
//
// | the API server says | verdict |
// |---|---|
// | success; AlreadyExists to a creation | Admitted |
// | 400: a webhook does not support dry run | Admitted |
// | whatever a webhook or a policy denies with | Refused |
// | 422, another UID; 404; 409; the namespace is being deleted | Stale |
// | 422 to an update, with the cause FieldValueForbidden at or below spec | Immutable |
// | 422, or 403 because of the node, to a resize | Immutable |
// | 403 to a creation: exceeded quota | NoRoom |
// | 401, 408, 429 | NoAnswer |
// | any other 4xx | Refused |
// | 500: a webhook cannot be called, or a policy fails | Refused |
// | anything else, such as a broken connection | NoAnswer |
func Judge(kind Kind, err error) Verdict {
	var status apierrors.APIStatus
	if err == nil {
		return Admitted
	}
	if !errors.As(err, &status) {
		return NoAnswer
	}
	s := status.Status()
	if isDenial(s.Message) {
		return Refused
	}
	switch s.Code {
	case badRequest:
		if strings.HasPrefix(s.Message, "admission webhook ") && strings.HasSuffix(s.Message, " does not support dry run") {
			return Admitted
		}
	case unauthorized, requestTimeout, tooManyRequests:
		return NoAnswer
	case notFound:
		return Stale
	case conflict:
		if kind == Create && s.Reason == metav1.StatusReasonAlreadyExists {
			return Admitted // the name is looked up last
		}
		return Stale
	case forbidden:
		return judgeForbidden(kind, err, s.Message)
	case unprocessable:
		return judgeInvalid(kind, s.Details)
	}
	if s.Code >= internalError && (s.Code != internalError || !isByAdmission(s.Message)) {
		return NoAnswer
	}
	return Refused
}

// isDenial says whether a webhook or a policy denied the request, each of which may choose
// the code.
func isDenial(message string) bool {
	return strings.Contains(message, "admission webhook ") && strings.Contains(message, " denied the request") ||
		strings.Contains(message, "ValidatingAdmissionPolicy ") && strings.Contains(message, " denied request")
}

// isByAdmission says whether it was admission that failed. The API server says "failed
// calling webhook", and names policies by their kind.
func isByAdmission(message string) bool {
	return strings.Contains(message, "webhook") || strings.Contains(message, "policy") || strings.Contains(message, "AdmissionPolicy")
}

func judgeForbidden(kind Kind, err error, message string) Verdict {
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return Stale
	case kind == Create && strings.Contains(message, " is forbidden: exceeded quota: "):
		return NoRoom
	case kind == Resize && (apierrors.HasStatusCause(err, nodeCapacity) || apierrors.HasStatusCause(err, unsupportedPlatform) ||
		strings.Contains(message, "which are not available on node")):
		return Immutable
	}
	return Refused
}

// judgeInvalid tells the API server's own validation, whose causes have types, and fields of
// the spec where an update may not change them, from a policy's.
func judgeInvalid(kind Kind, details *metav1.StatusDetails) Verdict {
	if details == nil {
		return Refused
	}
	verdict := Refused
	for _, cause := range details.Causes {
		inSpec := cause.Field == "spec" || strings.HasPrefix(cause.Field, "spec.") || strings.HasPrefix(cause.Field, "spec[")
		switch {
		case cause.Field == "metadata.uid":
			return Stale
		case kind == Update && inSpec && cause.Type == metav1.CauseTypeForbidden, kind == Resize && cause.Type != "":
			verdict = Immutable
		}
	}
	return verdict
}

// Words of the API server, or of who could not reach it.
func Words(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Reason != metav1.StatusReasonUnknown {
		return status.Status().Message
	}
	return err.Error()
}
