package process

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
)

const (
	// Answers are kept as long as by Kubernetes' own components: what is granted takes
	// effect sooner than what is withdrawn.
	keepGranted = time.Minute
	keepRefused = 10 * time.Second
	// keptAnswers bounds the memory for what callers send.
	keptAnswers = 128
	// askTimeout of a question to the API server.
	askTimeout = 5 * time.Second
	// asksPerSecond bounds the questions.
	asksPerSecond = 10
)

// Authorizer lets requests pass whose bearer token is of somebody who may, by a
// TokenReview and a SubjectAccessReview of the path, as for the metrics of
// Kubernetes' own components.
type Authorizer struct {
	tokens  authenticationclient.TokenReviewInterface
	access  authorizationclient.SubjectAccessReviewInterface
	answers *cache.LRUExpireCache
}

// ReviewClients makes clients that ask the API server who somebody is and what he may, so often a second,
// twice as often at once, and wait for each answer for so long.
func ReviewClients(api *rest.Config, perSecond int, timeout time.Duration) (authenticationclient.TokenReviewInterface, authorizationclient.SubjectAccessReviewInterface, error) {
	api = rest.CopyConfig(api)
	api.Timeout = timeout
	api.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(float32(perSecond), 2*perSecond)
	authentication, err := authenticationclient.NewForConfig(api)
	if err != nil {
		return nil, nil, fmt.Errorf("making a client of TokenReviews: %w", err)
	}
	authorization, err := authorizationclient.NewForConfig(api)
	if err != nil {
		return nil, nil, fmt.Errorf("making a client of SubjectAccessReviews: %w", err)
	}
	return authentication.TokenReviews(), authorization.SubjectAccessReviews(), nil
}

// NewAuthorizer makes one. It asks the API server at most 10 times a second.
func NewAuthorizer(api *rest.Config) (*Authorizer, error) {
	tokens, access, err := ReviewClients(api, asksPerSecond, askTimeout)
	if err != nil {
		return nil, err
	}
	return &Authorizer{tokens: tokens, access: access, answers: cache.NewLRUExpireCache(keptAnswers)}, nil
}

// Protect a handler.
func (a *Authorizer) Protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok || token == "" {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "give a bearer token", http.StatusUnauthorized)
			return
		}
		code, err := a.code(r.Context(), token, strings.ToLower(r.Method), r.URL.Path)
		switch {
		case err != nil:
			klog.FromContext(r.Context()).Error(err, "Nobody knows who asks", "path", r.URL.Path)
			http.Error(w, "the API server could not be asked who you are", http.StatusServiceUnavailable)
		case code != http.StatusOK:
			http.Error(w, strings.ToLower(http.StatusText(code)), code)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// question is what an answer is kept for. The token itself is not kept.
type question struct {
	token      [sha256.Size]byte
	verb, path string
}

// code is 200, 401 or 403.
func (a *Authorizer) code(ctx context.Context, token, verb, path string) (int, error) {
	q := question{sha256.Sum256([]byte(token)), verb, path}
	if known, ok := a.answers.Get(q); ok {
		if code, ok := known.(int); ok {
			return code, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	code, err := a.ask(ctx, token, verb, path)
	if err != nil {
		return 0, err
	}
	keep := keepRefused
	if code == http.StatusOK {
		keep = keepGranted
	}
	a.answers.Add(q, code, keep)
	return code, nil
}

func (a *Authorizer) ask(ctx context.Context, token, verb, path string) (int, error) {
	who, err := a.tokens.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("reviewing a token: %w", err)
	}
	if !who.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	user := who.Status.User
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	may, err := a.access.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, Groups: user.Groups, UID: user.UID, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: verb},
	}}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("asking what %s may: %w", user.Username, err)
	}
	if !may.Status.Allowed || may.Status.Denied {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}
