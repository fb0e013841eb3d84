package access

import (
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/lru"

	"tkestack.io/tapp/api/answer"
)

// keptLimiters bounds how many callers and addresses are remembered.
const keptLimiters = 4096

// Rates are the rates of requests and of failures.
type Rates struct {
	callers  *lru.Cache // of a caller's key
	failures *lru.Cache // of an address
	perSec   int
	perMin   int
	mu       sync.Mutex
}

// NewRates makes those of all callers: each may send so many requests a second, twice as many at
// once, and each address so many wrong tokens a minute.
func NewRates(requestsPerSecond, failuresPerMinute int) *Rates {
	return &Rates{callers: lru.New(keptLimiters), failures: lru.New(keptLimiters), perSec: requestsPerSecond, perMin: failuresPerMinute}
}

func (l *Rates) of(cache *lru.Cache, key string, fresh func() *rate.Limiter) *rate.Limiter {
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

// Allow a request of a caller.
func (l *Rates) Allow(caller string) bool {
	return l.of(l.callers, caller, func() *rate.Limiter { return rate.NewLimiter(rate.Limit(l.perSec), 2*l.perSec) }).Allow()
}

func (l *Rates) failuresOf(address string) *rate.Limiter {
	return l.of(l.failures, address, func() *rate.Limiter {
		return rate.NewLimiter(rate.Every(time.Minute/time.Duration(l.perMin)), l.perMin)
	})
}

// MayFail says whether an address has not sent too many wrong tokens yet.
func (l *Rates) MayFail(address string) bool { return l.failuresOf(address).Tokens() >= 1 }

// Failed counts a wrong token.
func (l *Rates) Failed(address string) { l.failuresOf(address).Allow() }

// Slots bound how many requests or streams are open at a time, of all callers and of one.
type Slots struct {
	all, perUser int
	what         string // that is open

	mu     sync.Mutex
	open   int
	byUser map[string]int
}

// NewSlots makes room for so many, and for so many of one caller; what is their name in errors.
func NewSlots(all, perUser int, what string) *Slots {
	return &Slots{all: all, perUser: perUser, what: what, byUser: map[string]int{}}
}

// Begin of something, of a caller who may not be known yet; the function that is returned ends it.
func (s *Slots) Begin(who *Caller) (func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open >= s.all {
		return nil, apierrors.NewTooManyRequests(fmt.Sprintf("%d %s are open, which is the most there may be", s.open, s.what), answer.RetrySeconds)
	}
	user := ""
	if who != nil {
		if user = who.Key; s.byUser[user] >= s.perUser {
			return nil, apierrors.NewTooManyRequests(fmt.Sprintf("%s has %d %s open, which is the most that one caller may have", who.Name, s.byUser[user], s.what), answer.RetrySeconds)
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

// Count is how many are open.
func (s *Slots) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}
