// Package template says which pod templates are the same: their hashes and the
// canonical form that these are of, the comparison of a pod with its template, and
// of image references.
package template

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

// Hash computes the hashes of a template. They are HashRaw's, but for
// fields that the Go types do not know, which are lost in t already.
func Hash(t *corev1.PodTemplateSpec) (Hashes, error) {
	if t == nil {
		return HashRaw(nil)
	}
	return hashesOf(canonicalTemplate(fromTypes(bareOf(t))))
}

// HashWhole is the hash of the whole template alone, which costs less than Hash. The template must not be nil.
func HashWhole(t *corev1.PodTemplateSpec) (string, error) {
	whole, err := canonicalJSON("PodTemplateSpec", fromTypes(bareOf(t)))
	if err != nil {
		return "", fmt.Errorf("hash a pod template: %w", err)
	}
	return hashOf(whole), nil
}

func bareOf(t *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	bare := *t
	bare.Labels = tappv1.WithoutHashLabels(t.Labels)
	return &bare
}

// HashRaw computes the hashes of a template as it is stored: JSON decoded into
// maps. It does not change its argument. Two spellings of one template hash
// alike; see canonicalJSON for what counts as a spelling.
func HashRaw(template map[string]any) (Hashes, error) {
	return hashesOf(canonicalTemplate(fromTree(withoutHashLabels(template))))
}

func hashesOf(whole, unique []byte, err error) (Hashes, error) {
	if err != nil {
		return Hashes{}, fmt.Errorf("hash a pod template: %w", err)
	}
	return Hashes{Template: hashOf(whole), Uniq: hashOf(unique)}, nil
}

// shapeHash is the hash of a template's spec without images and without the cpu
// and memory of containers that keep running: what is left cannot change in a
// running pod. Without such resources it is the uniq hash.
func shapeHash(t *corev1.PodTemplateSpec) (string, error) {
	spec := t.Spec
	spec.Containers, spec.InitContainers = slices.Clone(spec.Containers), slices.Clone(spec.InitContainers)
	for i := range spec.Containers {
		c := &spec.Containers[i]
		c.Image, c.Resources = "", withoutResizable(c.Resources)
	}
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		if c.Image = ""; c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			c.Resources = withoutResizable(c.Resources)
		}
	}
	shape, err := canonicalJSON("PodSpec", fromTypes(&spec))
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

// Shape is the shape hash of the template that these are the hashes of.
func (h Hashes) Shape(t *corev1.PodTemplateSpec) string {
	if !hasResizable(t) {
		return h.Uniq
	}
	shape, err := shapeHash(t)
	if err != nil {
		// It cannot fail where the other hashes did not; if it did, no pod would be
		// taken for one of this shape.
		return "unknown"
	}
	return shape
}

// IsOurs is true for a hash of our scheme, as opposed to none, or one of
// tkestack/tapp's.
func IsOurs(hash string) bool {
	digits, found := strings.CutPrefix(hash, hashPrefix)
	if !found || len(digits) != hashDigits {
		return false
	}
	for _, d := range []byte(digits) { // a plan asks for each pod
		if (d < '0' || '9' < d) && (d < 'a' || 'f' < d) {
			return false
		}
	}
	return true
}

func hashOf(canonical []byte) string { return hashPrefix + Digest(canonical) }

// Digest is the part of a hash behind its prefix: the first hex digits of the
// SHA-256 of a text.
func Digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])[:hashDigits]
}

// withoutHashLabels leaves out the labels that the webhook stamps: a hash that
// counted them would change when it is stamped.
func withoutHashLabels(template map[string]any) map[string]any {
	metadata, _ := template["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	bare := tappv1.WithoutHashLabels(labels)
	if len(bare) == len(labels) {
		return template
	}
	metadata = maps.Clone(metadata)
	metadata["labels"] = bare
	template = maps.Clone(template)
	template["metadata"] = metadata
	return template
}

// withoutResizable leaves out what a resize can change.
func withoutResizable(r corev1.ResourceRequirements) corev1.ResourceRequirements {
	r.Requests, r.Limits = maps.Clone(r.Requests), maps.Clone(r.Limits)
	for _, name := range Resizable() {
		delete(r.Requests, name)
		delete(r.Limits, name)
	}
	return r
}

// Resizable are the resources that a kubelet changes in a running container
// (KEP-1287).
func Resizable() [2]corev1.ResourceName {
	return [2]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}
}
