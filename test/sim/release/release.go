// Package release runs what carries out Helm releases against an API server in memory: the
// planner, the operator and the records as they are, in a process that crashes before and
// after its writes, while users change what they want, hooks run and fail, and writes are
// refused. One seed is one run, and equal seeds give equal runs.
//
// After every single write the records are judged as the helm program would read them (F12):
// that it lists the release, and that its uninstall leaves nothing behind.
//
//	world.go    the state of a run, what happens next, and what users do
//	cluster.go  the cluster, with those who run Jobs and Deployments
//	chart.go    charts, as they are rendered
//	process.go  the operator behind a network of ours
//	oracle.go   what must never happen, and where every run has to end
package release

// Result of a run.
type Result struct {
	Failure  error
	Trace    []string
	Digest   uint64
	Steps    int
	Coverage map[string]int
}

const (
	namespace = "shop"
	// name of the release.
	name = "web"
	// owner is the name of the AdvDeployment.
	owner = "app"
)
