package chart

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// TestRights: no wildcards; nothing that would let it gain more rights; secrets, ConfigMaps,
// leases and webhook configurations only by name, but where clusters are registered and
// charts are; one ServiceAccount is impersonated, by its name.
func TestRights(t *testing.T) {
	named := []string{"secrets", "configmaps", "leases", "mutatingwebhookconfigurations", "validatingwebhookconfigurations"}
	for _, r := range releases {
		all := decoded(t, r)
		var rules []rbacv1.PolicyRule
		for _, role := range every[*rbacv1.ClusterRole](all) {
			rules = append(rules, role.Rules...)
		}
		for _, role := range every[*rbacv1.Role](all) {
			if strings.HasSuffix(role.Name, "-clusters") && role.Namespace == "sym-admin" {
				continue // whoever may write there decides about the fleet
			}
			if strings.HasSuffix(role.Name, "-charts") && role.Namespace == "charts" {
				continue // it has nothing but archives of charts
			}
			rules = append(rules, role.Rules...)
		}
		for _, rule := range rules {
			text := fmt.Sprint(rule.APIGroups, rule.Resources, rule.Verbs)
			for _, word := range []string{"*", "escalate", "bind", "impersonate", "pods/exec", "clusterroles", "customresourcedefinitions"} {
				if word == "impersonate" && text == "[] [serviceaccounts] [impersonate]" && slices.Equal(rule.ResourceNames, []string{"releaser"}) {
					continue // an account that has the rights which the users of a namespace gave it, and no others
				}
				if strings.Contains(text, word) {
					t.Errorf("%s: %s is granted: %s", r.name, word, text)
				}
			}
			for _, resource := range named {
				if slices.Contains(rule.Resources, resource) && len(rule.ResourceNames) == 0 && !slices.Equal(rule.Verbs, []string{"create"}) {
					t.Errorf("%s: all %s are granted: %s", r.name, resource, text)
				}
			}
		}
	}
}

// TestOneNamespace: TApps, pods and claims only of the one namespace.
func TestOneNamespace(t *testing.T) {
	i := slices.IndexFunc(releases, func(r release) bool { return r.name == "one-namespace" })
	for _, role := range every[*rbacv1.ClusterRole](decoded(t, releases[i])) {
		for _, rule := range role.Rules {
			for _, resource := range []string{"tapps", "tapps/status", "pods", "pods/status", "persistentvolumeclaims", "events", "secrets"} {
				if slices.Contains(rule.Resources, resource) {
					t.Errorf("the ClusterRole %s grants %s", role.Name, resource)
				}
			}
		}
	}
}

// TestSplitRights: of two accounts, that of the webhooks only reads, tries pods, and looks
// after the certificate, which the other one cannot.
func TestSplitRights(t *testing.T) {
	r := releases[slices.IndexFunc(releases, func(r release) bool { return r.name == "split" })]
	all := decoded(t, r)
	granted := map[string][]string{}
	bound := func(kind, name string, subjects []rbacv1.Subject) {
		var rules []rbacv1.PolicyRule
		for _, role := range every[*rbacv1.ClusterRole](all) {
			if kind == "ClusterRole" && role.Name == name {
				rules = role.Rules
			}
		}
		for _, role := range every[*rbacv1.Role](all) {
			if kind == "Role" && role.Name == name {
				rules = role.Rules
			}
		}
		for _, rule := range rules {
			granted[subjects[0].Name] = append(granted[subjects[0].Name], fmt.Sprint(rule.Resources, rule.ResourceNames, rule.Verbs))
		}
	}
	for _, b := range every[*rbacv1.ClusterRoleBinding](all) {
		bound(b.RoleRef.Kind, b.RoleRef.Name, b.Subjects)
	}
	for _, b := range every[*rbacv1.RoleBinding](all) {
		bound(b.RoleRef.Kind, b.RoleRef.Name, b.Subjects)
	}
	want := []string{"[mutatingwebhookconfigurations validatingwebhookconfigurations] [tapp] [list watch patch]", "[nodes] [] [list]", "[pods] [] [create]", "[pods] [] [list]",
		"[secrets] [] [create]", "[secrets] [tapp-own-ca] [list watch update]", "[tapps] [] [list]"}
	slices.Sort(granted["reviewer"])
	if !slices.Equal(granted["reviewer"], want) {
		t.Errorf("the webhooks may %q", granted["reviewer"])
	}
	for _, rule := range granted["tapp"] {
		if strings.Contains(rule, "secrets") || strings.Contains(rule, "webhookconfigurations") {
			t.Errorf("the controllers may %s", rule)
		}
	}
}

// TestAppRights: the rights to write Deployments and Services are given only where Apps or
// AdvDeployments are looked after, to each kind by itself.
func TestAppRights(t *testing.T) {
	for _, r := range releases {
		all := decoded(t, r)
		var granted []string
		for _, role := range every[*rbacv1.ClusterRole](all) {
			if isOfAPI(role) {
				continue // it reads: TestAPI
			}
			for _, rule := range role.Rules {
				for _, resource := range []string{"deployments", "services", "apps", "apps/status", "apps/finalizers", "apps/scale"} {
					if slices.Contains(rule.Resources, resource) {
						granted = append(granted, fmt.Sprint(rule.APIGroups, resource, rule.Verbs))
					}
				}
			}
		}
		want := ""
		if r.name == "everything" {
			want = "[appcontroller.k8s.io]apps[get list watch]; [appcontroller.k8s.io]apps/status[patch]; [appcontroller.k8s.io]apps/finalizers[update]; " +
				"[apps]deployments[get list watch create patch delete]; []services[get list watch create patch delete]; " +
				"[apps]deployments[get list watch create patch delete]; []services[get list watch create patch delete]; " +
				"[appcontroller.k8s.io]apps[get list watch]; [appcontroller.k8s.io]apps/status[get]; [appcontroller.k8s.io]apps/scale[get]; " +
				"[appcontroller.k8s.io]apps[create update patch delete deletecollection]; [appcontroller.k8s.io]apps/scale[update patch]"
		}
		if got := strings.Join(granted, "; "); got != want {
			t.Errorf("%s grants %s\nwant %s", r.name, got, want)
		}
	}
}

// TestPoliciesOff: what confines TApp's account is left out where the cluster lacks
// the API, where it is not wanted, and where the account may have other users.
func TestPoliciesOff(t *testing.T) {
	for name, c := range map[string]struct {
		values map[string]any
		apis   []string
		want   int
	}{
		"on":           {nil, []string{policies}, 6},
		"no API":       {nil, nil, 0},
		"not wanted":   {map[string]any{"admissionPolicies": map[string]any{"enabled": false}}, []string{policies}, 0},
		"shared":       {map[string]any{"serviceAccount": map[string]any{"create": false}}, []string{policies}, 0},
		"not in there": {map[string]any{"tls": map[string]any{"mode": "certManager"}}, []string{policies}, 4},
	} {
		files, err := render(load(t), c.values, c.apis...)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(fmt.Sprint(files), "kind: ValidatingAdmissionPolicy"); got != c.want {
			t.Errorf("%s: %d objects, want %d", name, got, c.want)
		}
	}
}
