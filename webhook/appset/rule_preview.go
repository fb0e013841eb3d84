package appset

import (
	"time"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/foresight"
	"tkestack.io/tapp/plan/message"
)

// maxLine is how long a line may be, in bytes: the API server cuts warnings short that have
// more than 4,096 characters together.
const maxLine = 320

// advisePreview tells what an update will do in all clusters, by the planners that will do it.
func advisePreview(now, was *v1beta1.AppSet) (out []string) {
	if was == nil {
		return nil
	}
	p := foresight.Of(was, now, time.Now())
	if len(p.Problems) > 0 { // other rules tell of them
		return nil
	}
	for _, line := range p.Lines() {
		out = append(out, message.Cut(line, maxLine))
	}
	return out
}
