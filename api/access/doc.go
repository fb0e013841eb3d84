// Package access says who sends a request, whether he may do what he asks for, and whether he
// does it too often.
//
//	access.go   the interfaces; Loopback, for a server that only its own user reaches
//	reviews.go  TokenReview and SubjectAccessReview, with what was answered kept for a while
//	rates.go    requests a second, wrong tokens a minute, and how many are open at a time
package access
