package chart

import (
	"fmt"
	"maps"
	mathbits "math/bits"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// words are what docs/security.md says rights depend on, and the values of each.
var words = map[string]string{
	"app":             "controllers: {app: {enabled: true}}",
	"advdeployment":   "controllers: {advdeployment: {enabled: true}}",
	"appset":          "controllers: {appset: {enabled: true}}",
	"selfCluster":     "fleet: {selfCluster: hub}",
	"clusterProfiles": "fleet: {clusterProfiles: {enabled: true}}",
	"selfManaged":     "tls: {mode: selfManaged}",
	"secure":          "metrics: {secure: {enabled: true}}",
	"split":           "split: {enabled: true}",
	"api":             "api: {enabled: true}",
	"aggregate":       "rbac: {aggregate: true}",
}

// grant is a right of a role: what `kubectl auth can-i` would be asked.
type grant struct{ role, resource, verb string }

// explained is a row of docs/security.md.
type explained struct {
	grants []grant
	when   string
}

// holds says whether a condition such as `split and not api or app` is true of these words.
func holds(t *testing.T, when string, on map[string]bool) bool {
	t.Helper()
	for alternative := range strings.SplitSeq(when, " or ") {
		all := true
		for term := range strings.SplitSeq(alternative, " and ") {
			word, negated := strings.CutPrefix(term, "not ")
			if _, known := words[word]; !known && word != "always" {
				t.Fatalf("docs/security.md: %q is no condition: there is no word %q", when, word)
			}
			all = all && (word == "always" || on[word]) != negated
		}
		if all {
			return true
		}
	}
	return false
}

var (
	roleTitle = regexp.MustCompile("^### `(.+)`$")
	quoted    = regexp.MustCompile("`([^`]+)`(?: `([^`]+)`)?")
)

// readRights reads the tables of the chapter Rights.
func readRights(t *testing.T) (rows []explained, givenTo map[string]string) {
	t.Helper()
	data, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, chapter, _ := strings.Cut(string(data), "\n## Rights\n")
	chapter, _, _ = strings.Cut(chapter, "\n## ")
	role, givenTo := "", map[string]string{}
	for line := range strings.SplitSeq(chapter, "\n") {
		if m := roleTitle.FindStringSubmatch(line); m != nil {
			role = m[1]
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), " | ")
		switch {
		case role == "" && len(cells) == 3 && strings.HasPrefix(line, "| `tapp"):
			givenTo[quoted.FindStringSubmatch(cells[0])[1]] = strings.Trim(cells[2], " `")
		case role != "" && len(cells) == 4 && strings.HasPrefix(line, "| `"):
			row := explained{when: cells[2]}
			for _, m := range quoted.FindAllStringSubmatch(cells[0], -1) {
				resource := strings.TrimSpace(m[1] + " " + m[2])
				for verb := range strings.SplitSeq(cells[1], ", ") {
					row.grants = append(row.grants, grant{role, resource, verb})
				}
			}
			if strings.TrimSpace(cells[3]) == "" {
				t.Errorf("docs/security.md does not say who needs %s", cells[0])
			}
			rows = append(rows, row)
		}
	}
	if len(rows) < 50 || len(givenTo) < 15 {
		t.Fatalf("docs/security.md has %d rights of %d roles", len(rows), len(givenTo))
	}
	return rows, givenTo
}

// grantsOf are the rights that objects give, and to whom each role is bound.
func grantsOf(t *testing.T, files map[string]string) (given map[grant]bool, bound map[string]string) {
	t.Helper()
	given, bound = map[grant]bool{}, map[string]string{}
	for _, data := range objects(files) {
		if text := string(data); !strings.Contains(text, "\nkind: ClusterRole") && !strings.Contains(text, "\nkind: Role") {
			continue
		}
		var o struct {
			Kind     string
			Metadata struct{ Name string }
			Rules    []rbacv1.PolicyRule
			RoleRef  rbacv1.RoleRef
			Subjects []rbacv1.Subject
		}
		if err := yaml.Unmarshal(data, &o); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(o.Kind, "Binding") {
			bound[o.RoleRef.Name] = o.Subjects[0].Name
			if len(o.Subjects) != 1 {
				t.Errorf("%s is given to %d subjects", o.RoleRef.Name, len(o.Subjects))
			}
			continue
		}
		for _, rule := range o.Rules {
			for _, resource := range resourcesOf(rule) {
				for _, verb := range rule.Verbs {
					given[grant{o.Metadata.Name, resource, verb}] = true
				}
			}
		}
	}
	return given, bound
}

// resourcesOf are a rule's resources, as docs/security.md writes them.
func resourcesOf(rule rbacv1.PolicyRule) []string {
	out := slices.Clone(rule.NonResourceURLs)
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			resource, sub, _ := strings.Cut(resource, "/")
			if group != "" {
				resource += "." + group
			}
			if sub != "" {
				resource += "/" + sub
			}
			if len(rule.ResourceNames) == 0 {
				out = append(out, resource)
			}
			for _, name := range rule.ResourceNames {
				out = append(out, resource+" "+name)
			}
		}
	}
	return out
}

// TestEachRightIsExplained: docs/security.md has each right of the chart with its condition,
// and no other. Conditions have at most three words, so that combinations of up to three
// of them tell them apart; those of all but two have what excludes each other.
func TestEachRightIsExplained(t *testing.T) {
	rows, givenTo := readRights(t)
	c, names := load(t), slices.Sorted(maps.Keys(words))
	told := map[string]bool{}
	report := func(format string, args ...any) {
		if text := fmt.Sprintf(format, args...); !told[text] {
			told[text] = true
			t.Error(text)
		}
	}
	for bits := range 1 << len(names) {
		if n := mathbits.OnesCount(uint(bits)); n > 3 && n < len(names)-2 {
			continue
		}
		on, values := map[string]bool{}, map[string]any{"crds": map[string]any{"install": false}, "rbac": map[string]any{"aggregate": false}}
		for i, word := range names {
			if on[word] = bits>>i&1 == 1; on[word] {
				merge(values, tree(t, []byte(words[word])))
			}
		}
		if on["split"] && on["secure"] {
			continue // they exclude each other
		}
		if !on["selfManaged"] {
			merge(values, tree(t, []byte("tls: {mode: certManager}")))
		}
		given, bound := grantsOf(t, mustRenderValues(t, c, values))
		want := map[grant]bool{}
		for _, row := range rows {
			if holds(t, row.when, on) {
				for _, g := range row.grants {
					want[g] = true
				}
			}
		}
		for g := range given {
			if !want[g] {
				report("the chart gives %v, and docs/security.md does not say so of %v", g, values)
			}
			if to := givenTo[g.role]; to == "" || bound[g.role] != to && (bound[g.role] != "" || !strings.HasPrefix(to, "nobody")) {
				report("%s is given to %q, docs/security.md says %q", g.role, bound[g.role], to)
			}
		}
		for g := range want {
			if !given[g] {
				report("docs/security.md says that %v is given, and it is not with %v", g, values)
			}
		}
		if len(told) > 20 {
			t.Fatal("and more")
		}
	}
}

// merge adds values to others.
func merge(into, from map[string]any) {
	for key, value := range from {
		below, ok := value.(map[string]any)
		if have, both := into[key].(map[string]any); ok && both {
			merge(have, below)
		} else {
			into[key] = value
		}
	}
}
