// Package live keeps what is shown of watches of an API server: each thing that somebody looks
// at is computed once for all who look, and anew when the objects change that it is made of.
//
//	feed.go    shared watches, kept while somebody needs them (kept.go)
//	pulse.go   whether the API server answers at all, which a silent watch cannot say
//	topic.go   what is shown, and its health; topics.go has those that are looked at
//	shown.go   a list or an object at one time, in JSON; list.go writes pages of it, and what changed
package live
