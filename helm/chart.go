// Package helm is what tapp knows of Helm: it renders charts in a child process,
// and reads and writes releases as the helm program records them.
//
// Where the bytes of a chart come from is helm/source; what the child process does
// is helm/engine. Nothing here talks to a cluster: whoever calls it applies the
// objects and stores the records.
package helm

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Bounds of what is accepted. A release's record has to fit into one Secret, so
// charts near them cannot be installed by helm either.
const (
	// MaxArchive is the size of a chart's archive, and of a Secret's data.
	MaxArchive = 1 << 20
	// MaxUnpacked is the sum of the files in an archive, subcharts among them.
	MaxUnpacked = 24 << 20
	// MaxManifest is the size of what a chart's templates become, without crds/.
	MaxManifest = 4 << 20
)

// Request asks for one rendering of a chart.
type Request struct {
	// Chart is the archive, as `helm package` makes it.
	Chart []byte `json:"chart"`
	// Release and Namespace are .Release.Name and .Release.Namespace.
	Release   string `json:"release"`
	Namespace string `json:"namespace"`
	// Revision is .Release.Revision; 0 means 1. Above 1 it is an upgrade.
	Revision int `json:"revision,omitempty"`

	// Values are YAML documents of the user, each merged over the one before:
	// podSpec.rawValues, podSet.rawValues.
	Values []string `json:"values,omitempty"`
	// Defaults are merged below Values, Overrides above them. Of both only what the
	// chart's own values.yaml has a key for is used, because a schema may refuse other
	// keys. Example: {"image": {"tag": "v4"}}.
	Defaults  map[string]any `json:"defaults,omitempty"`
	Overrides map[string]any `json:"overrides,omitempty"`

	// KubeVersion ("v1.37.2") and APIVersions ("apps/v1", "apps/v1/Deployment") are
	// .Capabilities of the cluster that the objects are for. Empty: those of the
	// Kubernetes libraries in this program.
	KubeVersion string   `json:"kubeVersion,omitempty"`
	APIVersions []string `json:"apiVersions,omitempty"`
}

// Rendered is what a chart becomes.
type Rendered struct {
	// Chart names the chart.
	Chart ChartInfo `json:"chart"`
	// Values are those on top of the chart's own: Values of the request, with what was
	// used of Defaults and Overrides. `helm get values` shows them.
	Values json.RawMessage `json:"values"`
	// Manifest has the objects in the order in which helm installs them, without hooks
	// and crds/. `helm get manifest` shows it; Objects reads it.
	Manifest string `json:"manifest"`
	// CRDs are the files of crds/, subcharts' first: installed, never updated.
	CRDs string `json:"crds,omitempty"`
	// Hooks as helm records them: sorted by kind. HooksFor has the order of their runs.
	Hooks []Hook `json:"hooks,omitempty"`
	// Notes is the rendered NOTES.txt of the chart.
	Notes string `json:"notes,omitempty"`
	// Warnings tell what the chart asks for that is not done, one sentence each.
	Warnings []string `json:"warnings,omitempty"`
	// Record is the chart as a record holds it.
	Record json.RawMessage `json:"record"`
}

// ChartInfo names a chart.
type ChartInfo struct {
	Name       string `json:"name"`
	Version    string `json:"version"`
	AppVersion string `json:"appVersion,omitempty"`
}

// String is as helm prints it: name-version.
func (c ChartInfo) String() string { return c.Name + "-" + c.Version }

// Object is one object of a manifest.
type Object struct {
	// Source is the template that it comes from, as web/templates/service.yaml.
	Source string
	*unstructured.Unstructured
}

// Error says what is wrong with a chart or its values: it stays wrong until one of
// them changes. Other errors of this package may be gone when tried again.
type Error struct {
	// Chart is name-version; empty if the archive could not be read so far.
	Chart   string
	Message string
}

func (e *Error) Error() string {
	if e.Chart == "" {
		return "chart: " + e.Message
	}
	return fmt.Sprintf("chart %s: %s", e.Chart, e.Message)
}
