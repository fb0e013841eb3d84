//go:build !race

package release

// someSeeds are run where no number is given. They come by each of the writes.
const someSeeds, comeByAll = 60, true
