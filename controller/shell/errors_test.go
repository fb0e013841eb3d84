package shell

import (
	"context"
	"errors"
	"fmt"
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

// TestStatusPatch: only what differs, null for what is gone, and the UID.
func TestStatusPatch(t *testing.T) {
	type status struct {
		A     int                `json:"a,omitempty"`
		B     string             `json:"b,omitempty"`
		Conds []metav1.Condition `json:"conditions,omitempty"`
	}
	got, err := StatusPatch("u", &status{A: 1, B: "same"}, &status{B: "same", Conds: []metav1.Condition{{Type: "Ready"}}})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"metadata":{"uid":"u"},"status":{"a":null,"conditions":[{"message":"","reason":"","status":"","type":"Ready"}]}}`
	if string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
