package walk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// Walk is one way through a page.
type Walk struct {
	// Page is the file, Section the heading of the part to go through; "": all of it.
	Page, Section string
	// Dir is where the commands run, Env their environment, as of a process.
	Dir string
	Env []string
	// Namespace is where the commands work. The page says default.
	Namespace string
	// Patience is how long one command may take.
	Patience time.Duration
	// Record writes what is printed into the page. Only what leaves lines out stays as
	// it is, if it is true.
	Record bool
	// Log is told of every command that has ended.
	Log func(format string, args ...any)
}

// Go runs the steps of the page in their order, and stops at the first that prints
// something else than the page says. An exit code counts only where the page has it
// printed.
func (w Walk) Go(ctx context.Context) error {
	data, err := os.ReadFile(w.Page)
	if err != nil {
		return fmt.Errorf("read the page: %w", err)
	}
	page := string(data)
	steps := slices.DeleteFunc(Read(page), func(s Step) bool { return w.Section != "" && s.Section != w.Section })
	if len(steps) == 0 {
		return fmt.Errorf("%s has no commands under %q", w.Page, w.Section)
	}
	var outputs []string
	compared := newComparison()
	for _, s := range steps {
		began := time.Now()
		output, err := w.run(ctx, s.Command)
		if err != nil {
			return fmt.Errorf("%s:%d: $ %s\n%s: %w", w.Page, s.first, s.Command, output, err)
		}
		w.Log("%5.1f s  $ %s", time.Since(began).Seconds(), s.Command)
		wrong := compared.diff(s.Output, output)
		if wrong != "" && !w.Record {
			return fmt.Errorf("%s:%d: $ %s\n%s", w.Page, s.first, s.Command, wrong)
		}
		if wrong == "" && strings.Contains("\n"+s.Output, "\n"+elided+"\n") {
			output = s.Output
		}
		outputs = append(outputs, output)
	}
	if !w.Record {
		return nil
	}
	return os.WriteFile(w.Page, []byte(Write(page, steps, outputs)), 0o600)
}

// run a command line of a shell, and return all that it prints. That it fails is no
// error, that it does not end is one.
func (w Walk) run(ctx context.Context, command string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, w.Patience)
	defer cancel()
	c := exec.CommandContext(ctx, "bash", "-c", command)
	c.Dir, c.Env, c.WaitDelay = w.Dir, w.Env, time.Second
	out, err := c.CombinedOutput()
	output := string(out)
	if w.Namespace != "" {
		output = strings.ReplaceAll(output, w.Namespace, "default")
	}
	if ctx.Err() != nil {
		return output, fmt.Errorf("it has not ended after %s: %w", w.Patience, ctx.Err())
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return output, err
	}
	return output, nil
}
