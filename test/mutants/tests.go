package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// tests are those of one stage, compiled with an overlay or without.
type tests struct {
	root, binary string
	stage        stage
	timeout      time.Duration
}

// compile the tests of a stage. What the compiler has to say is an error.
func (h hunting) compile(ctx context.Context, s stage, overlay string) (tests, error) {
	t := tests{root: h.root, stage: s, timeout: h.timeout}
	file, err := os.CreateTemp(h.dir, "*.test")
	if err != nil {
		return t, err
	}
	t.binary = file.Name()
	if err := file.Close(); err != nil {
		return t, err
	}
	args := []string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-o", t.binary}
	if overlay != "" {
		args = append(args, "-overlay="+overlay)
	}
	command := exec.CommandContext(ctx, "go", append(args, "./"+s.path)...)
	command.Dir = h.root
	if output, err := command.CombinedOutput(); err != nil {
		return t, fmt.Errorf("compile the tests of %s: %w\n%s", s.path, err, output)
	}
	return t, nil
}

// run returns what failed, by name; empty: nothing.
func (t tests) run(ctx context.Context) (string, error) {
	by, _, err := t.output(ctx)
	return by, err
}

// output of the run that failed, too.
func (t tests) output(ctx context.Context) (by string, output []byte, err error) {
	defer func() { _ = os.Remove(t.binary) }()
	for _, args := range t.stage.runs {
		command := exec.CommandContext(ctx, t.binary, slices.Concat([]string{"-test.failfast", "-test.timeout=" + t.timeout.String()}, args)...)
		command.Dir = filepath.Join(t.root, t.stage.path)
		output, err = command.CombinedOutput()
		var exit *exec.ExitError
		switch {
		case ctx.Err() != nil:
			return "", nil, ctx.Err()
		case bytes.Contains(output, []byte("no tests to run")):
			return "", nil, fmt.Errorf("%s has no tests that %q names", t.stage.path, args)
		case err == nil:
		case errors.As(err, &exit):
			return firstFailure(output), output, nil
		default:
			return "", nil, fmt.Errorf("run the tests of %s: %w", t.stage.path, err)
		}
	}
	return "", nil, nil
}

var failed = regexp.MustCompile(`^\s*--- FAIL: (\S+)`)

// firstFailure is the innermost test that failed first, or how the run ended.
func firstFailure(output []byte) string {
	name, end := "", "the run failed"
	for lines := bufio.NewScanner(bytes.NewReader(output)); lines.Scan(); {
		line := lines.Text()
		if m := failed.FindStringSubmatch(line); m != nil && (name == "" || strings.HasPrefix(m[1], name+"/")) {
			name = m[1]
		}
		if strings.HasPrefix(line, "panic: ") {
			end = line
		}
	}
	if name == "" {
		return end
	}
	return name
}
