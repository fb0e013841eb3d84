// Command demo is what the cluster's demo images run: a small HTTP server whose version, health and end are told by its
// environment, and, since the images hold no shell, a client to look around with from inside a pod.
//
//	demo [serve] [--port N]           / answers "<name> <version> <hostname>"; /version /healthz /readyz; POST /ready /unready /burn?for=D
//	demo get URL [--timeout D]        fetches, prints the body; fails unless the status is 2xx
//	demo resolve NAME                 prints the addresses of a name, one a line
//	demo write FILE TEXT, read FILE   for volumes
//	demo sleep DURATION
//
// The server's environment:
//
//	PORT                        80
//	DEMO_NAME, DEMO_VERSION     demo, dev
//	DEMO_START_DELAY            not ready before
//	DEMO_UNREADY=1              never ready by itself
//	DEMO_CRASH_AFTER            exits 1 after this time
//	DEMO_EXIT_AFTER             exits with DEMO_EXIT_CODE (0) after this time
//	DEMO_STOP_DELAY             goes on serving for so long after SIGTERM; otherwise it stops at once
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// exit is an end that was asked for, with its code.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exiting with %d, as told", int(e)) }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	var code exit
	switch {
	case errors.As(err, &code):
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(int(code))
	case err != nil:
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	command := "serve"
	if len(args) > 0 && args[0] != "" && args[0][0] != '-' {
		command, args = args[0], args[1:]
	}
	switch command {
	case "serve":
		c, err := configure(args, os.Getenv)
		if err != nil {
			return err
		}
		return serve(ctx, c)
	case "get":
		return get(ctx, os.Stdout, args)
	case "resolve":
		return resolve(ctx, os.Stdout, args)
	case "write":
		return write(args)
	case "read":
		return read(os.Stdout, args)
	case "sleep":
		return sleep(ctx, args)
	}
	return fmt.Errorf("no command %q; there are serve, get, resolve, write, read, sleep", command)
}
