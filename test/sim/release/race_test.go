//go:build race

package release

// someSeeds are run where no number is given: the race detector makes a run ten times as
// long.
const someSeeds = 8
