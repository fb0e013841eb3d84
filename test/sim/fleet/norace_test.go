//go:build !race

package fleet

// someSeeds are run where no number is given.
const someSeeds = 60
