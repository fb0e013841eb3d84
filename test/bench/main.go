// Command bench measures TApp on a cluster of simulated nodes, beside StatefulSet
// and a bare client that makes the same writes as fast as the API server takes
// them: the limit. All run on one machine, in one run, one after the other, so
// that only their ratio means something. What it measures goes into a JSON file,
// from which `bench report` makes the page and its plots.
//
//	make bench
//	make bench BENCH='--size 1x1000 --contender tapp --phase in-place'
//	make bench BENCH=fleet
//	make bench BENCH=failover
//	make bench-report
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"tkestack.io/tapp/test/bench/contender"
	"tkestack.io/tapp/test/bench/failover"
	"tkestack.io/tapp/test/bench/fleet"
	"tkestack.io/tapp/test/bench/measure"
	"tkestack.io/tapp/test/bench/record"
	"tkestack.io/tapp/test/bench/report"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	file := &cli.StringFlag{Name: "record", Value: "docs/performance.json", Usage: "`FILE` of what was measured"}
	app := &cli.App{
		Name:  "bench",
		Usage: "measure TApp beside StatefulSet and a bare client",
		Flags: []cli.Flag{
			file,
			&cli.StringFlag{Name: "kubeconfig", Usage: "`FILE` of a cluster by devcluster, in its state directory; its nodes must be simulated"},
			&cli.StringFlag{Name: "tapp", Value: "bin/tapp", Usage: "`FILE` of the controller to measure"},
			&cli.StringFlag{Name: "devcluster", Value: "bin/devcluster", Usage: "`FILE` of the program that stops and starts parts of the cluster"},
			&cli.StringSliceFlag{Name: "size", Value: cli.NewStringSlice("1x100", "1x1000", "1x10000", "1000x10"), Usage: "`OBJECTSxINSTANCES`"},
			&cli.StringSliceFlag{Name: "contender", Value: cli.NewStringSlice(record.Contenders()...),
				Usage: "`NAME`: bare, bare-objects (of many objects), tapp, statefulset, statefulset-alone or kwok"},
			&cli.StringSliceFlag{Name: "phase", Value: cli.NewStringSlice(record.Phases()...), Usage: "`NAME`s of phases; create always runs, but counts only if named"},
			&cli.StringFlag{Name: "gate", Value: "both", Usage: "with the readiness gate: `true, false or both`"},
			&cli.IntFlag{Name: "rounds", Value: 1, Usage: "repeat each measurement; the report shows the median"},
			&cli.DurationFlag{Name: "steady", Value: 10 * time.Minute, Usage: "how `long` to watch the steady state"},
		},
		Action: run,
		Commands: []*cli.Command{{
			Name: "fleet", Usage: "measure the controller of AppSets, with simulated members, on the cluster of --kubeconfig alone", Action: runFleet,
			Flags: []cli.Flag{&cli.StringSliceFlag{Name: "of", Value: cli.NewStringSlice("rollouts", "appsets", "members"), Usage: "`NAME`s of what is measured: rollouts, and what many AppSets or members take (appsets, members)"}},
		}, {
			Name: "failover", Usage: "measure how soon another replica works after the leader went, on the cluster of --kubeconfig", Action: runFailover,
		}, {
			Name: "micro", Usage: "put what go test -bench printed into the record, and how much memory --tapp takes that only starts", ArgsUsage: "FILE", Flags: []cli.Flag{file},
			Action: func(c *cli.Context) error {
				return micro(c.Context, c.String("record"), c.Args().First(), c.String("tapp"))
			},
		}, {
			Name: "report", Usage: "write the page and the data of its plots from the record",
			Flags: []cli.Flag{
				file,
				&cli.StringFlag{Name: "page", Value: "docs/performance.md", Usage: "`FILE` to write"},
				&cli.StringFlag{Name: "plots", Value: "dist/plots.json", Usage: "`FILE` to write for tools/plot"},
			},
			Action: func(c *cli.Context) error {
				return report.Write(c.String("record"), c.String("page"), c.String("plots"))
			},
		}},
	}
	if err := app.RunContext(ctx, os.Args); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func connection(c *cli.Context) (*rest.Config, error) {
	if c.String("kubeconfig") == "" {
		return nil, errors.New("--kubeconfig is missing: which cluster?")
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", c.String("kubeconfig"))
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	return cfg, nil
}

func runFleet(c *cli.Context) error {
	cfg, err := connection(c)
	if err != nil {
		return err
	}
	version, err := versionOf(c.String("tapp"))
	if err != nil {
		return err
	}
	o := fleet.Options{Config: cfg, Binary: c.String("tapp"), Kubeconfig: c.String("kubeconfig"), Save: func(m record.Fleet) error {
		m.At, m.Version = time.Now(), version
		var err error
		if m.Load, err = measure.Load(); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "%s: %+v, %d MB\n", m.Name, m.Spread, m.Memory>>20)
		return change(c.String("record"), func(f *record.File) { f.AddFleet(m) })
	}}
	for _, name := range c.StringSlice("of") {
		switch name {
		case "rollouts":
			o.Rollouts = true
		case "appsets":
			o.AppSets = true
		case "members":
			o.Members = true
		default:
			return fmt.Errorf("--of: there is no %q", name)
		}
	}
	return fleet.Run(c.Context, o)
}

func run(c *cli.Context) error {
	cfg, err := connection(c)
	if err != nil {
		return err
	}
	p, err := parse(c)
	if err != nil {
		return err
	}
	b, err := benchOf(c, cfg)
	if err != nil {
		return err
	}
	return p.run(c.Context, b)
}

func benchOf(c *cli.Context, cfg *rest.Config) (*contender.Bench, error) {
	dir, err := filepath.Abs(filepath.Dir(c.String("kubeconfig")))
	if err != nil {
		return nil, fmt.Errorf("finding the cluster: %w", err)
	}
	b := &contender.Bench{
		Cluster: measure.Cluster{Dir: dir}, Kubeconfig: c.String("kubeconfig"),
		Binary: c.String("tapp"), Devcluster: c.String("devcluster"),
	}
	return b, b.Connect(cfg)
}

func runFailover(c *cli.Context) (err error) {
	cfg, err := connection(c)
	if err != nil {
		return err
	}
	version, err := versionOf(c.String("tapp"))
	if err != nil {
		return err
	}
	b, err := benchOf(c, cfg)
	if err != nil {
		return err
	}
	namespace, err := b.Namespace(c.Context)
	if err != nil {
		return err
	}
	line, restore, err := b.StopControllerManager(c.Context)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, restore(c.Context)) }()
	return failover.Run(c.Context, failover.Options{
		Config: cfg, Namespace: namespace.Name,
		Contenders: []failover.Contender{failover.TApp(c.String("tapp"), c.String("kubeconfig")), failover.StatefulSet(line)},
		Save: func(m record.Failover) error {
			m.At, m.Version = time.Now(), version
			var err error
			if m.Load, err = measure.Load(); err != nil {
				return err
			}
			fmt.Fprintf(os.Stderr, "%s, killed: %t: %+v\n", m.Contender, m.Killed, m.Spread)
			return change(c.String("record"), func(f *record.File) { f.AddFailover(m) })
		},
	})
}
