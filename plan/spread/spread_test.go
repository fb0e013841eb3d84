package spread

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

const (
	host = `{"maxSkew":3,"topologyKey":"kubernetes.io/hostname","whenUnsatisfiable":"ScheduleAnyway","labelSelector":{"matchLabels":{"app":"web"}}}`
	zone = `{"maxSkew":5,"topologyKey":"topology.kubernetes.io/zone","whenUnsatisfiable":"ScheduleAnyway","labelSelector":{"matchLabels":{"app":"web"}}}`
)

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestConstraints: keys and skews are those of kube-scheduler's systemDefaultConstraints.
func TestConstraints(t *testing.T) {
	const none, system = tappv1.NoTopologySpread, tappv1.SystemTopologySpread
	web := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	for name, c := range map[string]struct {
		policy   Policy
		asked    tappv1.DefaultTopologySpread
		selector *metav1.LabelSelector
		want     string
	}{
		"nobody says it":              {Policy{Zones: true}, "", web, "null"},
		"the operator's":              {Policy{Default: system}, "", web, "[" + host + "]"},
		"the operator's, with zones":  {Policy{Default: system, Zones: true}, "", web, "[" + host + "," + zone + "]"},
		"the operator's is none":      {Policy{Default: none, Zones: true}, "", web, "null"},
		"the TApp's, and no policy":   {Policy{}, system, web, "[" + host + "]"},
		"the TApp's is none":          {Policy{Default: system, Zones: true}, none, web, "null"},
		"the TApp's against none":     {Policy{Default: none, Zones: true}, system, web, "[" + host + "," + zone + "]"},
		"a value of a later version":  {Policy{Default: system}, "List", web, "null"},
		"no selector":                 {Policy{Default: system}, "", nil, "null"},
		"a selector of nothing":       {Policy{Default: system}, "", &metav1.LabelSelector{}, "null"},
		"a selector of hashes alone":  {Policy{Default: system}, "", &metav1.LabelSelector{MatchLabels: map[string]string{tappv1.LabelUniqHash: "v1-0"}}, "null"},
		"a selector with both hashes": {Policy{Default: system}, "", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web", tappv1.LabelUniqHash: "v1-0", tappv1.LabelTemplateHash: "v1-1"}}, "[" + host + "]"},
		"expressions": {Policy{Default: system}, "", &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: tappv1.LabelTemplateHash, Operator: metav1.LabelSelectorOpExists}, {Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"web", "api"}}}},
			`[{"maxSkew":3,"topologyKey":"kubernetes.io/hostname","whenUnsatisfiable":"ScheduleAnyway","labelSelector":{"matchExpressions":[{"key":"app","operator":"In","values":["web","api"]}]}}]`},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &tappv1.TAppSpec{DefaultTopologySpread: c.asked, Selector: c.selector}
			before := asJSON(t, spec)
			if got := asJSON(t, c.policy.Constraints(spec)); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if after := asJSON(t, spec); after != before {
				t.Errorf("the spec has changed: %s", after)
			}
		})
	}
}

// TestAdd: what a template says of where its pods go counts more.
func TestAdd(t *testing.T) {
	ours := Policy{Default: tappv1.SystemTopologySpread}.Constraints(&tappv1.TAppSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}})
	own := []corev1.TopologySpreadConstraint{{TopologyKey: "rack", MaxSkew: 1, WhenUnsatisfiable: corev1.DoNotSchedule}}
	for name, c := range map[string]struct {
		spec corev1.PodSpec
		want bool
	}{
		"nothing said":              {corev1.PodSpec{}, true},
		"an empty list":             {corev1.PodSpec{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{}}, true},
		"the default scheduler":     {corev1.PodSpec{SchedulerName: "default-scheduler"}, true},
		"affinity and nodeSelector": {corev1.PodSpec{Affinity: &corev1.Affinity{}, NodeSelector: map[string]string{"a": "b"}}, true},
		"constraints of its own":    {corev1.PodSpec{TopologySpreadConstraints: own}, false},
		"a node":                    {corev1.PodSpec{NodeName: "node-1"}, false},
		"another scheduler":         {corev1.PodSpec{SchedulerName: "volcano"}, false},
	} {
		before := asJSON(t, &c.spec)
		Add(&c.spec, ours)
		if got := asJSON(t, c.spec.TopologySpreadConstraints) == "["+host+"]"; got != c.want {
			t.Errorf("%s: %s", name, asJSON(t, c.spec.TopologySpreadConstraints))
		}
		if !c.want && asJSON(t, &c.spec) != before {
			t.Errorf("%s: it is changed", name)
		}
	}
}
