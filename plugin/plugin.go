// Package plugin is `kubectl tapp`: the same program under the name kubectl-tapp. It
// shows what the planner says of a TApp in the cluster, and patches single fields of the
// spec; the controller does the rest. The command line follows kubectl's conventions, and
// is made of its parts: cobra, client-go's flags and cli-runtime's printers.
package plugin

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// Streams are where the commands read and write.
type Streams = genericiooptions.IOStreams

// The names of the program when it is the plugin. kubectl starts the second one to
// complete a command line.
const (
	program         = "kubectl-tapp"
	programComplete = "kubectl_complete-tapp"
)

// IsName says whether a program that was started by this path is the plugin.
func IsName(path string) bool {
	base := filepath.Base(path)
	return base == program || base == programComplete
}

// exitCode ends a command without an error message.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// Main runs the plugin and returns its exit code. The first argument is the name
// of the program.
func Main(ctx context.Context, version string, args []string, streams Streams) int {
	words := args[1:]
	if filepath.Base(args[0]) == programComplete {
		words = append([]string{cobra.ShellCompRequestCmd}, words...)
	}
	root := newRoot(version, streams, nil)
	root.SetArgs(words)
	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	if code := exitCode(0); errors.As(err, &code) {
		return int(code)
	}
	_, _ = fmt.Fprintln(streams.ErrOut, "error:", cleanLines(err.Error()))
	if usage := (usageError{}); errors.As(err, &usage) {
		_, _ = fmt.Fprintf(streams.ErrOut, "See '%s --help' for usage.\n", command.CommandPath())
	}
	return 1
}

// usageError is an error in the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// newRoot makes the commands. Where fixed is given, they go there.
func newRoot(version string, streams Streams, fixed *connection) *cobra.Command {
	root := &cobra.Command{
		Use:   program,
		Short: "See and steer the instances of TApps.",
		Long: `See and steer the instances of TApps.

Instances are given as ids and ranges of ids, for example 0-3,7.`,
		Version:           version,
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl tapp"},
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args:              cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("there is no command %q", args[0])}
			}
			return c.Help()
		},
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.SetHelpCommand(&cobra.Command{Hidden: true})
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	e := newEnvironment(root, streams, fixed)
	root.AddCommand(
		newGet(e), newExplain(e), newStatus(e), newPlan(e),
		newKill(e), newStart(e), newRestart(e), newUpgrade(e),
		newPause(e), newResume(e),
		newHistory(e), newUndo(e), newDiff(e), newMigrate(e), newBackup(e), newRestore(e),
		newFleet(e),
		newCompletion(e),
	)
	if fixed == nil { // a dashboard opens no other one
		root.AddCommand(newDashboard(e, version))
	}
	e.completeNamespaces(root, "namespace")
	e.completeNamespaces(root, flagControllerNamespace)
	return root
}

// exactly requires the named arguments.
func exactly(names ...string) cobra.PositionalArgs { return between(len(names), names...) }

// between requires the first ones of the named arguments, and allows the others.
func between(required int, names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < required:
			return usageError{fmt.Errorf("%s is missing", names[len(args)])}
		case len(args) > len(names):
			return usageError{fmt.Errorf("%q is one argument too many", args[len(names)])}
		}
		return nil
	}
}
