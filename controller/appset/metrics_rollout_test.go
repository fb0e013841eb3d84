package appset

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// TestRolloutMetrics: what they tell follows the status, and no gate that is not open is told
// of.
func TestRolloutMetrics(t *testing.T) {
	names := map[*prometheus.Desc]string{}
	m := newRolloutMetrics(func(name, help string, labels ...string) *prometheus.Desc {
		d := prometheus.NewDesc(name, help, labels, nil)
		names[d] = strings.TrimPrefix(name, "tapp_appset_")
		return d
	})
	opened := metav1.NewTime(time.Unix(1000, 0))
	for name, c := range map[string]struct {
		status v1beta1.AppSetStatus
		want   string
	}{
		"nothing yet": {v1beta1.AppSetStatus{}, "clusters_silent 0"},
		"done": {v1beta1.AppSetStatus{Rollout: &v1beta1.RolloutStatus{State: "Done"}},
			"clusters_silent 0, rollout_podsets_done 0, rollout_podsets_failed 0, rollout_stage 0, rollout_stages 0, rollout_state[Done] 1"},
		"at a gate, with a silent cluster": {v1beta1.AppSetStatus{
			AggrStatus: v1beta1.AppSetAggregate{Clusters: []v1beta1.ClusterStatus{{State: v1beta1.ClusterReady}, {State: v1beta1.ClusterOffline}, {State: v1beta1.ClusterMaintaining}, {State: v1beta1.ClusterReady, AsOf: &opened}}},
			Rollout: &v1beta1.RolloutStatus{State: "Waiting", Stage: "blue", Budget: new(int32(3)), Charged: 2, Stages: []v1beta1.StageStatus{
				{Name: "canary", Done: 2, Finished: &opened, ConfirmedBy: "ann"}, {Name: "blue", Done: 3, Failed: 1, Finished: &opened, Token: "abc"}, {Name: "green"}}},
		}, "budget_instances 3, budget_used_instances 2, clusters_silent 2, gate_opened_timestamp_seconds 1000, rollout_podsets_done 5, rollout_podsets_failed 1, rollout_stage 2, rollout_stages 3, rollout_state[Waiting] 1"},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]float64{}
			m.collect(&v1beta1.AppSet{Status: c.status}, func(d *prometheus.Desc, value float64, labels ...string) {
				key := names[d]
				if len(labels) > 0 {
					key += fmt.Sprint(labels)
				}
				got[key] = value
			})
			var lines []string
			for _, key := range slices.Sorted(maps.Keys(got)) {
				lines = append(lines, fmt.Sprintf("%s %v", key, got[key]))
			}
			if is := strings.Join(lines, ", "); is != c.want {
				t.Errorf("they tell %s, want %s", is, c.want)
			}
		})
	}
}
