package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"tkestack.io/tapp/test/bench/contender"
	"tkestack.io/tapp/test/bench/measure"
	"tkestack.io/tapp/test/bench/record"
)

// program is what to measure.
type program struct {
	record     string
	binary     string
	sizes      []contender.Size
	contenders []string
	phases     []string
	rounds     int
	steady     time.Duration
	begin      time.Time
}

func parse(c *cli.Context) (*program, error) {
	p := &program{
		record: c.String("record"), binary: c.String("tapp"),
		contenders: c.StringSlice("contender"), phases: c.StringSlice("phase"),
		rounds: c.Int("rounds"), steady: c.Duration("steady"), begin: time.Now(),
	}
	for _, name := range p.contenders {
		if !slices.Contains(record.Contenders(), name) {
			return nil, fmt.Errorf("--contender: there is no %q", name)
		}
	}
	for _, name := range p.phases {
		if !slices.Contains(record.Phases(), name) {
			return nil, fmt.Errorf("--phase: there is no %q, but %s", name, strings.Join(record.Phases(), ", "))
		}
	}
	gates, ok := map[string][]bool{"both": {true, false}, "true": {true}, "false": {false}}[c.String("gate")]
	if !ok {
		return nil, fmt.Errorf("--gate: %q is neither true nor false nor both", c.String("gate"))
	}
	for _, text := range c.StringSlice("size") {
		var s contender.Size
		if _, err := fmt.Sscanf(text, "%dx%d", &s.Objects, &s.Instances); err != nil || s.Objects < 1 || s.Instances < 1 {
			return nil, fmt.Errorf("--size: %q is not like 1x1000", text)
		}
		for _, s.Gate = range gates {
			p.sizes = append(p.sizes, s)
		}
	}
	return p, nil
}

// run goes through the program. The record is saved after each measurement, so
// that one which is broken off loses nothing.
func (p *program) run(ctx context.Context, b *contender.Bench) error {
	version, err := versionOf(p.binary)
	if err != nil {
		return err
	}
	boot, err := measure.Boot()
	if err != nil {
		return err
	}
	kubernetes, err := b.Kubernetes()
	if err != nil {
		return err
	}
	machine, err := measure.Machine(kubernetes)
	if err != nil {
		return err
	}
	if err := change(p.record, func(f *record.File) { f.Machine = machine }); err != nil {
		return err
	}
	var failed []error // one that fails does not keep the others from being measured
	starts := map[string]contender.Start{
		record.Bare: b.StartBare, record.BareObjects: b.StartBareObjects, record.TApp: b.StartTApp, record.StatefulSet: b.StartStatefulSet,
		record.StatefulSetAlone: b.StartStatefulSetAlone, record.KWOK: b.StartKWOK,
	}
	for _, size := range p.sizes {
		if err := p.warmUp(ctx, b, size); err != nil {
			return errors.Join(append(failed, fmt.Errorf("warming up with %d x %d: %w", size.Objects, size.Instances, err))...)
		}
		for round := range p.rounds {
			for _, name := range p.contenders {
				if size.Gate && slices.Contains([]string{record.StatefulSet, record.StatefulSetAlone, record.KWOK}, name) {
					continue // the gate is none of theirs
				}
				if size.Objects == 1 && name == record.BareObjects {
					continue // one object is next to nothing
				}
				s := story{program: p, bench: b, size: size, round: round, version: version, boot: boot}
				if err := s.run(ctx, starts[name]); err != nil {
					err = fmt.Errorf("%s with %d x %d: %w", name, size.Objects, size.Instances, err)
					fmt.Fprintln(os.Stderr, err)
					failed = append(failed, err)
				}
				if ctx.Err() != nil {
					return errors.Join(failed...)
				}
			}
		}
	}
	return errors.Join(failed...)
}

// versionOf TApp.
func versionOf(binary string) (string, error) {
	text, err := exec.Command(binary, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("asking for TApp's version: %w", err)
	}
	fields := strings.Fields(string(text))
	return fields[len(fields)-1], nil
}

