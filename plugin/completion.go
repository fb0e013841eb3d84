package plugin

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/plan/ids"
	"tkestack.io/tapp/plan/view"
)

// completionScript is what kubectl starts for `kubectl tapp <TAB>`.
const completionScript = `#!/bin/sh
# Completion of kubectl tapp: kubectl runs this file, which has to be an executable of
# this name on the PATH.
exec kubectl tapp __complete "$@"
`

func newCompletion(e *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "completion",
		Short: "Print the program that completes command lines",
		Long: `Print the program by which kubectl completes the command lines of this plugin, for all shells. kubectl's own completion has to
be set up; see kubectl completion --help.`,
		Example: `  kubectl tapp completion >/usr/local/bin/kubectl_complete-tapp
  chmod +x /usr/local/bin/kubectl_complete-tapp`,
		Args: exactly(),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(e.streams.Out, completionScript)
			return err
		},
	}
}

type completer = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// completions lists words. Errors are not shown: nobody could read them while typing.
func (e *environment) completions(c *cobra.Command, list func(context.Context, *session) []string) ([]string, cobra.ShellCompDirective) {
	s, err := e.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return list(c.Context(), s), cobra.ShellCompDirectiveNoFileComp
}

// completeTApps completes up to limit names of TApps; below 0: any number.
func (e *environment) completeTApps(limit int) completer {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if limit >= 0 && len(args) >= limit {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return e.completions(c, func(ctx context.Context, s *session) []string {
			list, err := s.tapps.TApps(s.namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil
			}
			var out []string
			for i := range list.Items {
				if name := list.Items[i].Name; !slices.Contains(args, name) {
					out = append(out, name)
				}
			}
			return out
		})
	}
}

// completeInstances completes NAME, and then ids, with their states as descriptions.
func (e *environment) completeInstances(c *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return e.completeTApps(1)(c, args, word)
	}
	return e.completions(c, func(ctx context.Context, s *session) []string {
		t, err := s.get(ctx, args[0])
		if err != nil {
			return nil
		}
		var out []string
		for _, id := range ids.Of(&t.Spec).All() {
			out = append(out, cobra.CompletionWithDesc(strconv.Itoa(id), string(t.Status.Statuses[strconv.Itoa(id)])))
		}
		return out
	})
}

// completeFlag completes a flag with fixed values.
func (e *environment) completeFlag(c *cobra.Command, flag string, values ...string) {
	e.completeBy(c, flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// completeBy registers the completion of a flag. It fails only for an unknown flag.
func (e *environment) completeBy(c *cobra.Command, flag string, by completer) {
	if err := c.RegisterFlagCompletionFunc(flag, by); err != nil {
		_, _ = fmt.Fprintln(e.streams.ErrOut, "error:", err)
	}
}

func (e *environment) completeTemplates(c *cobra.Command) {
	e.completeBy(c, "template", func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return e.completions(c, func(ctx context.Context, s *session) []string {
			t, err := s.get(ctx, args[0])
			if err != nil {
				return nil
			}
			return t.Spec.TemplateNames()
		})
	})
}

func (e *environment) revisionNumbers(c *cobra.Command, name string) ([]string, cobra.ShellCompDirective) {
	return e.completions(c, func(ctx context.Context, s *session) []string {
		t, err := s.get(ctx, name)
		if err != nil {
			return nil
		}
		revisions, err := s.revisions(ctx, t)
		if err != nil {
			return nil
		}
		var out []string
		for i := range revisions {
			out = append(out, cobra.CompletionWithDesc(strconv.FormatInt(revisions[i].Revision, 10), view.ImagesOf(revisions[i].Version)))
		}
		return out
	})
}

func (e *environment) completeRevisions(c *cobra.Command) {
	e.completeBy(c, "to-revision", func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return e.revisionNumbers(c, args[0])
	})
}

func (e *environment) completeDiff(c *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		return e.completeTApps(1)(c, args, word)
	case 1, 2:
		return e.revisionNumbers(c, args[0])
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

func (e *environment) completeNamespaces(root *cobra.Command, flag string) {
	e.completeBy(root, flag, func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return e.completions(c, func(ctx context.Context, s *session) []string {
			list, err := s.core.Namespaces().List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil
			}
			var out []string
			for i := range list.Items {
				out = append(out, list.Items[i].Name)
			}
			return out
		})
	})
}
