package sim

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
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// chunk of seeds that one process runs, and chunkMost how long that may take.
	chunk     = 200
	chunkMost = 5 * time.Minute
	// mark begins the lines that processes tell their outcome by.
	mark = "outcome "
	// mostFailures after which the driver gives up.
	mostFailures = 10
)

// outcome of some seeds.
type outcome struct {
	Seeds    int
	Steps    int
	Failures map[int64]string
	Coverage Coverage
}

func (o *outcome) add(other outcome) {
	o.Seeds += other.Seeds
	o.Steps += other.Steps
	for seed, why := range other.Failures {
		o.Failures[seed] = why
	}
	o.Coverage.Add(other.Coverage)
}

// drive runs seeds in processes of their own, many at a time, and shows how far it is.
func drive(first int64, count, processes int) error {
	began := time.Now()
	var mu sync.Mutex
	sum := outcome{Failures: map[int64]string{}, Coverage: Coverage{}}
	group, ctx := errgroup.WithContext(context.Background())
	group.SetLimit(processes)
	for from := first; from < first+int64(count); from += chunk {
		group.Go(func() error {
			if ctx.Err() != nil {
				return nil
			}
			got, err := process(ctx, "TestSeeds", from, min(chunk, int(first+int64(count)-from)))
			mu.Lock()
			defer mu.Unlock()
			sum.add(got)
			visited, of, _ := sum.Coverage.Visited()
			fmt.Fprintf(os.Stderr, "\r%d of %d seeds, %d steps, crashes at %d of %d points, %d failures, %s ", sum.Seeds, count, sum.Steps, visited, of, len(sum.Failures), time.Since(began).Round(time.Second))
			if len(sum.Failures) >= mostFailures {
				return errors.New("too many failures")
			}
			return err
		})
	}
	err := group.Wait()
	fmt.Fprintln(os.Stderr)
	if _, _, missing := sum.Coverage.Visited(); len(missing) > 0 && err == nil {
		var got outcome
		got, err = process(context.Background(), "TestCrashPoints", first, len(missing))
		sum.add(got)
	}
	_, _, missing := sum.Coverage.Visited()
	for _, p := range missing {
		err = errors.Join(err, fmt.Errorf("no process crashed at the point %q", p))
	}
	for _, seed := range sortedSeeds(sum.Failures) {
		fmt.Fprintf(os.Stderr, "seed %d: %s\n", seed, sum.Failures[seed])
	}
	if len(sum.Failures) > 0 {
		err = errors.Join(err, fmt.Errorf("%d of %d seeds failed; `make sim SEED=n` shows what happened", len(sum.Failures), sum.Seeds))
	}
	return err
}

// process runs a test with some seeds in a process.
func process(ctx context.Context, test string, from int64, count int) (outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, chunkMost)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+test+"$", "-test.timeout=0", "-sim.tell",
		fmt.Sprintf("-sim.start=%d", from), fmt.Sprintf("-sim.seeds=%d", count))
	cmd.Env = append(os.Environ(), "GODEBUG=asyncpreemptoff=1", "GOGC=400")
	out, err := cmd.Output()
	var got outcome
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

func sortedSeeds(m map[int64]string) []int64 {
	return slices.Sorted(maps.Keys(m))
}
