package foresight

import (
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/podset"
)

var now = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

func appSet(t *testing.T, spec string) *v1beta1.AppSet {
	t.Helper()
	if spec == "" {
		return nil
	}
	a := &v1beta1.AppSet{}
	if err := yaml.UnmarshalStrict([]byte(spec), &a.Spec); err != nil {
		t.Fatal(err)
	}
	a.Name, a.Namespace, a.UID, a.Generation = "web", "shop", "app", 2
	return a
}

// web in two clusters, a canary and a blue podSet in each.
func web(deployType, strategy, version, env string, replicas string) string {
	return `
podSpec:
  deployType: ` + deployType + `
  template: {metadata: {labels: {tier: front}}, spec: {containers: [{name: web, image: nginx, env: [{name: LEVEL, value: "` + env + `"}]}]}}
updateStrategy: {` + strategy + `}
clusterTopology:
  clusters:
  - name: one
    podSets: [{name: web-gz01-canary, replicas: 1, version: ` + version + `}, {name: web-gz01-blue, replicas: ` + replicas + `, version: ` + version + `}]
  - name: two
    podSets: [{name: web-gz02-canary, replicas: 1, version: ` + version + `}, {name: web-gz02-blue, replicas: 2, version: ` + version + `}]
`
}

// ranged is an AppSet whose clusters share ids: so many in one, and from some id on so many in two.
func ranged(one, start, two string) string {
	return `
podSpec: {deployType: InPlaceSet, template: {spec: {containers: [{name: web, image: nginx}]}}}
clusterTopology:
  clusters:
  - {name: one, podSets: [{name: web, replicas: ` + one + `}]}
  - {name: two, podSets: [{name: web, replicas: ` + two + `, ordinals: {start: ` + start + `}}]}
`
}

// templated is an AppSet in one cluster with a template.
func templated(deployType, template string) string {
	return `
podSpec: {deployType: ` + deployType + `, template: {` + template + `}}
clusterTopology: {clusters: [{name: one, podSets: [{name: web, replicas: 2}]}]}
`
}

// joined is a cluster that comes to those of web.
func joined(version string) string {
	return "  - name: three\n    podSets: [{name: web-gz03-blue, replicas: 2, version: " + version + "}]\n"
}

// installing is an AppSet whose installation is under way, with the state of cluster two.
func installing(ran bool, two v1beta1.ClusterState) func(before, after *v1beta1.AppSet) {
	return func(before, after *v1beta1.AppSet) {
		before.Status.Rollout = &v1beta1.RolloutStatus{ID: "1", Revision: "r", State: "Installing", Ran: ran}
		before.Status.AggrStatus.Clusters = []v1beta1.ClusterStatus{{Name: "one", State: v1beta1.ClusterReady}, {Name: "two", State: two}}
		after.Status = before.Status
	}
}

