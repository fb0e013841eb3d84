// Package drive runs the seeds of a simulation in processes of their own, many at a
// time, and looks for the smallest run that fails.
package drive

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// chunk of seeds that one process runs, and chunkMost how long that may take.
	chunk     = 200
	chunkMost = 10 * time.Minute
	// mark begins the lines that processes tell their outcome by.
	mark = "outcome "
	// mostFailures after which the driver gives up.
	mostFailures = 10
)

// Outcome of some seeds. The zero value is empty.
type Outcome struct {
	Seeds    int
	Steps    int
	Failures map[int64]string
	// Coverage counts what was visited.
	Coverage map[string]int
}

// Add the outcome of others.
func (o *Outcome) Add(other Outcome) {
	if o.Failures == nil {
		o.Failures, o.Coverage = map[int64]string{}, map[string]int{}
	}
	o.Seeds += other.Seeds
	o.Steps += other.Steps
	maps.Copy(o.Failures, other.Failures)
	for what, n := range other.Coverage {
		o.Coverage[what] += n
	}
}

// Tell the process that started this one.
func (o *Outcome) Tell(t *testing.T) {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("%s%s\n", mark, text)
}

// Seeds from the first one on, of the test TestSeeds, in so many processes at a time. show
// says in a few words what was visited.
func Seeds(first int64, count, processes int, flags []string, show func(Outcome) string) (Outcome, error) {
	began := time.Now()
	var mu sync.Mutex
	var sum Outcome
	group, ctx := errgroup.WithContext(context.Background())
	group.SetLimit(processes)
	for from := first; from < first+int64(count); from += chunk {
		group.Go(func() error {
			if ctx.Err() != nil {
				return nil
			}
			got, err := Process(ctx, "TestSeeds", from, min(chunk, int(first+int64(count)-from)), flags...)
			mu.Lock()
			defer mu.Unlock()
			sum.Add(got)
			fmt.Fprintf(os.Stderr, "\r%d of %d seeds, %d steps, %s, %d failures, %s ", sum.Seeds, count, sum.Steps, show(sum), len(sum.Failures), time.Since(began).Round(time.Second))
			if len(sum.Failures) >= mostFailures {
				return errors.New("too many failures")
			}
			return err
		})
	}
	err := group.Wait()
	fmt.Fprintln(os.Stderr)
	return sum, err
}

// Conclude tells of failures; nil: there are none.
func (o *Outcome) Conclude(kind string) error {
	for _, seed := range slices.Sorted(maps.Keys(o.Failures)) {
		fmt.Fprintf(os.Stderr, "seed %d: %s\n", seed, o.Failures[seed])
	}
	if len(o.Failures) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d seeds failed; `make sim%s SEED=n` shows what happened", len(o.Failures), o.Seeds, kind)
}

// Process runs a test with some seeds, and more flags, in a process.
func Process(ctx context.Context, test string, from int64, count int, flags ...string) (Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, chunkMost)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], append([]string{"-test.run=^" + test + "$", "-test.timeout=0", "-sim.tell",
		fmt.Sprintf("-sim.start=%d", from), fmt.Sprintf("-sim.seeds=%d", count)}, flags...)...)
	cmd.Env = append(os.Environ(), "GODEBUG=asyncpreemptoff=1", "GOGC=400")
	out, err := cmd.Output()
	var got Outcome
	lines := bufio.NewScanner(strings.NewReader(string(out)))
	lines.Buffer(nil, 1<<24)
	told := false
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), mark); ok {
			told = json.Unmarshal([]byte(text), &got) == nil
		}
	}
	if !told {
		return got, fmt.Errorf("the process with seeds %d to %d did not end well: %w\n%s", from, from+int64(count)-1, err, tail(string(out)))
	}
	return got, nil
}

func tail(s string) string { return s[max(0, len(s)-4000):] }
