package write

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	errQuota   = apierrors.NewForbidden(corev1.Resource("pods"), "a-1", errors.New("exceeded quota: q, requested: pods=1, used: pods=5, limited: pods=5"))
	errInvalid = apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a-1", nil)
	errTaken   = errors.New("the pod a-1 exists already, and belongs to nobody")
	errAway    = &url.Error{Op: "Post", URL: "https://api", Err: errors.New("connection refused")}
	errGoing   = &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonForbidden, Code: 403, Message: "the namespace is being terminated",
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}}}}
	errTooLarge    = errEtcd("etcdserver: request is too large")
	errWebhookAway = apierrors.NewInternalError(errors.New(`failed calling webhook "x": failed to call webhook: Post "https://x.ns.svc:443/": dial tcp: connection refused`))
	errWebhook     = apierrors.NewForbidden(corev1.Resource("pods"), "a-1", errors.New(`admission webhook "x" denied the request`))
)

// TestPanicOfAWrite: it is the last write that begins, and panics where the others
// are waited for.
func TestPanicOfAWrite(t *testing.T) {
	begun := 0
	var writes []Write
	for range 10 {
		writes = append(writes, Write{Do: func() error { begun++; panic("on purpose") }})
	}
	defer func() {
		if cause := fmt.Sprint(recover()); !strings.HasPrefix(cause, "on purpose\n") || begun != 1 {
			t.Errorf("the panic is %v, after %d writes", cause, begun)
		}
	}()
	skipped := newSlowStart(1, 1, func() bool { return false }).run(writes)
	t.Errorf("%d were skipped", skipped)
}

// TestOnce: a panic reaches all who ask.
func TestOnce(t *testing.T) {
	f := Once(func() error { panic("on purpose") })
	for range 2 {
		func() {
			defer func() {
				if cause := fmt.Sprint(recover()); !strings.HasPrefix(cause, "on purpose\n") {
					t.Errorf("the panic is %v", cause)
				}
			}()
			t.Error(f())
		}()
	}
}

// TestSlowStart: what each kind of error costs 1,000 writes.
func TestSlowStart(t *testing.T) {
	for name, c := range map[string]struct {
		fails          func(n int) error
		tried, skipped int
	}{
		"none fails":                         {func(int) error { return nil }, 1000, 0},
		"a quota is met once":                {func(int) error { return errQuota }, 1, 999},
		"a namespace that goes, once":        {func(int) error { return UnlessTerminating(errGoing) }, 1, 999},
		"an API server that is away, once":   {func(int) error { return errAway }, 1, 999},
		"an invalid template, 3 times":       {func(int) error { return errInvalid }, 3, 997},
		"one that etcd does not take, too":   {func(int) error { return errTooLarge }, 3, 997},
		"taken names stop nobody":            {func(int) error { return errTaken }, 1000, 0},
		"one bad instance stops nobody":      {func(n int) error { return when(n == 3, errInvalid) }, 1000, 0},
		"nor do two beside each other":       {func(n int) error { return when(n == 3 || n == 4, errInvalid) }, 1000, 0},
		"nor the first two":                  {func(n int) error { return when(n < 2, errWebhook) }, 1000, 0},
		"a class of its own that fails":      {func(n int) error { return when(n >= 500, errQuota) }, 501, 499},
		"two classes of which one is broken": {func(n int) error { return when(n < 500, errQuota) }, 501, 499},
	} {
		t.Run(name, func(t *testing.T) {
			tried := 0
			var mu sync.Mutex
			var writes []Write
			for n := range 1000 {
				writes = append(writes, Write{Class: fmt.Sprint("class", n/500), Do: func() error {
					mu.Lock()
					defer mu.Unlock()
					tried++
					return c.fails(n)
				}})
			}
			if name != "a class of its own that fails" && name != "two classes of which one is broken" {
				for n := range writes {
					writes[n].Class = "same"
				}
			}
			skipped := newSlowStart(1, MaxConcurrent, func() bool { return false }).run(writes)
			// Writes that were under way when the first one failed have been tried too.
			if tried < c.tried || tried > c.tried+MaxConcurrent-1 && c.tried < 1000 || tried+skipped != 1000 {
				t.Errorf("%d tried and %d skipped, want %d and %d", tried, skipped, c.tried, c.skipped)
			}
			if c.tried == 1 && tried != 1 {
				t.Errorf("%d tried, want 1", tried)
			}
		})
	}
}

func when(is bool, err error) error {
	if is {
		return err
	}
	return nil
}

// TestSlowStartDoubles: with writes of a second each, 1, 2, 4 ... 64 and then 64
// at a time.
func TestSlowStartDoubles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		perSecond := map[int]int{}
		var mu sync.Mutex
		began := time.Now()
		var writes []Write
		for range 255 {
			writes = append(writes, Write{Do: func() error {
				mu.Lock()
				perSecond[int(time.Since(began).Seconds())]++
				mu.Unlock()
				time.Sleep(time.Second)
				return nil
			}})
		}
		newSlowStart(1, MaxConcurrent, func() bool { return false }).run(writes)
		if got, want := fmt.Sprint(perSecond), "map[0:1 1:2 2:4 3:8 4:16 5:32 6:64 7:64 8:64]"; got != want {
			t.Errorf("began per second %s, want %s", got, want)
		}
	})
}

func TestSlowStartEndsWhenOver(t *testing.T) {
	done := 0
	s := newSlowStart(1, MaxConcurrent, func() bool { return done == 10 })
	writes := make([]Write, 100)
	for n := range writes {
		writes[n].Do = func() error { s.mu.Lock(); defer s.mu.Unlock(); done++; return errTaken } // reachOne: one at a time
	}
	if skipped := s.run(writes); skipped != 90 {
		t.Errorf("%d skipped, want 90", skipped)
	}
}
