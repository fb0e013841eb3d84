// Package measure counts what a phase of a contender costs: its requests by the
// audit log, bytes by the API server's own counters, CPU and memory by /proc.
package measure

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"

	"tkestack.io/tapp/test/audit"
	"tkestack.io/tapp/test/bench/record"
)

const (
	// quiet is for how long a contender may write nothing until a phase has ended:
	// statuses and events are written late.
	quiet = 3 * time.Second
	// patience with one that does not rest: then it counts until there.
	patience = 2 * time.Minute
)

// Cluster is the one that is measured.
type Cluster struct {
	// Dir is its state directory.
	Dir string
	// API is a client of its API server.
	API rest.Interface
}

// Subject is whose work is measured.
type Subject struct {
	// Wrote says whether a request was the contender's own.
	Wrote func(audit.Request) bool
	// Asked says whether it was the user's, whose wish begins the phase.
	Asked func(audit.Request) bool
	// Process is the contender's, by name; PID is that of one which is no part of
	// the cluster. Both may be absent.
	Process string
	PID     int
	// Status is how the contender's status writes are counted in Sizes, such as
	// "patch tapps". Requested are the bytes of the user's own requests of that
	// kind.
	Status    string
	Requested int64
}

// Phase is one that is under way.
type Phase struct {
	cluster   Cluster
	log       *audit.Log
	begin     time.Time
	processes map[string]int
	cpu       map[string]time.Duration
	client    time.Duration
	counters  counters
	requests  []audit.Request
	before    int64
}

// Begin starts counting.
func (c Cluster) Begin(ctx context.Context, s Subject) (*Phase, error) {
	log, err := audit.Follow(filepath.Join(c.Dir, "logs", "audit.log"))
	if err != nil {
		return nil, err
	}
	p := &Phase{cluster: c, log: log}
	if p.processes, err = find(filepath.Join(c.Dir, "bin"), parts...); err != nil {
		return nil, err
	}
	if s.PID != 0 {
		p.processes[s.Process] = s.PID
	}
	if p.counters, err = readCounters(ctx, c.API); err != nil {
		return nil, err
	}
	if pid, ok := p.processes[s.Process]; ok {
		if err := ResetPeak(pid); err != nil {
			return nil, err
		}
		u, err := UsageOf(pid)
		if err != nil {
			return nil, err
		}
		p.before = u.Resident
	}
	if p.cpu, err = p.usedCPU(); err != nil {
		return nil, err
	}
	own, err := UsageOf(os.Getpid())
	p.client, p.begin = own.CPU, time.Now()
	return p, err
}

func (p *Phase) usedCPU() (map[string]time.Duration, error) {
	used := map[string]time.Duration{}
	for name, pid := range p.processes {
		u, err := UsageOf(pid)
		if err != nil {
			return nil, err
		}
		used[name] = u.CPU
	}
	return used, nil
}

// Restarted says that the contender has another process now, whose CPU and memory
// count from its start.
func (p *Phase) Restarted(s Subject) {
	p.processes[s.Process], p.cpu[s.Process], p.before = s.PID, 0, 0
}

// End waits until the contender rests, and returns what it has done. The caller
// knows the key and how long it took.
func (p *Phase) End(ctx context.Context, s Subject) (record.Run, error) {
	own, err := UsageOf(os.Getpid()) // what comes next is no client's work: to read the audit log
	if err != nil {
		return record.Run{}, err
	}
	if err := p.settle(ctx, s); err != nil {
		return record.Run{}, err
	}
	r := record.Run{At: p.begin.UTC().Truncate(time.Second), Window: time.Since(p.begin).Seconds(), Before: p.before, Client: (own.CPU - p.client).Seconds()}
	cpu, err := p.usedCPU()
	if err != nil {
		return r, err
	}
	r.CPU = map[string]float64{}
	for name, used := range cpu {
		r.CPU[name] = (used - p.cpu[name]).Seconds()
	}
	if pid, ok := p.processes[s.Process]; ok {
		u, err := UsageOf(pid)
		if err != nil {
			return r, err
		}
		r.Peak = u.Peak
	}
	counters, err := readCounters(ctx, p.cluster.API)
	if err != nil {
		return r, err
	}
	if s.Status != "" {
		r.StatusBytes = max(0, counters.sizes.since(p.counters.sizes)[s.Status]-s.Requested)
	}
	r.ClosedWatches = counters.closed - p.counters.closed
	count(&r, p.requests, s)
	r.Kubelet = kubelet(p.requests)
	return r, nil
}

// settle gathers requests until there is none of the contender's for a while.
func (p *Phase) settle(ctx context.Context, s Subject) error {
	deadline := time.Now().Add(patience)
	last := time.Now()
	poll := time.NewTicker(quiet / 6)
	defer poll.Stop()
	for {
		news, err := p.log.Read()
		if err != nil {
			return err
		}
		p.requests = append(p.requests, news...)
		for _, r := range news {
			if s.Wrote(r) && r.IsWrite() {
				last = time.Now()
			}
		}
		if time.Since(last) >= quiet || time.Now().After(deadline) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-poll.C:
		}
	}
}
