package status

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
)

// Patch is a JSON merge patch from the stored status to another one, for the
// object with this UID. It leaves fields alone that a newer program may have put
// there, and is small. That it is not conditional on a resourceVersion loses
// nothing where nobody else writes the status.
func Patch(uid types.UID, stored, next any) ([]byte, error) {
	type object struct {
		Metadata struct {
			UID types.UID `json:"uid,omitempty"`
		} `json:"metadata"`
		Status any `json:"status"`
	}
	before, after := object{Status: stored}, object{Status: next}
	after.Metadata.UID = uid
	from, err := json.Marshal(before)
	if err != nil {
		return nil, err
	}
	to, err := json.Marshal(after)
	if err != nil {
		return nil, err
	}
	return jsonmergepatch.CreateThreeWayJSONMergePatch(from, to, from)
}
