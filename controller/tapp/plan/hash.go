package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// hashPrefix names the scheme. It makes a hash a valid label value, and one that
// can never be mistaken for the decimal FNV hashes of tkestack/tapp. What
// follows is the first 16 hex digits of the SHA-256 of the canonical JSON (see
// canonicalJSON).
const hashPrefix = "v1-"

const hashDigits = 16

// Hashes of a pod template. A pod carries those of the template it follows in
// its labels. Template hash differs and uniq hash is equal: the pod can change in
// place. Both differ: it has to be recreated, unless nothing but the resources of
// its containers differs (see shapeHash) and may change in place, too.
type Hashes struct {
	// Template is the hash of the whole template: its metadata without our hash
	// labels, and its spec.
	Template string
	// Uniq is the hash of its spec without the images of containers and
	// initContainers.
	Uniq string
}

// HashTemplate computes the hashes of a template. They are HashRaw's, but for
// fields that the Go types do not know, which are lost in t already.
func HashTemplate(t *corev1.PodTemplateSpec) (Hashes, error) {
	tree, err := treeOf(t)
	if err != nil {
		return Hashes{}, fmt.Errorf("hash a pod template: %w", err)
	}
	return HashRaw(tree)
}

// HashRaw computes the hashes of a template as it is stored: JSON decoded into
// maps. It does not change its argument. Two spellings of one template hash
// alike; see canonicalJSON for what counts as a spelling.
func HashRaw(template map[string]any) (Hashes, error) {
	whole, unique, err := canonicalTemplate(withoutHashLabels(template))
	if err != nil {
		return Hashes{}, fmt.Errorf("hash a pod template: %w", err)
	}
	return Hashes{Template: hashOf(whole), Uniq: hashOf(unique)}, nil
}

// shapeHash is the hash of a template's spec without images and without the cpu
// and memory of containers that keep running: what is left cannot change in a
// running pod. Without such resources it is the uniq hash.
func shapeHash(template map[string]any) (string, error) {
	spec, _ := template["spec"].(map[string]any)
	shape, err := canonicalJSON("PodSpec", withoutResources(withoutImages(spec)))
	if err != nil {
		return "", fmt.Errorf("hash the shape of a pod template: %w", err)
	}
	return hashOf(shape), nil
}

// hasResizable is false where the shape hash is the uniq hash.
func hasResizable(t *corev1.PodTemplateSpec) bool {
	for _, containers := range [][]corev1.Container{t.Spec.Containers, t.Spec.InitContainers} {
		for i := range containers {
			if r := &containers[i].Resources; len(r.Requests)+len(r.Limits) > 0 {
				return true
			}
		}
	}
	return false
}

// IsOurs is true for a hash of our scheme, as opposed to none, or one of
// tkestack/tapp's.
func IsOurs(hash string) bool {
	digits, found := strings.CutPrefix(hash, hashPrefix)
	if !found || len(digits) != hashDigits {
		return false
	}
	return strings.Trim(digits, "0123456789abcdef") == ""
}

func hashOf(canonical []byte) string {
	sum := sha256.Sum256(canonical)
	return hashPrefix + hex.EncodeToString(sum[:])[:hashDigits]
}

// withoutHashLabels leaves out the labels that the webhook stamps: a hash that
// counted them would change when it is stamped.
func withoutHashLabels(template map[string]any) map[string]any {
	metadata, _ := template["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	_, hasTemplate := labels[tappv1.LabelTemplateHash]
	_, hasUniq := labels[tappv1.LabelUniqHash]
	if !hasTemplate && !hasUniq {
		return template
	}
	labels = maps.Clone(labels)
	delete(labels, tappv1.LabelTemplateHash)
	delete(labels, tappv1.LabelUniqHash)
	metadata = maps.Clone(metadata)
	metadata["labels"] = labels
	template = maps.Clone(template)
	template["metadata"] = metadata
	return template
}

// withoutImages leaves out what an in-place update can change in a spec.
func withoutImages(spec map[string]any) map[string]any {
	return withContainers(spec, func(_ string, c map[string]any) { delete(c, "image") })
}

// withoutResources leaves out what a resize can change.
func withoutResources(spec map[string]any) map[string]any {
	return withContainers(spec, func(field string, c map[string]any) {
		resources, ok := c["resources"].(map[string]any)
		if !ok || field == "initContainers" && c["restartPolicy"] != "Always" {
			return
		}
		resources = maps.Clone(resources)
		for _, what := range []string{"requests", "limits"} {
			if list, ok := resources[what].(map[string]any); ok {
				list = maps.Clone(list)
				for _, name := range resizable() {
					delete(list, string(name))
				}
				resources[what] = list
			}
		}
		c["resources"] = resources
	})
}

// withContainers returns the spec with copies of its containers that change has
// seen.
func withContainers(spec map[string]any, change func(field string, c map[string]any)) map[string]any {
	spec = maps.Clone(spec)
	for _, field := range []string{"containers", "initContainers"} {
		containers, ok := spec[field].([]any)
		if !ok {
			continue
		}
		containers = slices.Clone(containers)
		for i := range containers {
			if c, ok := containers[i].(map[string]any); ok {
				c = maps.Clone(c)
				change(field, c)
				containers[i] = c
			}
		}
		spec[field] = containers
	}
	return spec
}
