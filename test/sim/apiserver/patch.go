package apiserver

import (
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// Patch is a PATCH of an object or one of its subresources.
func (s *Server) Patch(resource, key, sub string, kind types.PatchType, data []byte, who Actor) (Object, error) {
	return s.Update(resource, key, sub, who, func(o Object) error {
		before, err := json.Marshal(o)
		if err != nil {
			return err
		}
		after, err := s.applyPatch(resource, kind, before, data)
		if err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		empty := s.kinds[resource].New()
		if err := json.Unmarshal(after, empty); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		return Assign(o, empty)
	})
}

func (s *Server) applyPatch(resource string, kind types.PatchType, before, data []byte) ([]byte, error) {
	switch kind {
	case types.StrategicMergePatchType:
		if s.kinds[resource].Custom {
			return nil, fmt.Errorf("custom resources know no strategic merge patches")
		}
		return strategicpatch.StrategicMergePatch(before, data, s.kinds[resource].New())
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
