//go:build cluster

package install

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"tkestack.io/tapp/test/audit"
)

// right is what a role grants, or a request needs.
type right struct {
	group, resource, verb string
}

func (r right) String() string {
	group := r.group
	if group == "" {
		group = "core"
	}
	return fmt.Sprintf("%s %s (%s)", r.verb, r.resource, group)
}

// account is who the release is to the API server.
const account = "system:serviceaccount:" + releaseSpace + ":" + releaseName

// granted are the rights that the chart gives to a ServiceAccount with these values, also by
// roles that are in every cluster.
func granted(t *testing.T, serviceAccount string, values ...string) map[right]bool {
	t.Helper()
	manifest := helm(t, append([]string{"template", releaseName, chartDir}, set(values)...)...)
	const readsCA = "extension-apiserver-authentication-reader"
	inEvery, err := suite.Kube.RbacV1().Roles(metav1.NamespaceSystem).Get(t.Context(), readsCA, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	roles, bound := map[string][]rbacv1.PolicyRule{"Role/" + readsCA: inEvery.Rules}, []string{}
	for document := range strings.SplitSeq(manifest, "\n---\n") {
		var o struct {
			Kind     string
			Metadata struct{ Name string }
			Rules    []rbacv1.PolicyRule
			RoleRef  rbacv1.RoleRef
			Subjects []rbacv1.Subject
		}
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		switch {
		case strings.HasSuffix(o.Kind, "Role"):
			roles[o.Kind+"/"+o.Metadata.Name] = o.Rules
		case strings.HasSuffix(o.Kind, "RoleBinding") && slices.ContainsFunc(o.Subjects, func(s rbacv1.Subject) bool { return s.Name == serviceAccount }):
			bound = append(bound, o.RoleRef.Kind+"/"+o.RoleRef.Name)
		}
	}
	out := map[right]bool{}
	for _, name := range bound {
		if len(roles[name]) == 0 {
			t.Errorf("%s is bound, and grants nothing", name)
		}
		for _, rule := range roles[name] {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						out[right{group, resource, verb}] = true
					}
				}
			}
		}
	}
	return out
}

// used are the rights that the release has made use of since the suite began, by the
// audit log. That one leaves out watches, which the program counts itself.
type used map[right]bool

func (u used) readAudit(t *testing.T) {
	t.Helper()
	requests, err := suite.audit.Read()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range requests {
		if r.User != account || r.Resource == "" {
			continue
		}
		u.add(r)
	}
}

// add the right that a request needs.
func (u used) add(r audit.Request) {
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	u[right{r.Group, resource, r.Verb}] = true
}

var watches = regexp.MustCompile(`^tapp_api_requests_total\{.*resource="([a-z/]+)",verb="watch"\}`)

// readWatches asks the pods of the release for the watches that they made.
func (u used) readWatches(ctx context.Context) error {
	pods, err := releasePods(ctx)
	if err != nil {
		return err
	}
	for i := range pods {
		if err := u.readWatchesOf(ctx, &pods[i]); err != nil {
			return err
		}
	}
	return nil
}

func (u used) readWatchesOf(ctx context.Context, pod *corev1.Pod) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(pod.Status.PodIP, "8080")+"/metrics", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("read the metrics of %s: %w", pod.Name, err)
	}
	defer func() { _ = response.Body.Close() }()
	groups := map[string]string{"tapps": "apps.tkestack.io", "controllerrevisions": "apps"}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if m := watches.FindStringSubmatch(lines.Text()); m != nil {
			u[right{groups[m[1]], m[1], "watch"}] = true
		}
	}
	return lines.Err()
}

// without lists the rights in a that b lacks.
func without[A, B any](a map[right]A, b map[right]B) []string {
	var out []string
	for r := range a {
		if _, ok := b[r]; !ok {
			out = append(out, r.String())
		}
	}
	slices.Sort(out)
	return out
}
