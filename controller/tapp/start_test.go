package tapp

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	plan "tkestack.io/tapp/plan/tapp"
)

var (
	errQuota   = apierrors.NewForbidden(corev1.Resource("pods"), "a-1", errors.New("exceeded quota: q, requested: pods=1, used: pods=5, limited: pods=5"))
	errInvalid = apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a-1", nil)
	errTaken   = errors.New("the pod a-1 exists already, and belongs to nobody")
	errAway    = &url.Error{Op: "Post", URL: "https://api", Err: errors.New("connection refused")}
	errGoing   = &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonForbidden, Code: 403, Message: "the namespace is being terminated",
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}}}}
	errWebhook = apierrors.NewForbidden(corev1.Resource("pods"), "a-1", errors.New(`admission webhook "x" denied the request`))
)

func TestReach(t *testing.T) {
	for _, c := range []struct {
		err  error
		want reach
	}{
		{nil, reachNone},
		{fmt.Errorf("%w: gone", errStale), reachNone},
		{errQuota, reachClass},
		{unlessTerminating(errGoing), reachClass},
		{errWebhook, reachSome},
		{errInvalid, reachSome},
		{errTaken, reachOne},
		{errAway, reachAll},
		{fmt.Errorf("creating: %w", errAway), reachAll},
		{apierrors.NewTooManyRequests("slow down", 1), reachAll},
		{apierrors.NewInternalError(errors.New("etcd")), reachAll},
	} {
		if got := reachOf(c.err); got != c.want {
			t.Errorf("%v: reach %d, want %d", c.err, got, c.want)
		}
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
		"a namespace that goes, once":        {func(int) error { return unlessTerminating(errGoing) }, 1, 999},
		"an API server that is away, once":   {func(int) error { return errAway }, 1, 999},
		"an invalid template, 3 times":       {func(int) error { return errInvalid }, 3, 997},
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
			var writes []task
			for n := range 1000 {
				writes = append(writes, task{class: fmt.Sprint("class", n/500), do: func() error {
					mu.Lock()
					defer mu.Unlock()
					tried++
					return c.fails(n)
				}})
			}
			if name != "a class of its own that fails" && name != "two classes of which one is broken" {
				for n := range writes {
					writes[n].class = "same"
				}
			}
			skipped := newSlowStart(1, func() bool { return false }).run(writes)
			// Writes that were under way when the first one failed have been tried too.
			if tried < c.tried || tried > c.tried+writersAtOnce-1 && c.tried < 1000 || tried+skipped != 1000 {
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
		var writes []task
		for range 255 {
			writes = append(writes, task{do: func() error {
				mu.Lock()
				perSecond[int(time.Since(began).Seconds())]++
				mu.Unlock()
				time.Sleep(time.Second)
				return nil
			}})
		}
		newSlowStart(1, func() bool { return false }).run(writes)
		if got, want := fmt.Sprint(perSecond), "map[0:1 1:2 2:4 3:8 4:16 5:32 6:64 7:64 8:64]"; got != want {
			t.Errorf("began per second %s, want %s", got, want)
		}
	})
}

func TestSlowStartEndsWhenOver(t *testing.T) {
	done := 0
	s := newSlowStart(1, func() bool { return done == 10 })
	writes := make([]task, 100)
	for n := range writes {
		writes[n].do = func() error { s.mu.Lock(); defer s.mu.Unlock(); done++; return errTaken } // reachOne: one at a time
	}
	if skipped := s.run(writes); skipped != 90 {
		t.Errorf("%d skipped, want 90", skipped)
	}
}

func TestFailuresAreBounded(t *testing.T) {
	var f failures
	for n := range 1000 {
		f.addFor("create", fmt.Sprint("a-", n), fmt.Sprint(n),
			apierrors.NewForbidden(corev1.Resource("pods"), fmt.Sprint("a-", n), errors.New("exceeded quota")))
	}
	for n := range 20 {
		f.add("read a node", "", fmt.Errorf("node %d", n))
	}
	err := f.join()
	want := "cannot create instances 0-999: pods \"a-0\" is forbidden: exceeded quota\n" +
		"cannot read a node: node 0\ncannot read a node: node 1\ncannot read a node: node 2\ncannot read a node: node 3\nand 16 other errors"
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	if !apierrors.IsForbidden(err) {
		t.Error("the cause is lost")
	}
	if (&failures{}).join() != nil {
		t.Error("no failure is no error")
	}
}

