package access

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"tkestack.io/tapp/process"
)

const (
	// keepRefused is shorter than what is granted is kept: what is granted anew takes effect
	// sooner than what is withdrawn.
	keepRefused = 10 * time.Second
	// keptTokens and keptAnswers bound the memory for what callers send.
	keptTokens  = 1024
	keptAnswers = 8192
	// ReviewTimeout of a question to the API server.
	ReviewTimeout = 5 * time.Second
	// reviewsPerSecond bounds the questions.
	reviewsPerSecond = 200
	// maxToken is the longest token that is looked at, in bytes.
	maxToken = 16 << 10
)

// Reviews asks the API server who a caller is, by TokenReview, and what he may do, by
// SubjectAccessReview. A client certificate of the connection is as good as a token: TLS
// has verified it.
type Reviews struct {
	tokens           authenticationclient.TokenReviewInterface
	access           authorizationclient.SubjectAccessReviewInterface
	known            *cache.LRUExpireCache // of [32]byte, the token's hash: *Caller, or nil
	answers          *cache.LRUExpireCache // of question: verdict
	granted, refused time.Duration
}

// NewReviews makes one, which remembers for so long who is known and may.
func NewReviews(config *rest.Config, keep time.Duration) (*Reviews, error) {
	tokens, access, err := process.ReviewClients(config, reviewsPerSecond, ReviewTimeout)
	if err != nil {
		return nil, err
	}
	return &Reviews{tokens: tokens, access: access, known: cache.NewLRUExpireCache(keptTokens), answers: cache.NewLRUExpireCache(keptAnswers),
		granted: keep, refused: min(keep, keepRefused)}, nil
}

// errNoToken is the answer to a request that says nothing of who sends it.
var errNoToken = apierrors.NewUnauthorized("give a bearer token, such as one of kubectl create token, or a client certificate of the cluster's CA")

// Authenticate by the token, or else by the certificate.
func (v *Reviews) Authenticate(ctx context.Context, r *http.Request) (*Caller, error) {
	token, ok := bearer(r)
	if !ok {
		if caller := byCertificate(r); caller != nil {
			return caller, nil
		}
		return nil, errNoToken
	}
	if len(token) > maxToken {
		return nil, apierrors.NewUnauthorized("the token is too long")
	}
	hash := sha256.Sum256([]byte(token))
	if known, ok := v.known.Get(hash); ok {
		if caller, ok := known.(*Caller); ok && caller != nil {
			return caller, nil
		}
		return nil, errBadToken
	}
	ctx, cancel := context.WithTimeout(ctx, ReviewTimeout)
	defer cancel()
	review, err := v.tokens.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return nil, unavailable("the API server could not be asked who you are", err)
	}
	if !review.Status.Authenticated {
		v.known.Add(hash, (*Caller)(nil), v.refused)
		return nil, errBadToken
	}
	user := review.Status.User
	caller := &Caller{Name: user.Username, UID: user.UID, Groups: user.Groups, Extra: map[string][]string{}}
	for key, values := range user.Extra {
		caller.Extra[key] = values
	}
	caller.identify()
	v.known.Add(hash, caller, v.granted)
	return caller, nil
}

var errBadToken = apierrors.NewUnauthorized("the token is not one that the API server knows, or it has expired")

// byCertificate is the caller whose certificate the connection has verified.
func byCertificate(r *http.Request) *Caller {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return nil
	}
	leaf := r.TLS.PeerCertificates[0]
	if leaf.Subject.CommonName == "" || time.Now().After(leaf.NotAfter) {
		return nil
	}
	caller := &Caller{Name: leaf.Subject.CommonName, Groups: append(slices.Clone(leaf.Subject.Organization), "system:authenticated")}
	caller.identify()
	return caller
}

// identify makes the key of all that decides about rights.
func (c *Caller) identify() {
	h := sha256.New()
	write := func(parts ...string) {
		for _, p := range parts {
			fmt.Fprintf(h, "%d:%s", len(p), p)
		}
	}
	write(c.Name, c.UID)
	write(c.Groups...)
	keys := make([]string, 0, len(c.Extra))
	for key := range c.Extra {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		write(key)
		// The id of a token differs with each token of one account, and decides nothing.
		if !strings.HasSuffix(key, "/credential-id") {
			write(c.Extra[key]...)
		}
	}
	c.Key = hex.EncodeToString(h.Sum(nil))
}

type question struct {
	who  string
	what Access
}

type verdict struct {
	may bool
	why string
}

// Authorize asks once for each object in a minute.
func (v *Reviews) Authorize(ctx context.Context, who *Caller, what Access) (bool, string, error) {
	q := question{who.Key, what}
	if known, ok := v.answers.Get(q); ok {
		if a, ok := known.(verdict); ok {
			return a.may, a.why, nil
		}
	}
	extra := make(map[string]authorizationv1.ExtraValue, len(who.Extra))
	for key, values := range who.Extra {
		extra[key] = values
	}
	ctx, cancel := context.WithTimeout(ctx, ReviewTimeout)
	defer cancel()
	review, err := v.access.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: who.Name, Groups: who.Groups, UID: who.UID, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: what.Verb, Group: what.Group, Resource: what.Resource,
			Subresource: what.Subresource, Namespace: what.Namespace, Name: what.Name},
	}}, metav1.CreateOptions{})
	if err != nil {
		return false, "", unavailable("the API server could not be asked what you may see", err)
	}
	a := verdict{may: review.Status.Allowed && !review.Status.Denied, why: review.Status.Reason}
	keep := v.refused
	if a.may {
		keep = v.granted
	}
	v.answers.Add(q, a, keep)
	return a.may, a.why, nil
}

// unavailable is the answer when the API server could not be asked.
func unavailable(what string, err error) error {
	status := apierrors.NewServiceUnavailable(what)
	return errors.Join(status, err)
}