// warmUp has a bare client create what is going to be created, and records nothing. How much
// of a kind's history an API server keeps, and how many events of a watch may wait in it, grows
// with what it has seen: a young one closes all watches of pods several times a second, and
// the first contender would pay for it.
func (p *program) warmUp(ctx context.Context, b *contender.Bench, size contender.Size) error {
	namespace, err := b.Namespace(ctx)
	if err != nil {
		return err
	}
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	c, err := b.StartBare(watching, namespace, size)
	if err != nil {
		return err
	}
	err = errors.Join(c.Do[record.Create](ctx), c.Stop(ctx))
	fmt.Fprintf(os.Stderr, "%5.0f s  the API server has seen %d x %d\n", time.Since(p.begin).Seconds(), size.Objects, size.Instances)
	return err
}

// micro puts results of go test -bench into the record, and how a process starts.
func micro(ctx context.Context, path, results, binary string) error {
	found, err := measure.Micro(results)
	if err != nil {
		return err
	}
	start, err := measure.Start(ctx, binary)
	if err != nil {
		return err
	}
	return change(path, func(f *record.File) { f.AddMicro(append(found, start)) })
}

// change changes the record.
func change(path string, f func(*record.File)) error {
	file, err := record.Load(path)
	if err != nil {
		return err
	}
	f(&file)
	return file.Save(path)
}

// story is a contender's way through the phases.
type story struct {
	*program
	bench   *contender.Bench
	size    contender.Size
	round   int
	version string
	boot    string
}

func (s *story) run(ctx context.Context, start contender.Start) (err error) {
	namespace, err := s.bench.Namespace(ctx)
	if err != nil {
		return err
	}
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	c, err := start(watching, namespace, s.size)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop(ctx)) }()
	for _, phase := range record.Phases() {
		wanted := slices.Contains(s.phases, phase)
		if !wanted && phase != record.Create {
			continue
		}
		r, ok, err := s.measure(ctx, c, phase)
		if err != nil {
			return fmt.Errorf("%s: %w", phase, err)
		}
		if !ok || !wanted {
			continue
		}
		if err := change(s.record, func(f *record.File) { f.Add(r) }); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "%5.0f s  %s, round %d of %d: %.2f s, %.2f s of CPU, %d MB, %d watches closed, %v\n",
			time.Since(s.begin).Seconds(), r.Key, s.round+1, s.rounds, r.Seconds, r.CPU[c.Subject().Process], r.Peak>>20, r.ClosedWatches, r.Writes)
	}
	return nil
}

// measure returns false for a phase that the contender does not know.
func (s *story) measure(ctx context.Context, c *contender.Contender, name string) (record.Run, bool, error) {
	var r record.Run
	do := c.Do[name]
	rests := c.Subject().Process != "" && c.Name != record.StatefulSetAlone // nothing asks how much this uses at rest
	if do == nil && (name != record.Restart || c.Restart == nil) && (name != record.Steady || !rests) {
		return r, false, nil
	}
	if c.Restart != nil && (name == record.Restart || name == record.Steady) {
		// What is left of the phases before: a process that ends tells of it at once.
		if _, err := c.Restart(ctx); err != nil {
			return r, false, err
		}
	}
	phase, err := s.bench.Cluster.Begin(ctx, c.Subject())
	if err != nil {
		return r, false, err
	}
	var took, ready time.Duration
	begin := time.Now()
	switch name {
	case record.Restart:
		restarted, err := c.Restart(ctx)
		if err != nil {
			return r, false, err
		}
		phase.Restarted(c.Subject())
		took, ready = restarted.Synced, restarted.Ready
	case record.Steady:
		watch := time.NewTimer(s.steady)
		defer watch.Stop()
		select {
		case <-ctx.Done():
			return r, false, ctx.Err()
		case <-watch.C:
		}
		took = time.Since(begin)
	default:
		if err := do(ctx); err != nil {
			return r, false, err
		}
		took = time.Since(begin)
	}
	r, err = phase.End(ctx, c.Subject())
	r.Key = record.Key{Contender: c.Name, Phase: name, Objects: s.size.Objects, Instances: s.size.Instances, Gate: s.size.Gate}
	r.Round, r.Version, r.Boot = s.round, s.version, s.boot
	if name == record.OneByOne { // with many instances at a time it cannot be said what answers what
		r.Answers = phase.Answers(c.Subject())
	}
	r.Seconds, r.Ready, r.Empty = took.Seconds(), ready.Seconds(), c.Empty
	return r, true, err
}
