package check

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"k8s.io/apimachinery/pkg/util/wait"

	"tkestack.io/tapp/process"
)

// every is how long a check waits that is repeated.
const every = 2 * time.Second

// Command is `tapp check`, which `helm test` runs.
func Command(version string) *cli.Command {
	var o Options
	var kubeconfig, lease string
	var timeout time.Duration
	o.Kinds = []string{"tapp"}
	return process.Command(process.Spec{
		Name: "check", Usage: "say whether the cluster serves TApp's kinds, judges them, and has a controller that leads. Nothing is stored", Version: version,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "kubeconfig", Usage: "`path` of a kubeconfig; empty: KUBECONFIG, or the cluster that this runs in", Destination: &kubeconfig},
			&cli.StringFlag{Name: "namespace", Usage: "the `namespace` of the TApps that are tried", Destination: &o.Namespace, Value: "default"},
			&cli.GenericFlag{Name: "controllers", Usage: "`kinds` that are to be served, with commas between them: " + strings.Join(names(), ", "), Value: (*process.Names)(&o.Kinds)},
			&cli.BoolFlag{Name: "judged", Usage: "webhooks are to judge the TApps of the namespace", Destination: &o.Judged, Value: true},
			&cli.StringFlag{Name: "lease", Usage: "`namespace/name` of the Lease of the controllers; empty: it is not looked at", Destination: &lease},
			&cli.DurationFlag{Name: "timeout", Usage: "how `long` it may take until all holds", Destination: &timeout, Value: time.Minute},
		},
		Run: func(ctx context.Context) error {
			if err := o.parse(lease); err != nil {
				return err
			}
			cfg, err := process.FindAPIServer(nil, kubeconfig, "")
			if err != nil {
				return err
			}
			process.Introduce(cfg, version, "check")
			cfg.ContentType, cfg.AcceptContentTypes = "", "" // objects without Go types are JSON
			cfg.Timeout = 30 * time.Second
			c, err := newChecker(cfg, o)
			if err != nil {
				return err
			}
			return c.wait(ctx, os.Stdout, timeout)
		},
	})
}

// names of the kinds.
func names() []string { return slices.Sorted(maps.Keys(kinds)) }

// parse judges the kinds, and reads the name of the Lease.
func (o *Options) parse(lease string) error {
	if err := process.Names(o.Kinds).Among("--controllers", names()...); err != nil || lease == "" {
		return err
	}
	var ok bool
	if o.LeaseNamespace, o.LeaseName, ok = strings.Cut(lease, "/"); !ok || o.LeaseNamespace == "" || o.LeaseName == "" {
		return fmt.Errorf("--lease: %q is not namespace/name", lease)
	}
	return nil
}

// wait checks until all holds, or the time is over, and prints how it is then.
func (c *checker) wait(ctx context.Context, out io.Writer, timeout time.Duration) error {
	var last []finding
	failed := func() (n int) {
		for _, f := range last {
			if f.err != nil {
				n++
			}
		}
		return n
	}
	// Its error says that the time is over; the findings say more.
	_ = wait.PollUntilContextTimeout(ctx, every, timeout, true, func(ctx context.Context) (bool, error) {
		if found := c.all(ctx); last == nil || ctx.Err() == nil {
			last = found
		}
		return failed() == 0, nil
	})
	for _, f := range last {
		if f.err != nil {
			fmt.Fprintf(out, "FAIL %s: %v\n", f.holds, f.err)
		} else {
			fmt.Fprintf(out, "ok   %s\n", f.holds)
		}
	}
	if n := failed(); n > 0 {
		return fmt.Errorf("%d of %d checks failed", n, len(last))
	}
	return nil
}
