package drive

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"testing"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// Flags of the tests of a simulation.
type Flags struct {
	// Start is the first seed, By how far the next one is, and Seeds how many there are; 0:
	// some.
	Start, By int64
	Seeds     int
	// One seed alone, with its trace; 0: no.
	One int64
	// Workers are the processes that run at a time; 0: all seeds run in this one.
	Workers int
	// Tell of the outcome on standard output, for the process that started this one.
	Tell bool
}

// Define the flags. Main reads them.
func Define() *Flags {
	f := &Flags{}
	flag.Int64Var(&f.Start, "sim.start", 1, "the first seed")
	flag.Int64Var(&f.By, "sim.by", 1, "every how many-th seed; without workers only")
	flag.IntVar(&f.Seeds, "sim.seeds", 0, "how many seeds; 0: some")
	flag.Int64Var(&f.One, "sim.seed", 0, "only this seed, with its trace; 0: no")
	flag.IntVar(&f.Workers, "sim.workers", 0, "processes that run at a time; 0: all in this one")
	flag.BoolVar(&f.Tell, "sim.tell", false, "tell of the outcome on standard output, for the process that started this one")
	return f
}

// Main is what TestMain exits with. It has one goroutine run at a time: of two that could,
// the runtime would pick either. With workers it does what is to be done with them, in
// place of the tests.
func (f *Flags) Main(m *testing.M, work func() error) int {
	flag.Parse()
	runtime.GOMAXPROCS(1)
	utilruntime.ErrorHandlers = nil // they sleep by a clock of their own
	if f.Workers == 0 {
		return m.Run()
	}
	if f.By != 1 {
		fmt.Fprintln(os.Stderr, "-sim.by goes without -sim.workers: processes run all seeds from -sim.start on")
		return 2
	}
	if err := work(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// Work runs the seeds of a kind in processes, and tells of those that failed.
func (f *Flags) Work(kind string, show func(Outcome) string) error {
	sum, err := Seeds(f.Start, f.Seeds, f.Workers, nil, show)
	return errors.Join(err, sum.Conclude(kind))
}

// Run is what one seed came to.
type Run struct {
	Steps    int
	Coverage map[string]int
	Failure  error
	// Explain tells people of the smallest run that fails as this one did.
	Explain func()
}

// mostInARow of failures after which a process gives up.
const mostInARow = 3

// Each runs the seeds, or some where no number was given, and fails with those that do.
func (f *Flags) Each(t *testing.T, some int, run func(seed int64) Run) {
	t.Helper()
	count := f.Seeds
	if count == 0 {
		count = some
	}
	var sum Outcome
	for seed := f.Start; seed < f.Start+f.By*int64(count) && len(sum.Failures) < mostInARow; seed += f.By {
		r := run(seed)
		got := Outcome{Seeds: 1, Steps: r.Steps, Coverage: r.Coverage, Failures: map[int64]string{}}
		if r.Failure != nil {
			got.Failures[seed] = r.Failure.Error()
			t.Errorf("seed %d: %v", seed, r.Failure)
			if len(sum.Failures) == 0 && !f.Tell {
				r.Explain()
			}
		}
		sum.Add(got)
	}
	if f.Tell {
		sum.Tell(t)
	}
}

// Visited says at how many of the points processes crashed: at each site of writes in each
// of the ways.
func (o *Outcome) Visited(sites []string, ways ...string) string {
	n := 0
	for _, site := range sites {
		for _, way := range ways {
			if o.Coverage[site+" | "+way] > 0 {
				n++
			}
		}
	}
	return fmt.Sprintf("crashes at %d of %d points", n, len(ways)*len(sites))
}
