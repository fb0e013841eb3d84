package write

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestErrors(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	invalid := func(path string) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a", field.ErrorList{field.Invalid(field.NewPath("metadata", path), "x", "no")})
	}
	for _, c := range []struct {
		err                 error
		transient, otherUID bool
	}{
		{nil, false, false},
		{errors.New("any"), false, false},
		{fmt.Errorf("wrapped: %w", context.DeadlineExceeded), true, false},
		{&url.Error{Op: "Get", URL: "https://api", Err: errors.New("refused")}, true, false},
		{apierrors.NewTooManyRequests("slow down", 1), true, false},
		{apierrors.NewInternalError(errors.New("etcd")), true, false},
		{errEtcd("etcdserver: request timed out"), true, false},
		{errEtcd("etcdserver: request is too large"), false, false},
		{errEtcd("rpc error: code = ResourceExhausted desc = trying to send message larger than max (2097299 vs. 2097152)"), false, false},
		{apierrors.NewRequestEntityTooLargeError("limit is 3145728"), false, false},
		{apierrors.NewServiceUnavailable("starting"), true, false},
		{apierrors.NewGenericServerResponse(http.StatusBadGateway, "get", pods, "a", "", 0, true), true, false},
		{apierrors.NewConflict(pods, "a", nil), false, false},
		{apierrors.NewNotFound(pods, "a"), false, false},
		{invalid("uid"), false, true},
		{invalid("name"), false, false},
	} {
		if transient, other := IsTransient(c.err), IsOtherUID(c.err); transient != c.transient || other != c.otherUID {
			t.Errorf("%v: transient %v, another UID %v", c.err, transient, other)
		}
	}
}

func TestMayBeDone(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	read := &url.Error{Op: "Patch", URL: "https://api", Err: &net.OpError{Op: "read", Err: errors.New("connection reset by peer")}}
	dial := &url.Error{Op: "Patch", URL: "https://api", Err: &net.OpError{Op: "dial", Err: errors.New("connection refused")}}
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{context.DeadlineExceeded, true},
		{read, true},
		{dial, false},
		{apierrors.NewTimeoutError("slow", 1), true},
		{errEtcd("etcdserver: request timed out"), true},
		{apierrors.NewInternalError(errors.New(`failed calling webhook "policy": no endpoints`)), false},
		{apierrors.NewTooManyRequests("slow down", 1), false},
		{apierrors.NewServiceUnavailable("starting"), false},
		{apierrors.NewConflict(pods, "a", nil), false},
		{apierrors.NewForbidden(pods, "a", errors.New("quota")), false},
		{fmt.Errorf("%w: gone", ErrStale), false},
	} {
		if got := MayBeDone(c.err); got != c.want {
			t.Errorf("%v: it may be done: %t", c.err, got)
		}
	}
}

func TestIsNotServed(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{apierrors.NewNotFound(pods, "a"), false},
		{apierrors.NewGenericServerResponse(http.StatusNotFound, "patch", pods, "a", "404 page not found", 0, true), true},
		{apierrors.NewGenericServerResponse(http.StatusBadGateway, "patch", pods, "a", "", 0, true), false},
	} {
		if got := IsNotServed(c.err); got != c.want {
			t.Errorf("%v: %v", c.err, got)
		}
	}
}

// TestIsRefusal: what the API server answers about the object, and a webhook that is away,
// is a refusal. An API server that is away or busy has refused nothing.
func TestIsRefusal(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{errQuota, true},
		{errInvalid, true},
		{errWebhook, true},
		{errTaken, true},
		{errWebhookAway, true},
		{fmt.Errorf("patching: %w", errWebhookAway), true},
		{apierrors.NewInternalError(errors.New(`admission webhook "x" attempted to modify the object`)), true},
		{apierrors.NewRequestEntityTooLargeError("limit is 3145728"), true},
		{apierrors.NewInternalError(errors.New("etcd")), false},
		{apierrors.NewInternalError(errors.New("resource quota evaluation timed out")), false},
		{errEtcd("etcdserver: no leader"), false},
		{apierrors.NewTooManyRequests("slow down", 1), false},
		{apierrors.NewTimeoutError("failed calling webhook x", 1), false},
		{errAway, false},
		{context.DeadlineExceeded, false},
	} {
		if got := IsRefusal(c.err); got != c.want {
			t.Errorf("%v: %t, want %t", c.err, got, c.want)
		}
	}
}

func TestReach(t *testing.T) {
	for _, c := range []struct {
		err  error
		want reach
	}{
		{nil, reachNone},
		{fmt.Errorf("%w: gone", ErrStale), reachNone},
		{errQuota, reachClass},
		{UnlessTerminating(errGoing), reachClass},
		{errWebhook, reachSome},
		{errInvalid, reachSome},
		{errWebhookAway, reachClass},
		{errTaken, reachOne},
		{errAway, reachAll},
		{fmt.Errorf("creating: %w", errAway), reachAll},
		{apierrors.NewTooManyRequests("slow down", 1), reachAll},
		{apierrors.NewInternalError(errors.New("etcd")), reachAll},
		{errEtcd("etcdserver: no leader"), reachAll},
		{fmt.Errorf("creating: %w", errEtcd("etcdserver: request is too large")), reachSome},
		{apierrors.NewRequestEntityTooLargeError("limit is 3145728"), reachSome},
	} {
		if got := reachOf(c.err); got != c.want {
			t.Errorf("%v: reach %d, want %d", c.err, got, c.want)
		}
	}
}

// errEtcd is how an API server passes on what etcd said: a 500 without a reason.
func errEtcd(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: message}}
}
