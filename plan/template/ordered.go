package template

import (
	"bytes"
	"encoding/json"
)

// Ordered is a value as JSON with the keys of every object in order, as a ControllerRevision
// has to hold it. Its data may never change, and the API server compares the bytes, which
// every patch of the revision brings into the order of a map. In any other order no patch
// would pass, nor would the garbage collector's, which orphans.
func Ordered(value any) ([]byte, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var ordered any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&ordered); err != nil {
		return nil, err
	}
	return json.Marshal(ordered)
}
