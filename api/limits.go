package api

import (
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/lru"
)

// keptLimiters bounds how many callers and addresses are remembered.
const keptLimiters = 4096

// limits are the rates of requests and of failures.
type limits struct {
	callers  *lru.Cache // of a caller's key
	failures *lru.Cache // of an address
	perSec   int
	perMin   int
	mu       sync.Mutex
}

func newLimits(requestsPerSecond, failuresPerMinute int) *limits {
	return &limits{callers: lru.New(keptLimiters), failures: lru.New(keptLimiters), perSec: requestsPerSecond, perMin: failuresPerMinute}
}

func (l *limits) of(cache *lru.Cache, key string, fresh func() *rate.Limiter) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, ok := cache.Get(key); ok {
		if limiter, ok := known.(*rate.Limiter); ok {
			return limiter
		}
	}
	limiter := fresh()
	cache.Add(key, limiter)
	return limiter
}

// allow a request of a caller.
func (l *limits) allow(caller string) bool {
	return l.of(l.callers, caller, func() *rate.Limiter { return rate.NewLimiter(rate.Limit(l.perSec), 2*l.perSec) }).Allow()
}

func (l *limits) failuresOf(address string) *rate.Limiter {
	return l.of(l.failures, address, func() *rate.Limiter {
		return rate.NewLimiter(rate.Every(time.Minute/time.Duration(l.perMin)), l.perMin)
	})
}

// mayFail says whether an address has not sent too many wrong tokens yet.
func (l *limits) mayFail(address string) bool { return l.failuresOf(address).Tokens() >= 1 }

// failed counts a wrong token.
func (l *limits) failed(address string) { l.failuresOf(address).Allow() }

// slots bound how many requests or streams are open at a time, of all callers and of one.
type slots struct {
	all, perUser int
	what         string // that is open

	mu     sync.Mutex
	open   int
	byUser map[string]int
}

func newSlots(all, perUser int, what string) *slots {
	return &slots{all: all, perUser: perUser, what: what, byUser: map[string]int{}}
}

// begin of something, of a caller who may not be known yet; the function that is returned ends it.
func (s *slots) begin(who *Caller) (func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open >= s.all {
		return nil, apierrors.NewTooManyRequests(fmt.Sprintf("%d %s are open, which is the most there may be", s.open, s.what), retrySeconds)
	}
	user := ""
	if who != nil {
		if user = who.key; s.byUser[user] >= s.perUser {
			return nil, apierrors.NewTooManyRequests(fmt.Sprintf("%s has %d %s open, which is the most that one caller may have", who.Name, s.byUser[user], s.what), retrySeconds)
		}
		s.byUser[user]++
	}
	s.open++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open--
		if s.byUser[user]--; s.byUser[user] <= 0 {
			delete(s.byUser, user)
		}
	}), nil
}

func (s *slots) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}
