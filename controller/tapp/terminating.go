package tapp

import "time"

// terminatingAgain is for how long nothing is created for a TApp after the API server has
// said that its namespace is being deleted: each pod that goes would have the next one tried
// in vain. Never to try again would trust an API server that has not heard yet of a new
// namespace of that name.
const terminatingAgain = 30 * time.Second
