// Package api is the HTTP API of tapp: it shows TApps, Apps and AppSets to those who may
// see them, and writes nothing.
//
//	routes.go     the table of routes, of which the router and the documentation are made
//	api.go        Options, New: the handler
//	request.go    a request: its caller, rights and parameters
//	stream.go     streams of what changes; sender.go writes server-sent events
//	tapps.go ...  one kind each
//	members.go    the clusters of the fleet; fleet_*.go, parts.go and alias.go show them
//
// What it is made of stands below:
//
//	v1        the types it answers with, in JSON
//	describe  makes them of objects; pure
//	live      shared watches, and what is shown of them, computed once for all who look
//	access    who asks, whether he may, and how often
//	answer    documents with ETags, and errors as Statuses
//	server    `tapp api`: flags, TLS
//	page      the web page
//
// Streams (?watch=1) are server-sent events:
//
//	list    a List or InstanceList with everything: the beginning
//	change  a Change or InstanceChange since then
//	object  a TAppDetail and the like, whenever it is another one
//	health  a Health: what is shown is not current, or is again
//	error   a metav1.Status; the stream ends
//
// A comment is sent every 15 seconds. Each list, change and object has an id, which is the
// ETag of what is shown from then on: a client that comes back with it as Last-Event-ID gets
// no list or object if nothing changed meanwhile.
package api
