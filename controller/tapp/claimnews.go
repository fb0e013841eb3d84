package tapp

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/termination"
)

// tellClaims tells of claims in use that are being deleted, once each. What the stored status
// tells of already, an earlier process has told.
func (c *Controller) tellClaims(t *tappv1.TApp, o *object, claims []termination.Claim) {
	told := map[types.UID]bool{}
	for _, claim := range termination.Told(t.Status.Conditions) {
		told[claim.UID] = true
	}
	var news []termination.Claim
	seen := make(map[types.UID]bool, len(claims))
	for _, claim := range claims {
		seen[claim.UID] = true
		if !o.claims[claim.UID] && !told[claim.UID] {
			news = append(news, claim)
		}
	}
	o.claims = seen
	for n, claim := range news {
		message := claim.String()
		if more := len(news) - maxProblems; more > 0 && n == maxProblems-1 {
			message += fmt.Sprintf(" (and %d more claims)", more)
		}
		if n < maxProblems {
			c.recorder.problem(t, termination.Reason, message)
		}
	}
}
