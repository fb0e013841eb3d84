// Command model proves that the planner keeps its promises, for up to four instances:
// it visits every state that a small model of a TApp, its pods and their kubelets can
// get into, and judges what plan.Compute wants to do there.
//
//	S1  no second pod of an instance, none of one that is stopped or has ended
//	S2  no more instances are taken out of service than the budgets let
//	S4  nothing goes by force without evidence
//	S5  no pod changes before it is drained, or is let in before it has changed
//	S7  nobody else's pod is touched
//	L1  when faults and edits stop it converges, whatever the order of steps: nothing
//	    goes in circles, and nothing rests where the spec does not want it
//
// In each state any subset of the plan's writes may be made, a write of two halves
// may stop between them, kubelets take any of their steps, pods fail and go, and
// users edit. There is no time in a state but whether something was long ago.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	plan "tkestack.io/tapp/plan/tapp"
)

func main() {
	workers := flag.Int("workers", runtime.GOMAXPROCS(0), "spaces that are explored at once")
	part := flag.Bool("small", false, "explore only the small spaces, which the unit tests have")
	only := flag.String("only", "", "explore only the spaces whose name has this in it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	spaces := whole()
	if *part {
		spaces = small()
	}
	spaces = slices.DeleteFunc(spaces, func(c Config) bool { return !strings.Contains(c.Name, *only) })
	err := run(ctx, os.Stdout, spaces, *workers)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run explores all spaces, and prints what it found.
func run(ctx context.Context, out io.Writer, spaces []Config, workers int) error {
	began := time.Now()
	var (
		mu     sync.Mutex
		total  result
		errs   []error
		places = make(chan struct{}, workers)
		group  sync.WaitGroup
	)
	fmt.Fprintf(out, "%9s %11s %6s %6s %8s  space\n", "states", "transitions", "rests", "depth", "time")
	for _, c := range spaces {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			errs = append(errs, ctx.Err())
		}
		if ctx.Err() != nil {
			break
		}
		group.Go(func() {
			defer func() { <-places }()
			r, err := Explore(c, plan.Compute)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, err)
				fmt.Fprintf(out, "%9s %11s %6s %6s %8s  %s\n", "", "", "", "", "WRONG", c.Name)
				return
			}
			fmt.Fprintf(out, "%9d %11d %6d %6d %8s  %s\n", r.states, r.transitions, r.rests, r.depth, r.took.Round(time.Millisecond), c.Name)
			total.states += r.states
			total.transitions += r.transitions
			total.rests += r.rests
			total.depth = max(total.depth, r.depth)
		})
	}
	group.Wait()
	fmt.Fprintf(out, "%9d %11d %6d %6d %8s  %d spaces, %d violations\n", total.states, total.transitions, total.rests, total.depth,
		time.Since(began).Round(time.Millisecond), len(spaces), len(errs))
	return errors.Join(errs...)
}
