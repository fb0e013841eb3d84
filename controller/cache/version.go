package cache

import "k8s.io/apimachinery/pkg/util/resourceversion"

// Newer says whether the version a is newer than b, where "" is older than all.
// Versions that cannot be compared stop nobody: they are not those of a
// Kubernetes API server.
func Newer(a, b string) bool {
	if a == "" || b == "" {
		return a != ""
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}
