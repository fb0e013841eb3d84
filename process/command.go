// Package process is what every command of tapp is beside its work: a command
// line, a logger, metrics and health over HTTP, and parts that end together.
package process

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"
	"k8s.io/klog/v2"
)

// Spec of a command that serves until it is told to end.
type Spec struct {
	Name    string
	Usage   string
	Version string
	// Flags of the command. Those of the logger and --version come on top.
	Flags []cli.Flag
	// Run does the work until its context, which carries the logger, ends.
	Run func(context.Context) error
}

// Command makes the command.
func Command(s Spec) *cli.Command {
	var log logging
	var printVersion bool
	return &cli.Command{
		Name:  s.Name,
		Usage: s.Usage,
		Flags: Union(s.Flags, []cli.Flag{
			&cli.IntFlag{Name: "v", Usage: "log `level`: 2 tells of syncs, 3 of writes, 4 of what was skipped", Destination: &log.verbosity},
			&cli.StringFlag{Name: "logging-format", Usage: "text or json", Destination: &log.format, Value: "text"},
			&cli.BoolFlag{Name: "version", Usage: "print the version and exit", Destination: &printVersion},
		}),
		Action: func(ctx *cli.Context) error {
			if printVersion {
				_, err := fmt.Fprintln(ctx.App.Writer, s.Version)
				return err
			}
			if ctx.NArg() > 0 {
				return fmt.Errorf("%q is no flag; `tapp %s` takes flags only", ctx.Args().First(), s.Name)
			}
			logger, err := log.start(ctx.App.ErrWriter)
			if err != nil {
				return err
			}
			defer klog.Flush()
			BoundMemory(ctx.Context)
			return s.Run(klog.NewContext(ctx.Context, logger))
		},
	}
}

// Union of the flags of several parts of a command. Of flags with the same name
// the first one counts: whoever composes the parts copies its value to the others.
func Union(parts ...[]cli.Flag) []cli.Flag {
	var out []cli.Flag
	known := map[string]bool{}
	for _, flags := range parts {
		for _, f := range flags {
			if name := f.Names()[0]; !known[name] {
				known[name] = true
				out = append(out, f)
			}
		}
	}
	return out
}
