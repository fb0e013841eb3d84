// Command bench measures the controller on a cluster of simulated nodes, beside
// a bare client that makes the same writes as fast as the API server takes them:
// the limit. Both run on one machine, in one run, one after the other, so that
// only their ratio means something.
//
//	make bench
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/urfave/cli/v2"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	app := &cli.App{
		Name:  "bench",
		Usage: "measure the controller beside a bare client",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "kubeconfig", Required: true, Usage: "`FILE` of the cluster; its nodes must be simulated"},
			&cli.StringFlag{Name: "tapp", Value: "bin/tapp", Usage: "`FILE` of the controller to measure"},
			&cli.IntSliceFlag{Name: "instances", Value: cli.NewIntSlice(1000), Usage: "`NUMBER`s of instances to measure with"},
			&cli.IntFlag{Name: "rounds", Value: 1, Usage: "repeat each measurement, and print the median"},
			&cli.BoolFlag{Name: "bare", Value: true, Usage: "measure the bare client too; without it there is no ratio"},
			&cli.BoolFlag{Name: "gate", Value: true, Usage: "pods have the readiness gate"},
		},
		Action: func(c *cli.Context) error {
			cfg, err := clientcmd.BuildConfigFromFlags("", c.String("kubeconfig"))
			if err != nil {
				return fmt.Errorf("reading the kubeconfig: %w", err)
			}
			b, err := newBench(cfg, c.String("kubeconfig"), c.String("tapp"), c.Bool("gate"))
			if err != nil {
				return err
			}
			b.skipBare = !c.Bool("bare")
			return b.run(c.Context, c.IntSlice("instances"), c.Int("rounds"))
		},
	}
	if err := app.RunContext(ctx, os.Args); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
