// Package nodes tests what becomes of TApps when real nodes are lost, and when real
// load moves an autoscaler. The cluster has three real nodes, so that two of them can
// be away at the same time, and it calls a silent one not ready early.
//
//	suite.go    what the tests have: the controller, and a namespace
//	loss.go     the ways in which a node is lost, and how it comes back
//	runtime.go  what really runs on the nodes, whatever the API server believes
package nodes
