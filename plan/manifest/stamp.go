package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
)

// Stamp adds the hash of a manifest to it, as this annotation. A field that leaves the
// manifest is no difference from what the cluster has; that the hash is another one is.
func Stamp(manifest map[string]any, annotation string) map[string]any {
	content, err := json.Marshal(manifest) // with its keys in order
	if err != nil {
		content = []byte(fmt.Sprint(manifest)) // JSON has all that a manifest can hold
	}
	sum := sha256.Sum256(content)
	metadata, _ := manifest["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if annotations == nil {
		annotations = map[string]any{}
		metadata["annotations"] = annotations
	}
	annotations[annotation] = hex.EncodeToString(sum[:8])
	return manifest
}

// Plain is an object as JSON has it. Kubernetes' types always can be.
func Plain(object any) map[string]any {
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return map[string]any{}
	}
	return out
}
