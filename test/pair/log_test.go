//go:build cluster

package pair

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"tkestack.io/tapp/api/server"
	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/test/local"
)

// followsLog: `tapp api` on the hub follows the log of a container on the member's node, line by
// line, by the route of the original system, too, and gives the stream back when its reader
// leaves, or may not read it any more.
func followsLog(hub, member *site) {
	hub.Helper()
	hub.run("kubectl", "--namespace", releaseSpace, "rollout", "status", "deployment/tapp-api", "--timeout="+cluster.Patience.String())
	reader := hub.NewCaller("reader", "tapp", releaseSpace, nil)
	of := "/api/v1/clusters/member/namespaces/" + hub.NS + "/pods/web-gz01-blue-0"
	hub.Kubectl("create", "role", "reader", "--verb=get", "--resource=appsets.workload.dmall.com,appsets.workload.dmall.com/instances,appsets.workload.dmall.com/log")
	hub.Kubectl("create", "rolebinding", "reader", "--role=reader", "--serviceaccount="+hub.NS+":reader")
	reader.Tells(of, http.StatusOK, `"owner":"AppSet/web"`, `"node":"node1"`)

	ctx, leave := context.WithCancel(hub.Context())
	defer leave()
	last := "serves on"
	for _, path := range []string{of + "/log", "/api/cluster/member/namespace/" + hub.NS + "/pods/web-gz01-blue-0/logs"} {
		log := hub.follow(ctx, reader, path)
		log.next(last)
		for _, line := range []string{"the first line", "the second line"} {
			member.Kubectl("exec", "web-gz01-blue-0", "--", "demo", "write", "/proc/1/fd/1", path+" "+line+"\n")
			log.next(path + " " + line)
			last = line
		}
	}
	hub.streams(reader, 2)
	leave()
	hub.streams(reader, 0)

	// Whether the reader still may is asked once a minute; here by a server that asks all the time.
	eager := reader.At(hub.serve())
	eager.Tells(of, http.StatusOK, `"owner":"AppSet/web"`)
	log := hub.follow(hub.Context(), eager, of+"/log")
	log.next("the second line")
	hub.Kubectl("delete", "rolebinding", "reader")
	if line, err := log.lines.ReadString('\n'); err == nil {
		hub.Errorf("who may not read the log any more is told %q", line)
	}
	eager.Tells(of+"/log", http.StatusNotFound, "is not of an AppSet that you may get")
}

// serve the API of the hub with the rights of its administrator. It returns the address.
func (s *site) serve() string {
	s.Helper()
	listener, err := (&net.ListenConfig{}).Listen(s.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		s.Fatal(err)
	}
	c := server.Defaults()
	c.REST, c.Listener, c.MetricsAddress, c.Version, c.Clusters.Namespace = rest.CopyConfig(s.Config), listener, "", "pair-test", releaseSpace
	c.Limits.Recheck, c.Limits.Keep = 500*time.Millisecond, 250*time.Millisecond
	ctx, stop := context.WithCancel(s.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx, c) }()
	s.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			s.Errorf("the API ended with %v", err)
		}
	})
	return listener.Addr().String()
}

// log that is followed.
type log struct {
	site  *site
	lines *bufio.Reader
}

// follow the log of a container from its last line on.
func (s *site) follow(ctx context.Context, c *cluster.Caller, path string) *log {
	s.Helper()
	response, err := c.Open(ctx, path+"?follow=1&tail=1")
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = response.Body.Close() })
	if response.StatusCode != http.StatusOK {
		s.Fatalf("GET %s: %s", path, response.Status)
	}
	return &log{s, bufio.NewReader(response.Body)}
}

// next line has this.
func (l *log) next(want string) {
	l.site.Helper()
	line, err := l.lines.ReadString('\n')
	if err != nil || !strings.Contains(line, want) {
		l.site.Errorf("the log says %q (%v), want %q", line, err, want)
	}
}

// streams waits until so many are open.
func (s *site) streams(c *cluster.Caller, n int) {
	s.Helper()
	want := fmt.Sprintf("tapp_http_streams %d", n)
	s.Eventually(want, func(ctx context.Context) error {
		page, err := local.Get(ctx, c.Pod.Status.PodIP+":8080", "/metrics")
		if err != nil {
			return err
		}
		return cluster.When(!strings.Contains(page, "\n"+want+"\n"), "not yet")
	})
}
