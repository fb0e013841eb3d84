package sim

import (
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// patch is a PATCH of an object or one of its subresources.
func (s *apiServer) patch(resource, name, sub string, kind types.PatchType, data []byte, who actor) (object, error) {
	return s.update(resource, name, sub, who, func(o object) error {
		before, err := json.Marshal(o)
		if err != nil {
			return err
		}
		after, err := s.applyPatch(resource, kind, before, data)
		if err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		empty := s.kinds[resource].newOne()
		if err := json.Unmarshal(after, empty); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		return assign(o, empty)
	})
}

func (s *apiServer) applyPatch(resource string, kind types.PatchType, before, data []byte) ([]byte, error) {
	switch kind {
	case types.StrategicMergePatchType:
		if resource == tapps {
			return nil, fmt.Errorf("custom resources know no strategic merge patches")
		}
		return strategicpatch.StrategicMergePatch(before, data, s.kinds[resource].newOne())
	case types.MergePatchType:
		return jsonpatch.MergePatch(before, data)
	case types.JSONPatchType:
		p, err := jsonpatch.DecodePatch(data)
		if err != nil {
			return nil, err
		}
		return p.Apply(before)
	}
	return nil, fmt.Errorf("patches of type %s are not spoken here", kind)
}
