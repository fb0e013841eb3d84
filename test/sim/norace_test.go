//go:build !race

package sim

// someSeeds are run where no number is given.
const someSeeds = 300
