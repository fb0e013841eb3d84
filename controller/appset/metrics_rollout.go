package appset

import (
	"github.com/prometheus/client_golang/prometheus"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// rolloutMetrics are read from the status of each AppSet. An AppSet has one series of each
// metric, whatever the number of its stages and clusters; of the state, one for each state.
type rolloutMetrics struct {
	state, stage, stages, done, failed, gate, budget, charged, silent *prometheus.Desc
}

type describer = func(name, help string, labels ...string) *prometheus.Desc

func newRolloutMetrics(desc describer) rolloutMetrics {
	return rolloutMetrics{
		state:   desc("tapp_appset_rollout_state", "1 for the state of the rollout of an AppSet: Installing, Returning, Staged, Waiting, Halted, RollingBack, RolledBack, Done or Unknown.", "state"),
		stage:   desc("tapp_appset_rollout_stage", "Number of the stage that the rollout of an AppSet is in, from 1 on; 0: in none."),
		stages:  desc("tapp_appset_rollout_stages", "Stages of the rollout of an AppSet."),
		done:    desc("tapp_appset_rollout_podsets_done", "PodSets of all stages of the rollout of an AppSet that are done."),
		failed:  desc("tapp_appset_rollout_podsets_failed", "PodSets of all stages of the rollout of an AppSet that failed."),
		gate:    desc("tapp_appset_gate_opened_timestamp_seconds", "When the stage was done after which the rollout of an AppSet waits for a Confirmation. Absent: no gate waits."),
		budget:  desc("tapp_appset_budget_instances", "Instances of an AppSet that may be unavailable in all clusters together. Absent: there is no budget for all."),
		charged: desc("tapp_appset_budget_used_instances", "Instances of that budget that are in use: unavailable, granted, or in clusters that are silent. Absent: there is no budget for all."),
		silent:  desc("tapp_appset_clusters_silent", "Clusters of an AppSet of which nothing current is known."),
	}
}

func (m *rolloutMetrics) describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.state, m.stage, m.stages, m.done, m.failed, m.gate, m.budget, m.charged, m.silent} {
		ch <- d
	}
}

func (m *rolloutMetrics) collect(a *v1beta1.AppSet, gauge func(d *prometheus.Desc, value float64, labels ...string)) {
	silent := 0
	for i := range a.Status.AggrStatus.Clusters {
		if c := &a.Status.AggrStatus.Clusters[i]; c.State != v1beta1.ClusterMaintaining && (c.State != v1beta1.ClusterReady || c.AsOf != nil) {
			silent++
		}
	}
	gauge(m.silent, float64(silent))
	r := a.Status.Rollout
	if r == nil {
		return
	}
	if r.State != "" {
		gauge(m.state, 1, r.State)
	}
	stage, done, failed := 0, int32(0), int32(0)
	for i := range r.Stages {
		s := &r.Stages[i]
		done, failed = done+s.Done, failed+s.Failed
		if s.Name == r.Stage {
			stage = i + 1
		}
		if s.Token != "" && s.Finished != nil {
			gauge(m.gate, float64(s.Finished.Unix()))
		}
	}
	gauge(m.stage, float64(stage))
	gauge(m.stages, float64(len(r.Stages)))
	gauge(m.done, float64(done))
	gauge(m.failed, float64(failed))
	if r.Budget != nil {
		gauge(m.budget, float64(*r.Budget))
		gauge(m.charged, float64(r.Charged))
	}
}
