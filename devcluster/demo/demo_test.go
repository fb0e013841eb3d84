package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestConfigure(t *testing.T) {
	c, err := configure([]string{"--port", "81"}, env("PORT", "8080", "DEMO_VERSION", "v2", "DEMO_CRASH_AFTER", "0s", "DEMO_UNREADY", "0"))
	if err != nil || c.port != 81 || c.name != "demo" || c.version != "v2" || !c.crashes || c.exits || c.unready {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := configure(nil, env("DEMO_START_DELAY", "soon", "PORT", "http")); err == nil ||
		!strings.Contains(err.Error(), "DEMO_START_DELAY") || !strings.Contains(err.Error(), "PORT") {
		t.Errorf("error %v", err)
	}
}

func TestServer(t *testing.T) {
	c := settings{name: "nginx", version: "1.7.9", host: "web-0"}
	h := handler(c, time.Now().Add(100*time.Millisecond))
	server := httptest.NewServer(h)
	defer server.Close()
	body := func(path string) string {
		var out bytes.Buffer
		if err := get(context.Background(), &out, []string{server.URL + path, "--timeout", "2s"}); err != nil {
			return err.Error()
		}
		return out.String()
	}
	for path, want := range map[string]string{"/": "nginx 1.7.9 web-0\n", "/version": "1.7.9\n", "/healthz": "ok\n"} {
		if got := body(path); got != want {
			t.Errorf("%s answers %q, want %q", path, got, want)
		}
	}
	if got := body("/readyz"); !strings.Contains(got, "503") {
		t.Errorf("ready while it starts: %s", got)
	}
	time.Sleep(120 * time.Millisecond)
	for _, step := range []struct{ post, want string }{{"", "ok"}, {"/unready", "503"}, {"/ready", "ok"}} {
		if step.post != "" {
			response, err := http.Post(server.URL+step.post, "", nil)
			if err != nil || response.StatusCode != http.StatusOK {
				t.Fatal(response, err)
			}
			_ = response.Body.Close()
		}
		if got := body("/readyz"); !strings.Contains(got, step.want) {
			t.Errorf("after %q: %s", step.post, got)
		}
	}
}

func TestBurn(t *testing.T) {
	server := httptest.NewServer(handler(settings{}, time.Now()))
	defer server.Close()
	for query, want := range map[string]int{"?for=20ms": http.StatusOK, "": http.StatusBadRequest, "?for=ever": http.StatusBadRequest} {
		began := time.Now()
		response, err := http.Post(server.URL+"/burn"+query, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want || want == http.StatusOK && time.Since(began) < 20*time.Millisecond {
			t.Errorf("/burn%s: %s after %s", query, response.Status, time.Since(began))
		}
	}
}

func TestEnds(t *testing.T) {
	ended := func(c settings) error { return serve(context.Background(), c) }
	var code exit
	if err := ended(settings{crashes: true}); !errors.As(err, &code) || code != 1 {
		t.Error(err)
	}
	if err := ended(settings{exits: true, exitCode: 3}); !errors.As(err, &code) || code != 3 {
		t.Error(err)
	}
	if err := ended(settings{exits: true}); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	began := time.Now()
	if err := serve(ctx, settings{stopDelay: 50 * time.Millisecond}); err != nil || time.Since(began) < 50*time.Millisecond {
		t.Errorf("stopped after %s: %v", time.Since(began), err)
	}
}

func TestFilesAndNames(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x")
	var out bytes.Buffer
	if err := errors.Join(write([]string{file, "hello"}), read(&out, []string{file})); err != nil || out.String() != "hello" {
		t.Errorf("%q, %v", out.String(), err)
	}
	out.Reset()
	if err := resolve(context.Background(), &out, []string{"localhost"}); err != nil || !strings.Contains(out.String(), "1") {
		t.Errorf("%q, %v", out.String(), err)
	}
	if err := run(context.Background(), []string{"bogus"}); err == nil || !strings.Contains(err.Error(), "bogus") {
		t.Error(err)
	}
	if err := sleep(context.Background(), []string{"1ms"}); err != nil {
		t.Error(err)
	}
}
