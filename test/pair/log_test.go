//go:build cluster

package pair

import (
	"bufio"
	"context"
	"net/http"
	"strings"

	"tkestack.io/tapp/test/cluster"
	"tkestack.io/tapp/test/local"
)

// followsLog: `tapp api` on the hub follows the log of a container on the member's node, line by
// line, and gives the stream back when its reader leaves.
func followsLog(hub, member *site) {
	hub.Helper()
	hub.run("kubectl", "--namespace", releaseSpace, "rollout", "status", "deployment/tapp-api", "--timeout="+cluster.Patience.String())
	c := hub.NewCaller("reader", "tapp", releaseSpace, nil)
	of := "/api/v1/clusters/member/namespaces/" + hub.NS + "/pods/web-gz01-blue-0"
	hub.Kubectl("create", "role", "reader", "--verb=get", "--resource=appsets.workload.dmall.com,appsets.workload.dmall.com/instances,appsets.workload.dmall.com/log")
	hub.Kubectl("create", "rolebinding", "reader", "--role=reader", "--serviceaccount="+hub.NS+":reader")
	c.Tells(of, http.StatusOK, `"owner":"AppSet/web"`, `"node":"node1"`)

	ctx, leave := context.WithCancel(hub.Context())
	defer leave()
	response, err := c.Open(ctx, of+"/log?follow=1&tail=1")
	if err != nil || response.StatusCode != http.StatusOK {
		hub.Fatalf("%v %v", response, err)
	}
	defer func() { _ = response.Body.Close() }()
	lines := bufio.NewReader(response.Body)
	next := func(want string) {
		hub.Helper()
		line, err := lines.ReadString('\n')
		if err != nil || !strings.Contains(line, want) {
			hub.Errorf("the log says %q (%v), want %q", line, err, want)
		}
	}
	next("serves on")
	for _, line := range []string{"the first line", "the second line"} {
		member.Kubectl("exec", "web-gz01-blue-0", "--", "demo", "write", "/proc/1/fd/1", line+"\n")
		next(line)
	}
	streams := func(want string) {
		hub.Helper()
		hub.Eventually(want, func(ctx context.Context) error {
			page, err := local.Get(ctx, c.Pod.Status.PodIP+":8080", "/metrics")
			if err != nil {
				return err
			}
			return cluster.When(!strings.Contains(page, "\n"+want+"\n"), "not yet")
		})
	}
	streams("tapp_http_streams 1")
	leave()
	streams("tapp_http_streams 0")
}
