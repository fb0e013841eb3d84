// Package api is the HTTP API of tapp: it shows TApps, Apps and AppSets to those who may
// see them, and writes nothing.
//
//	types.go      what it answers with, in JSON
//	routes.go     the table of routes, of which the router and the documentation are made
//	api.go        Options, New: the handler
//	access.go     who asks, and whether he may: interfaces, and the two implementations
//	              review.go (TokenReview and SubjectAccessReview) and local.go (loopback)
//	feed.go       shared watches of the API server, kept while somebody asks
//	topic.go      what is shown of them, computed once for all who look
//	request.go    a request: its caller, rights and parameters; answer.go answers it
//	stream.go     streams of what changes; sender.go writes server-sent events
//	tapps.go ...  one kind each
//	server.go     `tapp api`: TLS, limits, command
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
