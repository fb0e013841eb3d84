//go:build race

package release

// someSeeds are run where no number is given: the race detector makes a run ten times as
// long. They do not come by each of the writes.
const someSeeds, comeByAll = 8, false
