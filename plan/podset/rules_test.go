package podset

import (
	"fmt"
	"strings"
	"testing"
)

// TestRules: what cannot be carried out is told with the field, and all of it at once.
func TestRules(t *testing.T) {
	const template = `template: {metadata: {labels: {tier: web}}, spec: {containers: [{name: a, image: a}]}}`
	app := func(spec string) string { return "{metadata: {name: a, namespace: ns}, spec: " + spec + "}" }
	one := func(podSpec, podSet string) string {
		return app("{podSpec: {" + podSpec + "}, clusterTopology: {clusters: [{name: one, podSets: [" + podSet + "]}]}}")
	}
	clusters := func(podSpec, list string) string {
		return app("{podSpec: {" + podSpec + "}, clusterTopology: {clusters: [" + list + "]}}")
	}
	var many []string
	for i := range MaxUnits + 1 {
		many = append(many, fmt.Sprintf("{name: c%d, podSets: [{name: p, replicas: 1}]}", i))
	}
	for _, c := range []struct{ name, app, want string }{
		{"as many podSets as can be told of", clusters(template, strings.Join(many[1:], ", ")), ""},
		{"more of them", clusters(template, strings.Join(many, ", ")),
			"spec.clusterTopology.clusters: the clusters have 1025 podSets in all, and the status of at most 1024 can be stored; make several AppSets of it"},
		{"good", one(template, `{name: p, replicas: 1}`), ""},
		{"a cluster in two spellings", clusters(template, `{name: BJ_4}, {name: bj-4}`),
			"spec.clusterTopology.clusters[bj-4].name: it is the same cluster as BJ_4: case does not matter in names of clusters, and _ is -"},
		{"no name of a cluster", clusters(template, `{name: "a b"}`),
			"spec.clusterTopology.clusters[a b].name: no cluster can have this name: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"},
		{"values", one(`deployType: helm, chart: {rawChart: H4s=}, rawValues: "a: 1"`, `{name: p, replicas: 1, rawValues: "b: {c: [1]}"}`), ""},
		{"values that are a list", one(`deployType: helm, chart: {rawChart: H4s=}, rawValues: "- a"`, `{name: p, replicas: 1}`),
			"spec.podSpec.rawValues: these values are no YAML map: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go value of type map[string]interface {}"},
		{"values of a podSet that are no YAML", one(`deployType: helm, chart: {rawChart: H4s=}`, `{name: p, replicas: 1, rawValues: "a: b: c"}`),
			"spec.clusterTopology.clusters[one].podSets[p].rawValues: these values are no YAML map: yaml: mapping values are not allowed in this context"},
		{"a selector", one(template+`, selector: {matchLabels: {tier: web}}`, `{name: p, replicas: 1}`), ""},
		{"a selector of others", one(template+`, selector: {matchLabels: {tier: db}}`, `{name: p, replicas: 1}`),
			"spec.podSpec.selector: it does not select the pods of podSet p in cluster one, whose labels are app=a,release=p,sym-cluster-info=one,tier=web"},
		{"a selector of all", one(template+`, selector: {}`, `{name: p, replicas: 1}`),
			"spec.podSpec.selector: it selects all pods; leave it out to select by app and release"},
		{"a selector that is none", one(template+`, selector: {matchExpressions: [{key: a, operator: Like}]}`, `{name: p, replicas: 1}`),
			`spec.podSpec.selector: "Like" is not a valid label selector operator`},
		{"ids side by side", clusters("deployType: tapp, "+template, `{name: one, podSets: [{name: p, replicas: 2}]}, {name: two, podSets: [{name: p, replicas: 2, ordinals: {start: 2}}]}`), ""},
		{"each cluster with ids of its own", clusters("deployType: tapp, "+template, `{name: one, podSets: [{name: p, replicas: 2}]}, {name: two, podSets: [{name: p, replicas: 2}]}`), ""},
		{"no instances, no overlap", clusters("deployType: tapp, "+template, `{name: one, podSets: [{name: p, replicas: 2}]}, {name: two, podSets: [{name: p, replicas: 0, ordinals: {start: 1}}]}`), ""},
		{"ids in two clusters", clusters("deployType: StatefulSet, "+template, `{name: one, podSets: [{name: p, replicas: 3}]}, {name: two, podSets: [{name: p, replicas: 2, ordinals: {start: 2}}]}`),
			"spec.clusterTopology.clusters[two].podSets[p].ordinals: ids 2 to 3 overlap with ids 0 to 2 of the same podSet in cluster one"},
		{"ids of a deployment", one("deployType: deployment, "+template, `{name: p, replicas: 1, ordinals: {start: 1}}`),
			"spec.clusterTopology.clusters[one].podSets[p].ordinals: instances of deployType deployment have no ids"},
		{"a name for a TApp", one("deployType: tapp, "+template, `{name: `+strings.Repeat("p", 53)+`, replicas: 1}`), ""},
		{"a name for a StatefulSet", one("deployType: StatefulSet, "+template, `{name: `+strings.Repeat("p", 52)+`, replicas: 1}`), ""},
		{"a name too long for a StatefulSet", one("deployType: StatefulSet, "+template, `{name: `+strings.Repeat("p", 53)+`, replicas: 1}`),
			"spec.clusterTopology.clusters[one].podSets[" + strings.Repeat("p", 53) + "].name: it has 53 characters, and a StatefulSet at most 52: a label of its pods has the name, and a hash"},
		{"ids that cannot be counted", one("deployType: tapp, "+template, `{name: p, replicas: 2, ordinals: {start: 2147483647}}`),
			"spec.clusterTopology.clusters[one].podSets[p].ordinals: the last id would be 2147483648, and no id is above 2147483647"},
		{"limits", app(`{podSpec: {` + template + `}, updateStrategy: {maxConcurrentClusters: 10%, maxUnavailable: 3, maxFailures: 0}}`), ""},
		{"limits that stop all", app(`{podSpec: {` + template + `}, updateStrategy: {maxConcurrentClusters: 0, maxUnavailable: 0%, maxFailures: 101%}}`),
			`spec.updateStrategy.maxConcurrentClusters: with 0 no update could start; give a number above 0, or a percentage from 1% to 100%
spec.updateStrategy.maxUnavailable: with 0% no update could start; give a number above 0, or a percentage from 1% to 100%
spec.updateStrategy.maxFailures: "101%" is no number, and no percentage from 0% to 100%`},
		{"limits that are none", app(`{podSpec: {` + template + `}, updateStrategy: {maxConcurrentClusters: -1, maxUnavailable: "+5%", maxFailures: "3"}}`),
			`spec.updateStrategy.maxConcurrentClusters: -1 is negative; give a number from 1 on, or a percentage from 1% to 100%
spec.updateStrategy.maxUnavailable: "+5%" is no number, and no percentage from 1% to 100%
spec.updateStrategy.maxFailures: "3" is no number, and no percentage from 0% to 100%`},
		{"stages", app(`{podSpec: {` + template + `}, clusterTopology: {clusters: [{name: BJ_4}]}, updateStrategy: {stages: [{name: first, clusters: [bj-4], clusterSelector: {matchLabels: {a: b}}}]}}`), ""},
		{"stages of groups, by name and by meta", app(`{podSpec: {` + template + `}, clusterTopology: {clusters: [{name: one, podSets: [{name: a-gz01-blue, replicas: 0}, {name: b, replicas: 1, meta: {sym-group: red}}]}]}, updateStrategy: {stages: [{name: first, groups: [red]}, {name: second, groups: [blue]}]}}`), ""},
		{"an order of groups that are not there", app(`{podSpec: {` + template + `}, clusterTopology: {clusters: [{name: one, podSets: [{name: a-gz01-blue, replicas: 1}]}]}, updateStrategy: {upgradeType: canary|blue|green}}`), ""},
		{"stages of a group that no podSet is in", app(`{podSpec: {` + template + `}, clusterTopology: {clusters: [{name: one, podSets: [{name: a-gz01-blue, replicas: 1}]}]}, updateStrategy: {stages: [{name: first, groups: [blue, bleu]}]}}`),
			"spec.updateStrategy.stages[first].groups: no podSet is in group bleu: have one say so in its meta (sym-group), or drop it here"},
		{"stages of what is not there", app(`{podSpec: {` + template + `}, updateStrategy: {stages: [{name: first, clusters: [x], maxConcurrentClusters: 0, clusterSelector: {matchExpressions: [{key: a, operator: In}]}}]}}`),
			`spec.updateStrategy.stages[first].maxConcurrentClusters: with 0 no update could start; give a number above 0, or a percentage from 1% to 100%
spec.updateStrategy.stages[first].clusterSelector: values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty
spec.updateStrategy.stages[first].clusters: x is not among clusterTopology.clusters: add it there, or drop it here`},
	} {
		t.Run(c.name, func(t *testing.T) {
			units, _, problems := Units(read(t, c.app))
			var got []string
			for _, p := range problems {
				got = append(got, p.Field+": "+p.Why)
			}
			if text := strings.Join(got, "\n"); text != c.want || len(problems) > 0 && len(units) > 0 {
				t.Errorf("%d units; got\n%s\nwant\n%s", len(units), text, c.want)
			}
		})
	}
}
