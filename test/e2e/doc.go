// Package e2e tests TApp on a real cluster: a built tapp runs as a process beside
// it, and is watched from outside, as users and their Services see it.
//
//	cluster.go     what the tests have: the cluster, namespaces, TApps, kubectl
//	controller.go  the tapp process: start, stop, kill
//	wait.go        waiting for conditions, never for time to pass
//	pods.go        what tests ask of pods
//	feed.go        one watch of all pods, for everything below
//	oracle.go      what must hold at every write of the suite (S1, S4, S5, S7)
//	floor.go       what must hold during one test (S2, order of updates)
//	endpoints.go   what a Service routes to
//
// Tests that restart the controller or the API server run first, one by one. All
// others run in parallel, each in a namespace of its own.
package e2e
