package manifest

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Operation of a JSON patch (RFC 6902).
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// ForVersion begins a patch that is refused unless the object is still of the version that was observed.
func ForVersion(uid types.UID, version string) []Operation {
	return []Operation{
		{Op: "add", Path: "/metadata/uid", Value: uid},
		{Op: "add", Path: "/metadata/resourceVersion", Value: version},
	}
}

// Pointer is a key as a JSON pointer has it (RFC 6901).
func Pointer(key string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(key) }
