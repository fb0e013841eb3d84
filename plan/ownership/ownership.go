// Package ownership writes the owner references by which pods and claims are a TApp's, as
// strategic merge patches of the object with a UID.
package ownership

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// Take makes the TApp the controller of the object.
func Take(t *tappv1.TApp, uid types.UID) []byte {
	ref := metav1.NewControllerRef(t, tappv1.GroupVersionKind())
	return patch(uid, map[string]any{
		"apiVersion": ref.APIVersion, "kind": ref.Kind, "name": ref.Name, "uid": ref.UID,
		"controller": true, "blockOwnerDeletion": true,
	})
}

// Drop removes the TApp from the owners of the object.
func Drop(t *tappv1.TApp, uid types.UID) []byte {
	return patch(uid, map[string]any{"$patch": "delete", "uid": t.UID})
}

func patch(uid types.UID, ref map[string]any) []byte {
	var p struct {
		Metadata struct {
			UID             types.UID        `json:"uid"`
			OwnerReferences []map[string]any `json:"ownerReferences"`
		} `json:"metadata"`
	}
	p.Metadata.UID = uid
	p.Metadata.OwnerReferences = []map[string]any{ref}
	b, _ := json.Marshal(p) // strings and booleans always marshal
	return b
}
