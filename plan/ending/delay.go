package ending

import "time"

// A pod that ended is followed by the next one after a delay that doubles with every
// failure in a row.
const (
	DelayMin = 10 * time.Second
	DelayMax = 5 * time.Minute
)

// Delay is how long to wait after a number of failures in a row.
func Delay(failures int) time.Duration {
	const doublings = 5 // 10 s · 2⁵ is more than 5 min
	return min(DelayMin<<min(failures, doublings), DelayMax)
}
