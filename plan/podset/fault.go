package podset

import "tkestack.io/tapp/crd/workload/v1beta1"

// IsFault says whether what is stalled for this reason has failed in a rollout. A node that
// is lost is no fault of the content: the time without progress decides then.
func IsFault(reason string) bool { return reason != v1beta1.ReasonNodeLost }

// IsBroken says whether a podSet tells of a fault of its own, and so is not where it is to be,
// whatever its numbers say.
func IsBroken(s *v1beta1.PodSetStatus) bool {
	return s.Reason != "" && s.Reason != v1beta1.ReasonProgressing && s.Reason != v1beta1.ReasonHeld && IsFault(s.Reason)
}

// FaultsFirst compares reasons. Who looks at a condition goes by its one reason, which says
// that nothing failed only if nothing did.
func FaultsFirst(a, b string) int {
	switch {
	case IsFault(a) == IsFault(b):
		return 0
	case IsFault(a):
		return -1
	}
	return 1
}