func TestOf(t *testing.T) {
	const inPlace = "are updated in place: image of web from nginx:v1 to nginx:v2"
	const gates = "upgradeType: canary|blue, needWaitingForConfirm: true"
	v1 := web("InPlaceSet", gates, "v1", "1", "3")
	for _, c := range []struct {
		name, before, after, want string
		edit                      func(before, after *v1beta1.AppSet)
	}{
		{name: "created", after: v1, want: "at once: 7 instances are created: the podSet is new"},
		{name: "nothing", before: v1, after: v1},
		{name: "another image, in place, with gates", before: v1, after: web("tapp", gates, "v2", "1", "3"), want: `
stage canary (one, two; 1 at a time): 2 instances ` + inPlace + `; then it waits for a confirmation
stage blue (one, two; 1 at a time): 5 instances ` + inPlace},
		{name: "an installation that never ran", before: v1, after: web("tapp", gates, "v2", "1", "3"), edit: installing(false, ""), want: `
at once: 7 instances ` + inPlace + `
nothing of the installation that is under way has run: this is installed in its place, without stages and gates`},
		{name: "an installation that never ran, and a cluster that did not answer lately", before: v1, after: web("tapp", gates, "v2", "1", "3"), edit: installing(false, v1beta1.ClusterSuspect), want: `
at once: 7 instances ` + inPlace + `
nothing of the installation that is under way has run: this is installed in its place, without stages and gates`},
		{name: "an installation of which some ran", before: v1, after: web("tapp", gates, "v2", "1", "3"), edit: installing(true, ""), want: `
stage canary (one, two; 1 at a time): 2 instances ` + inPlace + `; then it waits for a confirmation
stage blue (one, two; 1 at a time): 5 instances ` + inPlace},
		{name: "an installation of which some ran, and some does not come back", before: v1, after: web("tapp", gates+", maxUnavailable: 2", "v2", "1", "3"), edit: func(before, after *v1beta1.AppSet) {
			installing(true, "")(before, after)
			for i, missing := range []int32{0, 2} {
				c := &after.Status.AggrStatus.Clusters[i]
				c.PodSets = []v1beta1.PodSetStatus{{Name: "web-gz01-blue"}, {Name: "web-gz02-blue", UnAvailable: missing}}
			}
		}, want: `
stage canary (one, two; 1 at a time): 2 instances ` + inPlace + `; then it waits for a confirmation
stage blue (one, two; 1 at a time): 5 instances ` + inPlace + `
at most 2 of all instances are unavailable at once, in all clusters together
nothing has run everywhere yet: podSets whose instances were taken out of service and do not come back have this before their stage, as long as they hold the budget: two/web-gz02-blue`},
		{name: "an installation of which nobody knows", before: v1, after: web("tapp", gates, "v2", "1", "3"), edit: installing(false, v1beta1.ClusterOffline), want: `
stage canary (one, two; 1 at a time): 2 instances ` + inPlace + `; then it waits for a confirmation
stage blue (one, two; 1 at a time): 5 instances ` + inPlace + `
nothing current is known of cluster two (Offline): what is to be done there waits for it`},
		{name: "without stages", before: web("InPlaceSet", "", "v1", "1", "3"), after: web("InPlaceSet", "maxConcurrentClusters: 2, maxUnavailable: 20%", "v2", "1", "3"), want: `
stage rest (one, two; 2 at a time): 7 instances ` + inPlace + `
at most 20% of all instances are unavailable at once, in all clusters together`},
		{name: "recreated, and scaled", before: v1, after: web("InPlaceSet", gates+", soakSeconds: 60, paused: true", "v1", "2", "2"), want: `
at once: 1 instance is removed: replicas from 3 to 2
stage canary (one, two; 1 at a time): 2 instances are recreated: template "default" changed: spec.containers[web].env[LEVEL].value; it has to stay well for 60 s; then it waits for a confirmation
stage blue (one, two; 1 at a time): 4 instances are recreated: template "default" changed: spec.containers[web].env[LEVEL].value; it has to stay well for 60 s
spec.updateStrategy.paused is true: updates start when it is false`},
		{name: "ids that move", before: ranged("3", "3", "2"), after: ranged("1", "1", "4"), want: `
at once: 2 instances are removed: replicas from 3 to 1
at once: 2 instances are created: ids begin at 1 instead of 3, and replicas are 4; those that cluster one has come when it has let go of them`},
		{name: "a checksum asks for a restart", before: templated("InPlaceSet", `metadata: {annotations: {checksum/config: "1"}}, spec: {containers: [{name: web, image: nginx}]}`),
			after: templated("InPlaceSet", `metadata: {annotations: {checksum/config: "2"}}, spec: {containers: [{name: web, image: nginx}]}`),
			want:  "stage rest (one): 2 instances are recreated: annotation checksum/config changed, which asks for a restart"},
		{name: "another annotation does not", before: templated("InPlaceSet", `metadata: {annotations: {team: red}}, spec: {containers: [{name: web, image: nginx}]}`),
			after: templated("InPlaceSet", `metadata: {annotations: {team: blue}}, spec: {containers: [{name: web, image: nginx}]}`),
			want:  "stage rest (one): 2 instances get other labels or annotations without a restart: only labels and annotations of the template changed"},
		{name: "init containers run", before: templated("InPlaceSet", `spec: {initContainers: [{name: setup, image: "setup:1"}], containers: [{name: web, image: "nginx:1"}]}`),
			after: templated("InPlaceSet", `spec: {initContainers: [{name: setup, image: "setup:2"}], containers: [{name: web, image: "nginx:2"}]}`),
			want:  "stage rest (one): 2 instances are recreated: image of init container setup from setup:1 to setup:2, which runs in new pods only"},
		{name: "scaled alone", before: v1, after: web("InPlaceSet", gates, "v1", "1", "5"), want: "at once: 2 instances are created: replicas from 3 to 5"},
		{name: "canary clusters", before: v1, after: web("InPlaceSet", "upgradeType: blue, canaryClusters: [two]", "v2", "1", "3"), want: `
stage canary (two): 3 instances ` + inPlace + `
stage blue (one): 3 instances ` + inPlace + `
stage rest (one): 1 instance is updated in place: image of web from nginx:v1 to nginx:v2`},
		{name: "a Deployment", before: web("deployment", "", "v1", "1", "3"), after: web("deployment", "", "v2", "1", "3"),
			want: "stage rest (one, two; 1 at a time): 7 instances are recreated: image of web from nginx:v1 to nginx:v2; a Deployment makes new pods"},
		{name: "a StatefulSet", before: web("StatefulSet", "", "v1", "1", "3"), after: web("StatefulSet", "", "v1", "2", "3"),
			want: "stage rest (one, two; 1 at a time): 7 instances are recreated: spec.containers[web].env[LEVEL].value; a StatefulSet makes new pods"},
		{name: "labels", before: v1, after: strings.Replace(v1, "tier: front", "tier: back", 1), want: `
stage canary (one, two; 1 at a time): 2 instances get other labels or annotations without a restart: only labels and annotations of the template changed; then it waits for a confirmation
stage blue (one, two; 1 at a time): 5 instances get other labels or annotations without a restart: only labels and annotations of the template changed`},
		{name: "a podSet leaves, and one comes", before: v1, after: strings.Replace(v1, "name: web-gz02-blue", "name: web-gz02-green", 1), want: `
stage rest (two): 2 instances are created: the podSet is new
as soon as the others are available: 2 instances are removed: the spec has the podSet no more`},
		{name: "ids move", before: strings.Replace(v1, "replicas: 3", "replicas: 3, ordinals: {start: 0}", 1),
			after: strings.NewReplacer("replicas: 3", "replicas: 3, ordinals: {start: 1}", "version: v1", "version: v2").Replace(v1), want: `
at once: 1 instance is removed: ids begin at 1 instead of 0, and replicas are 3
at once: 1 instance is created: ids begin at 1 instead of 0, and replicas are 3
stage canary (one, two; 1 at a time): 2 instances ` + inPlace + `; then it waits for a confirmation
stage blue (one, two; 1 at a time): 5 instances ` + inPlace},
		{name: "instances that are added change with the others", before: v1, after: web("InPlaceSet", gates, "v2", "1", "5"), want: `
at once: 2 instances are created: replicas from 3 to 5
stage canary (one, two; 1 at a time): 2 instances ` + inPlace + `; then it waits for a confirmation
stage blue (one, two; 1 at a time): 7 instances ` + inPlace},
		{name: "those that a Deployment adds before its turn, too", before: web("deployment", "canaryClusters: [two]", "v1", "1", "3"), after: web("deployment", "canaryClusters: [two]", "v2", "1", "5"), want: `
at once: 2 instances are created: replicas from 3 to 5
stage canary (two): 3 instances are recreated: image of web from nginx:v1 to nginx:v2; a Deployment makes new pods
stage rest (one): 6 instances are recreated: image of web from nginx:v1 to nginx:v2; a Deployment makes new pods`},
		{name: "those that a Deployment adds when it changes are made with it", before: web("deployment", "canaryClusters: [one]", "v1", "1", "3"), after: web("deployment", "canaryClusters: [one]", "v2", "1", "5"), want: `
at once: 2 instances are created: replicas from 3 to 5
stage canary (one): 4 instances are recreated: image of web from nginx:v1 to nginx:v2; a Deployment makes new pods
stage rest (two): 3 instances are recreated: image of web from nginx:v1 to nginx:v2; a Deployment makes new pods`},
		{name: "a cluster joins", before: v1, after: v1 + joined("v1"), want: "at once: 2 instances are created: the podSet is new"},
		{name: "a cluster joins, and the content changes", before: v1, after: web("InPlaceSet", gates, "v2", "1", "3") + joined("v2"), want: `
at once: 2 instances are created: the cluster is new, and begins with the stable content
stage canary (one, two; 1 at a time): 2 instances ` + inPlace + `; then it waits for a confirmation
stage blue (one, two, three; 1 at a time): 7 instances ` + inPlace},
		{name: "a cluster joins as the first one to change", before: v1, after: web("InPlaceSet", "canaryClusters: [three]", "v2", "1", "3") + joined("v2"), want: `
stage canary (three): 2 instances are created: the podSet is new
stage rest (one, two; 1 at a time): 7 instances ` + inPlace},
		{name: "a cluster leaves", before: v1 + joined("v1"), after: v1, want: "as soon as the others are available: 2 instances are removed: the spec has the cluster no more"},
		{name: "a chart", before: `{podSpec: {chart: {chartUrl: {url: a/web, chartVersion: "1"}}}, clusterTopology: {clusters: [{name: one, podSets: [{name: web, replicas: 3}]}]}}`,
			after: `{podSpec: {chart: {chartUrl: {url: a/web, chartVersion: "2"}}}, clusterTopology: {clusters: [{name: one, podSets: [{name: web, replicas: 3}]}]}}`,
			want:  "stage rest (one): 3 instances are upgraded with their releases: another chart, which is not rendered here"},
		{name: "stages as written", before: v1, after: web("InPlaceSet", "stages: [{name: first, clusters: [TWO], confirm: true}, {name: idle, clusters: [two], groups: [blue]}]", "v2", "1", "3"), want: `
stage first (two): 3 instances ` + inPlace + `; then it waits for a confirmation
stage rest (one): 4 instances ` + inPlace},
		{name: "back to what is stable", before: v1, after: web("InPlaceSet", gates, "v2", "1", "3"), edit: func(_, after *v1beta1.AppSet) {
			units, _, _ := podset.Units(after)
			after.Status.Rollout = &v1beta1.RolloutStatus{ID: "0123456789-1", Stable: podset.Revision(units)}
		}, want: `
in all clusters at once, within the budget: 7 instances ` + inPlace + `
this is the content of the stable revision: all clusters return to it at once, without stages and gates`},
		{name: "in the midst of another one", before: v1, after: web("InPlaceSet", "", "v2", "1", "3"), edit: func(_, after *v1beta1.AppSet) {
			after.Status.Rollout = &v1beta1.RolloutStatus{ID: "0123456789-1", Revision: "u1-b", Stable: "u1-a"}
			after.Status.AggrStatus.Clusters = []v1beta1.ClusterStatus{{Name: "one", State: v1beta1.ClusterReady}, {Name: "two", State: v1beta1.ClusterOffline}}
		}, want: `
stage rest (one, two; 1 at a time): 7 instances ` + inPlace + `
the rollout that is under way (0123456789-1) ends with this; the stages are told as if it were done
nothing current is known of cluster two (Offline): what is to be done there waits for it`},
		{name: "a silent cluster that uses the budget up", before: v1, after: web("InPlaceSet", "maxUnavailable: 3", "v2", "1", "3"), edit: func(_, after *v1beta1.AppSet) {
			after.Status.AggrStatus.Clusters = []v1beta1.ClusterStatus{{Name: "one", State: v1beta1.ClusterReady}, {Name: "two", State: v1beta1.ClusterOffline}}
		}, want: `
stage rest (one, two; 1 at a time): 7 instances ` + inPlace + `
at most 3 of all instances are unavailable at once, in all clusters together
no update starts: the 3 instances in clusters of which nothing current is known use the budget of 3 up, unless spec.updateStrategy.unreachableCounts is AsLastSeen
nothing current is known of cluster two (Offline): what is to be done there waits for it`},
		{name: "a silent cluster that leaves the budget room", before: v1, after: web("InPlaceSet", "maxUnavailable: 4", "v2", "1", "3"), edit: func(_, after *v1beta1.AppSet) {
			after.Status.AggrStatus.Clusters = []v1beta1.ClusterStatus{{Name: "one", State: v1beta1.ClusterReady}, {Name: "two", State: v1beta1.ClusterOffline}}
		}, want: `
stage rest (one, two; 1 at a time): 7 instances ` + inPlace + `
at most 4 of all instances are unavailable at once, in all clusters together
nothing current is known of cluster two (Offline): what is to be done there waits for it`},
		{name: "a silent cluster that counts as it was seen last", before: v1, after: web("InPlaceSet", "maxUnavailable: 1, unreachableCounts: AsLastSeen", "v2", "1", "3"), edit: func(_, after *v1beta1.AppSet) {
			after.Status.AggrStatus.Clusters = []v1beta1.ClusterStatus{{Name: "two", State: v1beta1.ClusterOffline}}
		}, want: `
stage rest (one, two; 1 at a time): 7 instances ` + inPlace + `
at most 1 of all instances are unavailable at once, in all clusters together
nothing current is known of cluster two (Offline): what is to be done there waits for it`},
		{name: "a bad spec", before: v1, after: strings.Replace(v1, "replicas: 3", "replicas: 30%", 1),
			want: "spec.clusterTopology.clusters[one].podSets[web-gz01-blue].replicas: it is a part of spec.replicas, which is absent: give that, or a number here"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before, after := appSet(t, c.before), appSet(t, c.after)
			if c.edit != nil {
				c.edit(before, after)
			}
			p := Of(before, after, now)
			if got := strings.Join(p.Lines(), "\n"); got != strings.TrimPrefix(c.want, "\n") {
				t.Errorf("it tells\n%s\nwant\n%s", got, strings.TrimPrefix(c.want, "\n"))
			}
			if p.IsEmpty() != (c.want == "") {
				t.Errorf("nothing would change: %t", p.IsEmpty())
			}
		})
	}
}
