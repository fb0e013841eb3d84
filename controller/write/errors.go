package write

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ErrStale is what a write returns that came too late: the object has gone, or
// is another one by now. That is no fault: the next plan will see it.
var ErrStale = errors.New("the view was stale")

// StaleOr makes ErrStale of an error that says that what was to be changed has
// gone, or is another one by now.
func StaleOr(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) || IsOtherUID(err) {
		return fmt.Errorf("%w: %s", ErrStale, err.Error())
	}
	return err
}

// IsNotServed says whether the API server does not know the resource of an object, and not
// only the object: its CRD is not installed, or was deleted.
func IsNotServed(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// UnlessTerminating makes ErrStale of an error that says that the namespace is being
// deleted: the owner is about to go with it, and there is nothing to tell.
func UnlessTerminating(err error) error {
	if IsTerminating(err) {
		return fmt.Errorf("%w: %w", ErrStale, err)
	}
	return err
}

// IsTerminating says whether an error says that the namespace is being deleted.
func IsTerminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// IsTransient says whether an error is the API server's or the network's, and will
// go away for all objects at once.
func IsTransient(err error) bool {
	if isTooLarge(err) {
		return false
	}
	var network net.Error
	var request *url.Error
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.As(err, &request) || errors.As(err, &network) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) || apierrors.IsUnexpectedServerError(err)
}

// MayBeDone says whether a write that failed may have been done all the same: its answer was
// lost, or the API server gave up waiting for it. What was never sent, refused, or put off was
// not done.
func MayBeDone(err error) bool {
	var dial *net.OpError
	if err == nil || errors.Is(err, ErrStale) || IsRefusal(err) || errors.As(err, &dial) && dial.Op == "dial" {
		return false
	}
	return !apierrors.IsTooManyRequests(err) && !apierrors.IsServiceUnavailable(err)
}

// IsRefusal says whether an error is what the API server answers about the object that was
// written. So is a webhook that cannot be called, although it may be back at any time.
func IsRefusal(err error) bool { return !IsTransient(err) || isWebhookAway(err) }

// isWebhookAway says whether an admission webhook could not be called, or does not answer as
// it has to: the API server then answers 500.
func isWebhookAway(err error) bool {
	text := err.Error()
	return apierrors.IsInternalError(err) && (strings.Contains(text, "failed calling webhook ") || strings.Contains(text, "admission webhook "))
}

// isTooLarge says whether an error is about the size of the one object that was written. What
// etcd says of that, an API server passes on as a 500 without a reason, and what its own
// client of etcd says, likewise.
func isTooLarge(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	s := status.Status()
	return s.Code == http.StatusRequestEntityTooLarge || s.Code == http.StatusInternalServerError &&
		(strings.Contains(s.Message, "etcdserver: request is too large") || strings.Contains(s.Message, "trying to send message larger than max"))
}

// IsOtherUID says whether a patch was refused because the object of that name is
// another one by now: a patch with a UID that differs is an attempt to change it.
func IsOtherUID(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Field == "metadata.uid" {
			return true
		}
	}
	return false
}

// Words of an error for people: the API server's own.
func Words(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Reason != metav1.StatusReasonUnknown {
		return status.Status().Message
	}
	var request *url.Error
	if errors.As(err, &request) {
		return request.Err.Error() // without the address, which has the object's name in it
	}
	return err.Error()
}

// reach says how many writes an error concerns.
type reach int

const (
	// reachNone: no error, or none of its own.
	reachNone reach = iota
	// reachOne: only the object that was written.
	reachOne
	// reachSome: perhaps all writes of the class; after a few in a row it is all.
	reachSome
	// reachClass: all writes of the class, such as a quota's, of a webhook that is away, or of
	// a namespace that is being deleted.
	reachClass
	// reachAll: all writes, such as an API server that is away.
	reachAll
)

func reachOf(err error) reach {
	switch {
	case IsTerminating(err):
		return reachClass // nothing more will be created there
	case err == nil, errors.Is(err, ErrStale):
		return reachNone
	case isWebhookAway(err):
		return reachClass // others may be written that it does not judge
	case IsTransient(err):
		return reachAll
	case apierrors.IsForbidden(err) && !strings.Contains(err.Error(), "admission webhook"):
		return reachClass // a quota, a policy of the namespace, or a permission that we lack
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err), isTooLarge(err):
		return reachSome
	}
	return reachOne
}