func TestMomentum(t *testing.T) {
	var m momentum
	now := time.Now()
	if m.at(now, 1) != 1 {
		t.Error("the first sync starts slowly")
	}
	if m.at(now, 8) != 8 {
		t.Error("the first sync starts as others let it")
	}
	m.keep(&slowStart{allowed: 40}, true, now)
	if m.at(now.Add(time.Second), 1) != 40 || m.at(now.Add(momentumLasts+time.Second), 1) != 1 {
		t.Error("one that follows soon goes on, one that follows late does not")
	}
	if m.at(now.Add(time.Second), 8) != 40 || m.at(now.Add(momentumLasts+time.Second), 8) != 8 {
		t.Error("one that follows late starts as others let it")
	}
	m.keep(&slowStart{allowed: 40}, false, now)
	if m.at(now, 8) != 1 || m.at(now.Add(time.Hour), 8) != 1 {
		t.Error("after a fault of its own it starts slowly, whatever others do")
	}
}

// TestNeighbours: a TApp of which nothing is known starts with several writes where all
// that it does has just come through in its namespace.
func TestNeighbours(t *testing.T) {
	var n neighbours
	now := time.Now()
	create := []plan.Action{{Op: plan.OpCreate}, {Op: plan.OpCreate}}
	both := append([]plan.Action{{Op: plan.OpCreateRevision}}, create...)
	created := map[plan.Op]int{plan.OpCreate: 3}
	if n.at("ns", create, now) != 1 {
		t.Error("nothing is known yet")
	}
	n.keep("ns", map[plan.Op]int{plan.OpCreateRevision: 1}, true, now)
	if n.at("ns", create, now) != 1 || n.at("ns", both, now) != 1 {
		t.Error("of pods nothing is known yet")
	}
	n.keep("ns", created, true, now)
	for _, actions := range [][]plan.Action{create, both} {
		if n.at("ns", actions, now.Add(time.Second)) != startTrusted || n.at("ns", actions, now.Add(momentumLasts)) != 1 {
			t.Error("it is trusted for a while")
		}
	}
	if n.at("other", create, now) != 1 {
		t.Error("of another namespace nothing is known")
	}
	n.keep("other", created, true, now)
	n.keep("ns", created, false, now)
	if n.at("ns", create, now) != 1 || n.at("ns", both[:1], now) != 1 || n.at("other", create, now) != startTrusted {
		t.Error("after a fault nothing is trusted in its namespace")
	}
	for i := range 100 {
		n.keep(fmt.Sprint("ns-", i), created, true, now.Add(time.Duration(i)*momentumLasts))
	}
	if len(n.trusted) != 1 {
		t.Errorf("%d deeds are remembered, want the last one only", len(n.trusted))
	}
}

// TestNeighboursOfApply: a thousand creates of a TApp whose neighbour does well meet an
// exhausted quota. It costs some requests the first time, and one after that.
func TestNeighboursOfApply(t *testing.T) {
	full := false
	s := &stub{answer: func(_, path, _ string) (int, any) {
		if full {
			return apiError(403, metav1.StatusReasonForbidden, "exceeded quota")
		}
		return 201, somePod("b-0", "u", "50")
	}}
	c := s.newController(t)
	actions := func(name string) (out []plan.Action) {
		for n := range 1000 {
			out = append(out, plan.Action{Op: plan.OpCreate, ID: fmt.Sprint(n), Pod: somePod(fmt.Sprint(name, "-", n), "", "")})
		}
		return out
	}
	a, b := someTApp("a"), someTApp("b")
	_, _ = c.tapps.GetStore().Add(a), c.tapps.GetStore().Add(b)
	c.apply(t.Context(), b, &object{}, actions("b")[:1])
	full = true
	var m object
	for _, most := range []int{startTrusted, 1, 1} {
		before := len(s.asked())
		c.apply(t.Context(), a, &m, actions("a"))
		if n := len(s.asked()) - before; n == 0 || n > most {
			t.Errorf("%d requests, want one to %d", n, most)
		}
	}
}

// TestTurns: all TApps together have writersInAll writes under way, and who waits is let
// go when the work ends.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := make(turns, 2)
		ctx, cancel := context.WithCancel(t.Context())
		began := make(chan func(), 3)
		for range 3 {
			go func() { began <- turns.take(ctx) }()
		}
		synctest.Wait()
		if len(began) != 2 {
			t.Fatalf("%d have begun, want 2", len(began))
		}
		(<-began)()
		synctest.Wait()
		if len(began) != 2 {
			t.Fatalf("%d hold a turn after one has ended, want 2", len(began))
		}
		go func() { began <- turns.take(ctx) }()
		synctest.Wait()
		cancel()
		synctest.Wait()
		if len(began) != 3 {
			t.Fatalf("%d are let go when the work ends, want the third, too", len(began))
		}
		for range 3 {
			(<-began)()
		}
	})
}
