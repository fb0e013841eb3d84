//go:build cluster

package fleet

import (
	"context"
	"slices"
	"sync"
	"testing"
)

// phase of an application's life.
type phase struct {
	name string
	// begin it, and see that it is through.
	begin, end func()
}

// leader is a program that dies at writes.
type leader struct {
	*site
	relays []*relay // of the servers that it writes to
	start  func(context.Context) error
	// taking: another one takes its place.
	taking sync.WaitGroup
	// writes of each phase, as they were without a death.
	writes map[string][]point
}

// point is where a program dies.
type point struct {
	relay *relay
	write string
	after bool
}

// TestLeaderKilled: master and worker die before and after each kind of write, in each
// phase of an application's life. Who comes next goes on, and all is as it is to be.
func TestLeaderKilled(t *testing.T) {
	r := newSecond(t)
	hub, member := r.on(r.hub), r.members[1]
	toHub, toMember, ofWorker := r.relay(r.hub), r.relay(member), r.relay(member)
	register := func(server string, ca []byte) {
		t.Helper()
		config, err := member.kubeconfig(t.Context(), "tapp-fleet", server, ca)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.register(t.Context(), member.name, config); err != nil {
			t.Fatal(err)
		}
	}
	register(toMember.URL, toMember.ca())
	leaders := []*leader{
		{site: r.hub, relays: []*relay{toHub, toMember}, writes: map[string][]point{}, start: func(ctx context.Context) error {
			return r.hub.launchBy(ctx, toHub.URL, toHub.ca(), append([]string{"--leader-elect=false"}, master...)...)
		}},
		{site: member, relays: []*relay{ofWorker}, writes: map[string][]point{}, start: func(ctx context.Context) error {
			return member.launchBy(ctx, ofWorker.URL, ofWorker.ca(), "--leader-elect=false", "--controllers", "advdeployment")
		}},
	}
	t.Cleanup(func() {
		for _, l := range leaders {
			l.taking.Wait()
		}
		ctx := context.WithoutCancel(t.Context())
		if err := r.join(ctx, member); err != nil {
			t.Error(err)
		}
		if err := member.work(ctx); err != nil {
			t.Error(err)
		}
		if err := r.lead(ctx); err != nil {
			t.Error(err)
		}
	})
	for _, l := range leaders {
		if err := l.start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	apply := func(version string, replicas int) func() {
		return func() {
			hub.KubectlWith(app("shop", "deployment", version, replicas, member.name), "apply", "--filename", "-")
		}
	}
	phases := []phase{
		{"create", apply("v1", 2), func() { r.shows(r.hub, "Running 3 3 v1", "get", "as", "shop", columns) }},
		{"update", apply("v2", 3), func() { r.shows(r.hub, "Running 4 4 v2", "get", "as", "shop", columns) }},
		{"delete", func() { hub.Kubectl("delete", "as", "shop", "--wait=false") }, func() {
			hub.Kubectl("wait", "--for=delete", "as/shop", "--timeout=5m")
			r.shows(member, "", "get", "advdeployments,deployments,services,replicasets,pods", "--output=name")
		}},
	}
	for _, p := range phases {
		for _, l := range leaders {
			l.listen()
		}
		p.begin()
		p.end()
		for _, l := range leaders {
			l.note(p.name)
		}
	}
	deaths := 0
	for left := true; left; {
		left = false
		for _, p := range phases {
			var armed []*relay
			for _, l := range leaders {
				if points := l.writes[p.name]; len(points) > 0 {
					armed = append(armed, l.arm(t, points[0]))
					l.writes[p.name] = points[1:]
					left = left || len(points) > 1
				}
			}
			p.begin()
			p.end()
			for _, relay := range armed {
				if relay.sprung() {
					deaths++
				}
			}
		}
	}
	t.Logf("%d deaths", deaths)
	if deaths < 20 {
		t.Errorf("%d deaths", deaths)
	}
}

// relay to an API server, for the time of the test.
func (r *rig) relay(s *site) *relay {
	r.Helper()
	out, err := newRelay(s.Config)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() {
		out.CloseClientConnections()
		out.Close()
	})
	return out
}

// listen to what is written.
func (l *leader) listen() {
	for _, relay := range l.relays {
		relay.set(nil)
	}
}

// note what was written in a phase.
func (l *leader) note(phase string) {
	for _, relay := range l.relays {
		for _, write := range slices.Sorted(slices.Values(relay.writes())) {
			l.writes[phase] = append(l.writes[phase], point{relay, write, false}, point{relay, write, true})
		}
	}
}

// arm the leader's relays: it dies at this point, and another one takes its place.
func (l *leader) arm(t *testing.T, at point) *relay {
	t.Helper()
	l.listen()
	l.taking.Wait()
	program := l.program
	at.relay.set(&trap{write: at.write, after: at.after, kill: func() {
		if err := program.Kill(); err != nil {
			t.Error(err)
		}
		l.taking.Go(func() {
			if err := l.start(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		})
	}})
	return at.relay
}
