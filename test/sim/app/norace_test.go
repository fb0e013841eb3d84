//go:build !race

package app

// someSeeds are run where no number is given.
const someSeeds = 60
