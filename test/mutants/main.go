// Command mutants measures the tests: it makes one wrong edit of the product at a
// time, and runs tests until one fails. A mutant that survives is a hole in them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"sync"
	"time"
)

func main() {
	var h hunting
	only := flag.String("only", "", "only mutants whose name matches this regular expression")
	baseline := flag.Bool("baseline", true, "first see that the tests pass without a mutant")
	flag.IntVar(&h.workers, "workers", runtime.GOMAXPROCS(0), "mutants that are tested at once")
	flag.DurationVar(&h.timeout, "timeout", 5*time.Minute, "how long one run of tests may take: a mutant may go on for ever, and a busy machine needs more")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := h.run(ctx, os.Stdout, *only, *baseline)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// job is one mutant to kill.
type job struct {
	mutant
	room room
	// class of the simulation that has to kill it alone, and oracle that has to kill it by its
	// name; nil: whoever.
	class  *simulated
	oracle *judged
}

func (h hunting) run(ctx context.Context, out io.Writer, only string, baseline bool) error {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	if h.root, err = filepath.Abs("."); err != nil {
		return err
	}
	if h.dir, err = os.MkdirTemp("", "mutants"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(h.dir) }()
	h.jobs = jobsOf(pattern)
	if baseline {
		if err := h.passWithout(ctx, out); err != nil {
			return err
		}
	}
	return h.hunt(ctx, out)
}

// jobsOf are the mutants whose name matches.
func jobsOf(pattern *regexp.Regexp) []job {
	var jobs []job
	for _, r := range rooms {
		for _, m := range r.mutants {
			if pattern.MatchString(m.name) {
				jobs = append(jobs, job{mutant: m, room: r})
			}
		}
	}
	for i := range oracles {
		r, m := oracles[i].find()
		if m.name = oracles[i].name(); pattern.MatchString(m.name) {
			jobs = append(jobs, job{mutant: m, room: r, oracle: &oracles[i]})
		}
	}
	for i, s := range simulations {
		if pattern.MatchString(s.name) {
			jobs = append(jobs, job{mutant: s.mutant, room: room{path: s.room}, class: &simulations[i]})
		}
	}
	return jobs
}

// passWithout makes sure that the tests do not fail anyway.
func (h hunting) passWithout(ctx context.Context, out io.Writer) error {
	for _, s := range stagesOf(h.jobs) {
		fmt.Fprintf(out, "without a mutant: %s\n", s.name)
		if err := h.passes(ctx, s); err != nil {
			return err
		}
	}
	for class, with := range classStages(h.jobs) {
		fmt.Fprintf(out, "without a mutant: the class %s\n", class)
		if err := h.passes(ctx, with); err != nil {
			return err
		}
	}
	return nil
}

// stagesOf the mutants that are to be killed.
func stagesOf(jobs []job) []stage {
	return slices.DeleteFunc(slices.Clone(stages), func(s stage) bool {
		return !slices.ContainsFunc(jobs, func(j job) bool { return j.class == nil && j.oracle == nil && slices.Contains(s.of, j.room.path) })
	})
}

// passes makes sure that the tests of a stage do not fail anyway.
func (h hunting) passes(ctx context.Context, s stage) error {
	t, err := h.compile(ctx, s, "")
	if err != nil {
		return err
	}
	by, err := t.run(ctx)
	if err != nil {
		return err
	}
	if by != "" {
		return fmt.Errorf("%s fails without any mutant: %s", s.name, by)
	}
	return nil
}

type hunting struct {
	root, dir string
	jobs      []job
	workers   int
	// timeout of one run of tests.
	timeout time.Duration
}

// hunt kills all it can, and prints who survives.
func (h hunting) hunt(ctx context.Context, out io.Writer) error {
	began := time.Now()
	var (
		mu           sync.Mutex
		done, killed int
		errs         []error
		places       = make(chan struct{}, h.workers)
		group        sync.WaitGroup
	)
	for _, j := range h.jobs {
		places <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		group.Go(func() {
			defer func() { <-places }()
			by, err := h.kill(ctx, j)
			mu.Lock()
			defer mu.Unlock()
			done++
			verdict := "killed by " + by
			switch {
			case err != nil:
				verdict = "ERROR"
				errs = append(errs, err)
			case by == "":
				verdict = "SURVIVED: " + j.about
				errs = append(errs, fmt.Errorf("mutant %s of %s survived: %s", j.name, filepath.Join(j.room.path, j.file), j.about))
			default:
				killed++
			}
			fmt.Fprintf(out, "%3d/%d  %-28s %s\n", done, len(h.jobs), j.name, verdict)
		})
	}
	group.Wait()
	fmt.Fprintf(out, "score: %d of %d mutants killed, in %s\n", killed, len(h.jobs), time.Since(began).Round(time.Second))
	return errors.Join(append(errs, ctx.Err())...)
}

// kill returns which test killed the mutant; empty: none did.
func (h hunting) kill(ctx context.Context, j job) (string, error) {
	overlay, err := j.overlay(h.dir, h.root, j.room)
	if err != nil {
		return "", err
	}
	if j.class != nil {
		return h.killAlone(ctx, *j.class, overlay)
	}
	if j.oracle != nil {
		return h.killJudged(ctx, j.oracle, overlay)
	}
	for _, s := range stagesFor(j.room) {
		t, err := h.compile(ctx, s, overlay)
		if err != nil {
			return "", fmt.Errorf("mutant %s: %w", j.name, err)
		}
		by, err := t.run(ctx)
		if by != "" || err != nil {
			return s.name + ": " + by, err
		}
	}
	return "", nil
}
