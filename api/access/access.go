package access

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Caller is who asks.
type Caller struct {
	// Name, UID, groups and extra as authentication has them.
	Name, UID string
	Groups    []string
	Extra     map[string][]string
	// Key tells callers apart in caches and limits.
	Key string
}

// Access is what a caller wants to do with an object, as RBAC has it.
type Access struct {
	Verb, Group, Resource, Subresource string
	// Namespace is empty for all of them, and Name for all objects.
	Namespace, Name string
}

// Authenticator says who sent a request.
type Authenticator interface {
	// Authenticate returns an error of apimachinery: Unauthorized, or that nobody could be
	// asked.
	Authenticate(ctx context.Context, r *http.Request) (*Caller, error)
}

// Authorizer says what a caller may do.
type Authorizer interface {
	// Authorize returns false and why not, or an error if nobody could be asked.
	Authorize(ctx context.Context, who *Caller, what Access) (may bool, why string, err error)
}

// bearer is the token of a request.
func bearer(r *http.Request) (string, bool) {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	return token, ok && strings.EqualFold(scheme, "bearer") && token != ""
}

// Loopback lets in whoever has the token, as a user whose own credentials the clients have: the
// API server decides then what he may see. It is for a server on a loopback address
// whose token no other user of the machine knows.
type Loopback struct {
	// Token of this run.
	Token string
	// User is shown in logs.
	User string
}

// Authenticate compares the token.
func (l Loopback) Authenticate(_ context.Context, r *http.Request) (*Caller, error) {
	token, ok := bearer(r)
	given, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(l.Token))
	if !ok || l.Token == "" || subtle.ConstantTimeCompare(given[:], want[:]) != 1 {
		return nil, apierrors.NewUnauthorized("the token is not that of this run: open the address that the command printed")
	}
	return &Caller{Name: l.User, Key: "loopback"}, nil
}

// Authorize lets the API server decide, which is asked with the user's own credentials.
func (l Loopback) Authorize(context.Context, *Caller, Access) (bool, string, error) {
	return true, "", nil
}
