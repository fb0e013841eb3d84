package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"time"
)

// settings is what arguments and environment tell the server.
type settings struct {
	port, exitCode        int
	name, version, host   string
	unready               bool
	startDelay, stopDelay time.Duration
	crashAfter, exitAfter time.Duration
	crashes, exits        bool // whether those times are set: 0s is a time
}

func configure(args []string, env func(string) string) (settings, error) {
	c := settings{
		name: or(env("DEMO_NAME"), "demo"), version: or(env("DEMO_VERSION"), "dev"),
		unready: env("DEMO_UNREADY") != "" && env("DEMO_UNREADY") != "0",
		crashes: env("DEMO_CRASH_AFTER") != "", exits: env("DEMO_EXIT_AFTER") != "",
	}
	var errs []error
	number := func(name, fallback string) int {
		n, err := strconv.Atoi(or(env(name), fallback))
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
		return n
	}
	duration := func(name string) time.Duration {
		d, err := time.ParseDuration(or(env(name), "0s"))
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
		return d
	}
	c.port, c.exitCode = number("PORT", "80"), number("DEMO_EXIT_CODE", "0")
	c.startDelay, c.stopDelay = duration("DEMO_START_DELAY"), duration("DEMO_STOP_DELAY")
	c.crashAfter, c.exitAfter = duration("DEMO_CRASH_AFTER"), duration("DEMO_EXIT_AFTER")
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	flags.IntVar(&c.port, "port", c.port, "port to listen on")
	if err := flags.Parse(args); err != nil {
		errs = append(errs, err)
	}
	host, err := os.Hostname()
	if err != nil {
		errs = append(errs, fmt.Errorf("hostname: %w", err))
	}
	c.host = host
	return c, errors.Join(errs...)
}

func or(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

// handler answers for a server that is ready from the given time on, as long as nobody posts otherwise.
func handler(c settings, ready time.Time) http.Handler {
	var unready atomic.Bool
	unready.Store(c.unready)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "%s %s %s\n", c.name, c.version, c.host)
	})
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, c.version) })
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		switch {
		case unready.Load():
			http.Error(w, "told not to be ready", http.StatusServiceUnavailable)
		case time.Now().Before(ready):
			http.Error(w, "starting", http.StatusServiceUnavailable)
		default:
			fmt.Fprintln(w, "ok")
		}
	})
	mux.HandleFunc("POST /ready", func(http.ResponseWriter, *http.Request) { unready.Store(false) })
	mux.HandleFunc("POST /unready", func(http.ResponseWriter, *http.Request) { unready.Store(true) })
	mux.HandleFunc("POST /burn", burn)
	return mux
}

// burn keeps one processor busy for the time that the request says, or until nobody waits for it any more.
func burn(w http.ResponseWriter, r *http.Request) {
	d, err := time.ParseDuration(r.URL.Query().Get("for"))
	if err != nil {
		http.Error(w, "say for how long: /burn?for=10s", http.StatusBadRequest)
		return
	}
	end := time.Now().Add(d)
	for time.Now().Before(end) && r.Context().Err() == nil {
	}
	fmt.Fprintln(w, "done")
}

// serve ends with ctx (nil), or as the settings tell (an exit).
func serve(ctx context.Context, c settings) error {
	listener, err := net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(c.port)))
	if err != nil {
		return fmt.Errorf("listen on port %d: %w", c.port, err)
	}
	now := time.Now()
	server := &http.Server{Handler: handler(c, now.Add(c.startDelay)), ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	fmt.Printf("%s %s serves on %s\n", c.name, c.version, listener.Addr())

	var crash, end <-chan time.Time
	if c.crashes {
		crash = time.After(c.crashAfter)
	}
	if c.exits {
		end = time.After(c.exitAfter)
	}
	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case <-crash:
		return exit(1)
	case <-end:
		if c.exitCode != 0 {
			return exit(c.exitCode)
		}
	case <-ctx.Done():
		time.Sleep(c.stopDelay)
	}
	// Requests under way get a moment to finish; nothing else holds the end up.
	last, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := server.Shutdown(last); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("shut down: %w", err)
	}
	return nil
}
