package podset

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// Chart says which chart a unit has: by the digest of its archive, or by where it comes
// from as long as nobody has fetched it. The same bytes are the same content, wherever
// they come from.
type Chart struct {
	// Digest is the SHA-256 of the archive, as hexadecimal digits.
	Digest string `json:"digest,omitempty"`
	// URL and Version name it in a repository. They are empty where the digest is known.
	URL     string `json:"url,omitempty"`
	Version string `json:"version,omitempty"`
}

// Place that a chart comes from: URL and version.
func (c *Chart) Place() string { return strings.TrimSpace(c.URL + " " + c.Version) }

// DigestOf an archive.
func DigestOf(archive []byte) string {
	sum := sha256.Sum256(archive)
	return hex.EncodeToString(sum[:])
}

// isArchive says whether bytes are compressed as archives of charts are. What is in them
// is judged where they are rendered.
func isArchive(raw []byte) bool { return bytes.HasPrefix(raw, []byte{0x1f, 0x8b}) }

func chartOf(c *v1beta1.ChartSpec) *Chart {
	switch {
	case len(c.RawChart) > 0:
		return &Chart{Digest: DigestOf(c.RawChart)}
	case c.ChartURL != nil:
		return &Chart{URL: c.ChartURL.URL, Version: c.ChartURL.ChartVersion}
	}
	return &Chart{}
}

// SecretName of the chart: of the Secret that holds the archive.
func (c *Chart) SecretName() string { return v1beta1.ChartSecretPrefix + c.Digest }

// DigestIn the name of a Secret with an archive; empty: it has none.
func DigestIn(ref *corev1.LocalObjectReference) string {
	digest, ok := strings.CutPrefix(ref.Name, v1beta1.ChartSecretPrefix)
	if _, err := hex.DecodeString(digest); !ok || err != nil || len(digest) != sha256.Size*2 {
		return ""
	}
	return digest
}

// ChartOf is the digest of the chart in a revision; empty: it has none.
func ChartOf(r *v1beta1.Revision) string {
	content := Content{}
	if err := json.Unmarshal(r.Content.Raw, &content); err != nil || content.Chart == nil {
		return ""
	}
	return content.Chart.Digest
}

// Pin gives a unit the chart with a digest.
func (u *Unit) Pin(digest string) error {
	u.Content.Chart = &Chart{Digest: digest}
	hash, err := u.Content.hash()
	u.Hash = hash
	return err
}

// Digests of the charts that a history has.
func (h *History) Digests() (out []string) {
	for _, digest := range h.Charts {
		out = append(out, digest)
	}
	for _, content := range h.Retained {
		if content.Chart != nil && content.Chart.Digest != "" {
			out = append(out, content.Chart.Digest)
		}
	}
	return out
}
