package rollout

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Stage of a rollout.
type Stage struct {
	Name string
	// Units by their index in Input.
	Units []int
	// Work: the target of some of its units is not what they have in the stable revision, or
	// was not when the stage began. Stages without work pass at once, and ask nobody.
	Work bool
	// Confirm: a gate follows. Token names it while it waits; empty: it does not.
	Confirm bool
	Token   string
	// Record of how far it has come; zero where there is no work.
	Record StageRecord
	// Unfinished units of it that have work, and failed ones.
	Unfinished, Failed int
	// Returning units of it: they go back to the stable content, and are not there yet.
	Returning int

	soak       time.Duration
	concurrent *intstr.IntOrString
}

// Soak is how long the stage has to stay well when it is done.
func (s *Stage) Soak() time.Duration { return s.soak }

// Concurrent is how many of its clusters may change at once, if so many have work.
func (s *Stage) Concurrent(clusters int) int { return max(1, scaled(s.concurrent, clusters, true, 1)) }

// Names of stages that are not written down. That of the last one is rest.
const (
	groupCanary = "canary"
	stageRest   = "rest"
	stageOthers = "others" // where a stage is called rest
)

// stagesOf all units, in their order: each unit is in one.
//
// | given | stages |
// |---|---|
// | stages | as written, and a last one for units in none |
// | canary in the order, or canary clusters | canary: that group in the canary clusters (all if none are named); where a canary cluster has no such group, or the order does not name it, all of the cluster |
// | further groups in the order | a stage each, canary clusters first; canaries elsewhere go with the first of them |
// | nothing | rest: all others |
//
// A stage that has begun and has not passed stays, whatever becomes of its units: to scale a
// canary down to 0, or to remove it, opens no gate.
func stagesOf(s *Strategy, r *Record, clusters []Cluster, units []Unit) []Stage {
	staging := &r.Staging
	a := assignment{s: s, staging: staging, record: r, clusters: map[string]*Cluster{}, units: units, taken: make([]bool, len(units))}
	for i := range clusters {
		a.clusters[clusters[i].Name] = &clusters[i]
	}
	if len(staging.Stages) > 0 {
		a.written()
	} else {
		a.grouped()
	}
	last := stageRest
	if slices.ContainsFunc(a.stages, func(stage Stage) bool { return stage.Name == stageRest }) {
		last = stageOthers
	}
	a.add(a.stage(last), func(*Unit) bool { return true })
	return a.stages
}

// assignment of units to stages in the making.
type assignment struct {
	s        *Strategy
	staging  *Staging
	record   *Record
	clusters map[string]*Cluster
	units    []Unit
	taken    []bool
	stages   []Stage
}

// stage with what holds for all of a rollout, which one that is written out may change.
func (a *assignment) stage(name string) Stage {
	return Stage{Name: name, Confirm: a.staging.Confirm, soak: a.s.Soak, concurrent: a.s.Concurrent}
}

// add a stage with all units that it selects and that are in none yet.
func (a *assignment) add(stage Stage, selects func(*Unit) bool) {
	for _, first := range []bool{true, false} { // canary clusters come first
		for i := range a.units {
			u := &a.units[i]
			if !a.taken[i] && slices.Contains(a.staging.Canaries, u.Cluster) == first && selects(u) {
				a.taken[i] = true
				stage.Units = append(stage.Units, i)
				stage.Work = stage.Work || u.hasWork()
			}
		}
	}
	begun := a.record.isUnderWay(stage.Name)
	stage.Work = stage.Work || begun
	if begun || len(stage.Units) > 0 || len(a.staging.Stages) > 0 && stage.Name != stageRest && stage.Name != stageOthers {
		a.stages = append(a.stages, stage)
	}
}

// hasWork says whether the rollout changes the unit.
func (u *Unit) hasWork() bool { return u.Target != u.Stable && u.Replicas > 0 }

func (a *assignment) written() {
	for i := range a.staging.Stages {
		spec := &a.staging.Stages[i]
		stage := a.stage(spec.Name)
		if spec.Concurrent != nil {
			stage.concurrent = spec.Concurrent
		}
		if spec.Confirm != nil {
			stage.Confirm = *spec.Confirm
		}
		if spec.Soak != nil {
			stage.soak = time.Duration(*spec.Soak) * time.Second
		}
		selector, err := labels.Parse(spec.Selector)
		if err != nil {
			selector = labels.Nothing() // it was read before
		}
		a.add(stage, func(u *Unit) bool {
			cluster := a.clusters[u.Cluster]
			return (len(spec.Clusters) == 0 || slices.Contains(spec.Clusters, u.Cluster)) &&
				(len(spec.Groups) == 0 || slices.Contains(spec.Groups, u.Group)) &&
				(selector.Empty() || cluster != nil && selector.Matches(cluster.Labels))
		})
	}
}

func (a *assignment) grouped() {
	named := slices.Contains(a.staging.Order, groupCanary)
	if named || len(a.staging.Canaries) > 0 {
		a.add(a.stage(groupCanary), func(u *Unit) bool {
			in := len(a.staging.Canaries) == 0 || slices.Contains(a.staging.Canaries, u.Cluster)
			whole := len(a.staging.Canaries) > 0 && (!named || !a.hasGroup(u.Cluster, groupCanary))
			return in && (whole || u.Group == groupCanary)
		})
	}
	first := true
	for _, group := range a.staging.Order {
		if group == groupCanary {
			continue
		}
		late := first && named // canaries elsewhere are normal by then
		a.add(a.stage(group), func(u *Unit) bool {
			return u.Group == group || late && u.Group == groupCanary
		})
		first = false
	}
}

func (a *assignment) hasGroup(cluster, group string) bool {
	return slices.ContainsFunc(a.units, func(u Unit) bool { return u.Cluster == cluster && u.Group == group })
}

// scaled is a number, or a percentage of a total; nil: otherwise.
func scaled(value *intstr.IntOrString, total int, up bool, otherwise int) int {
	if value == nil {
		return otherwise
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(value, total, up)
	if err != nil {
		return otherwise // it was read before
	}
	return n
}
