//go:build cluster

package app

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// TestExamples applies the source's two examples as they were published. On real
// nodes the Service also answers.
func TestExamples(t *testing.T) {
	r := newRig(t, "tcs")
	r.Kubectl("apply", "-f", "testdata/test_app.yaml", "-f", "testdata/test_app_2.yaml")
	r.ready("test-app")
	r.ready("test-app-2")
	for _, c := range []struct{ args, want string }{
		{"get deployments", "app-deploy 2/2 2 2 AGE\napp-deploy-test 3/3 3 3 AGE"},
		{"get app", "test-app app-deploy 2/2 app-service AGE\ntest-app-2 app-deploy-test 3/3 app-service-test AGE"},
		{"get services -o custom-columns=N:.metadata.name,T:.spec.type,P:.spec.ports[0].name,N:.spec.ports[0].port",
			"app-service ClusterIP app-service 8080\napp-service-test ClusterIP app-service 8080"},
		{"get deployments -o custom-columns=N:.metadata.name,C:.spec.template.spec.containers[0].name",
			"app-deploy app-deploy-container\napp-deploy-test app-deploy-container"},
	} {
		if got := table(r.Kubectl(strings.Fields(c.args + " --no-headers")...)); got != c.want {
			t.Errorf("kubectl %s:\n%s\nwant\n%s", c.args, got, c.want)
		}
	}
	if head := strings.Fields(r.Kubectl("get", "app")); strings.Join(head[:5], " ") != "NAME DEPLOYMENT READY SERVICE AGE" {
		t.Errorf("the columns are %v", head)
	}
	r.hasEvent("test-app", synced)
	r.hasEvent("test-app-2", synced)

	// nginx listens on another port than the Service leads to, unless the App says so.
	r.Kubectl("patch", "app", "test-app", "--type=merge", "-p", `{"spec":{"deploymentTemplate":{"ports":[{"containerPort":80}]}}}`)
	r.ready("test-app")
	if strings.Contains(r.Kubectl("get", "nodes", "-o", "name"), "node/node1") {
		for service, want := range map[string]string{"app-service": "nginx", "app-service-test": "tomcat"} {
			r.Eventually(service+" answers", func(context.Context) error {
				out, err := r.TryKubectl("exec", "deployment/app-deploy-test", "--", "demo", "get", "http://"+service+":8080/")
				if err != nil || !strings.HasPrefix(out, want+" latest ") {
					return fmt.Errorf("%s: %s", fmt.Sprint(err), out)
				}
				return nil
			})
		}
	}
	r.Kubectl("delete", "-f", "testdata/test_app.yaml", "-f", "testdata/test_app_2.yaml")
	r.Eventually("all of it goes", func(context.Context) error { return differs("left", r.names("deployments,services,pods"), "") })
}

// table is what kubectl prints, with its ages replaced and one space between cells.
func table(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for i, line := range lines {
		cells := strings.Fields(line)
		if last := cells[len(cells)-1]; strings.Trim(last, "0123456789ms") == "" && strings.ContainsAny(last, "ms") {
			cells[len(cells)-1] = "AGE"
		}
		lines[i] = strings.Join(cells, " ")
	}
	return strings.Join(lines, "\n")
}
