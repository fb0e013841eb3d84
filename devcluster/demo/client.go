package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"time"
)

func get(ctx context.Context, out io.Writer, args []string) error {
	flags := flag.NewFlagSet("get", flag.ContinueOnError)
	timeout := flags.Duration("timeout", 5*time.Second, "gives up after this time")
	rest, err := parse(flags, args, 1)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, rest[0], nil)
	if err != nil {
		return fmt.Errorf("get %s: %w", rest[0], err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("get: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if _, err := io.Copy(out, response.Body); err != nil {
		return fmt.Errorf("get %s: read the body: %w", rest[0], err)
	}
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("get %s: %s", rest[0], response.Status)
	}
	return nil
}

func resolve(ctx context.Context, out io.Writer, args []string) error {
	flags := flag.NewFlagSet("resolve", flag.ContinueOnError)
	timeout := flags.Duration("timeout", 5*time.Second, "gives up after this time")
	rest, err := parse(flags, args, 1)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupHost(ctx, rest[0])
	if err != nil {
		return fmt.Errorf("resolve: %w", err)
	}
	slices.Sort(addresses)
	for _, a := range addresses {
		if _, err := fmt.Fprintln(out, a); err != nil {
			return fmt.Errorf("resolve: %w", err)
		}
	}
	return nil
}

func write(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: demo write FILE TEXT")
	}
	if err := os.WriteFile(args[0], []byte(args[1]), 0o644); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

func read(out io.Writer, args []string) error {
	if len(args) != 1 {
		return errors.New("usage: demo read FILE")
	}
	text, err := os.ReadFile(args[0])
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	if _, err := out.Write(text); err != nil {
		return fmt.Errorf("read %s: %w", args[0], err)
	}
	return nil
}

func sleep(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("usage: demo sleep DURATION")
	}
	d, err := time.ParseDuration(args[0])
	if err != nil {
		return fmt.Errorf("sleep: %w", err)
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return nil
}

// parse takes flags before and after the arguments, of which there must be n.
func parse(flags *flag.FlagSet, args []string, n int) ([]string, error) {
	var rest []string
	for {
		if err := flags.Parse(args); err != nil {
			return nil, fmt.Errorf("%s: %w", flags.Name(), err)
		}
		if args = flags.Args(); len(args) == 0 {
			break
		}
		rest, args = append(rest, args[0]), args[1:]
	}
	if len(rest) != n {
		return nil, fmt.Errorf("%s: want %d argument(s), got %q", flags.Name(), n, rest)
	}
	return rest, nil
}
