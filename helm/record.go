package helm

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The states of a release, as helm has them.
const (
	StatusUnknown         = "unknown"
	StatusDeployed        = "deployed"
	StatusUninstalled     = "uninstalled"
	StatusSuperseded      = "superseded"
	StatusFailed          = "failed"
	StatusUninstalling    = "uninstalling"
	StatusPendingInstall  = "pending-install"
	StatusPendingUpgrade  = "pending-upgrade"
	StatusPendingRollback = "pending-rollback"
)

// How the objects of a release were applied. Helm goes on in the same way.
const (
	ApplyServerSide = "ssa"
	ApplyClientSide = "csa"
)

const (
	// SecretType is the type of the Secrets that hold records.
	SecretType corev1.SecretType = "helm.sh/release.v1" //nolint:gosec // a type, no credentials
	// secretKey is where in the Secret's data the record is.
	secretKey = "release"
	// maxRecord bounds a record that is read, unpacked.
	maxRecord = 64 << 20
)

// systemLabels are helm's own on a record's Secret.
var systemLabels = []string{"name", "owner", "status", "version", "createdAt", "modifiedAt"}

// Record is one revision of a release. The fields and their names in JSON are helm's
// (helm.sh/helm/v4/pkg/release/v1, Release), so that the helm program lists it, shows
// it, upgrades from it and uninstalls it. One Secret holds one Record.
type Record struct {
	Name string `json:"name,omitempty"`
	Info Info   `json:"info"`
	// Chart is what Rendered.Record gave.
	Chart json.RawMessage `json:"chart,omitempty"`
	// Config is what Rendered.Values gave.
	Config   json.RawMessage `json:"config,omitempty"`
	Manifest string          `json:"manifest,omitempty"`
	Hooks    []Hook          `json:"hooks,omitempty"`
	// Version counts the revisions of a release from 1.
	Version   int    `json:"version,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	// ApplyMethod is ApplyServerSide for what tapp applies.
	ApplyMethod string `json:"apply_method,omitempty"`
	// Labels of the Secret besides helm's own. Helm copies them to the next revision.
	Labels map[string]string `json:"-"`
}

// Info is how a revision of a release is.
type Info struct {
	FirstDeployed    time.Time       `json:"first_deployed,omitzero"`
	LastDeployed     time.Time       `json:"last_deployed,omitzero"`
	Deleted          time.Time       `json:"deleted,omitzero"`
	Description      string          `json:"description,omitempty"`
	Status           string          `json:"status,omitempty"`
	RollbackRevision int             `json:"rollback_revision,omitempty"`
	Notes            string          `json:"notes,omitempty"`
	Resources        json.RawMessage `json:"resources,omitempty"`
}

// UnmarshalJSON also reads what helm 3 wrote, which has "" for no time.
func (i *Info) UnmarshalJSON(data []byte) error {
	type plain Info
	return unmarshalTimes(data, (*plain)(i), "first_deployed", "last_deployed", "deleted")
}

// UnmarshalJSON also reads what helm 3 wrote, which has "" for no time.
func (r *HookRun) UnmarshalJSON(data []byte) error {
	type plain HookRun
	return unmarshalTimes(data, (*plain)(r), "started_at", "completed_at")
}

func unmarshalTimes(data []byte, into any, times ...string) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return err
	}
	for _, name := range times {
		if string(fields[name]) == `""` {
			delete(fields, name)
		}
	}
	cleaned, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	return json.Unmarshal(cleaned, into)
}

// NewRecord is the record of what was rendered, in StatusPendingInstall or, for a
// version above 1, StatusPendingUpgrade.
func NewRecord(r *Rendered, namespace, name string, version int, now time.Time) *Record {
	status := StatusPendingInstall
	if version > 1 {
		status = StatusPendingUpgrade
	}
	return &Record{
		Name: name, Namespace: namespace, Version: version,
		Info:  Info{FirstDeployed: now, LastDeployed: now, Status: status, Notes: r.Notes},
		Chart: r.Record, Config: r.Values, Manifest: r.Manifest, Hooks: slices.Clone(r.Hooks),
		ApplyMethod: ApplyServerSide,
	}
}

// SecretName is the name of the Secret of one revision.
func SecretName(release string, version int) string {
	return "sh.helm.release.v1." + release + ".v" + strconv.Itoa(version)
}

// RecordLabels select the Secrets with the revisions of a release.
func RecordLabels(release string) map[string]string {
	return map[string]string{"owner": "helm", "name": release}
}

// Secret encodes the record as helm does. stamp is the label modifiedAt, which helm
// writes as the time of a change. A record that no Secret can hold is an *Error; helm
// leaves it to the API server to refuse it.
func (r *Record) Secret(stamp time.Time) (*corev1.Secret, error) {
	raw, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encoding the record of release %s: %w", r.Name, err)
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(raw); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	data := base64.StdEncoding.EncodeToString(packed.Bytes())
	if len(data) > corev1.MaxSecretSize {
		return nil, &Error{Chart: r.ChartInfo().String(), Message: fmt.Sprintf(
			"its record has %d bytes, and a Secret holds %d: keep files out of the chart with .helmignore, or make values and manifests smaller",
			len(data), corev1.MaxSecretSize)}
	}
	labels := map[string]string{}
	maps.Copy(labels, r.Labels)
	maps.Copy(labels, RecordLabels(r.Name))
	labels["status"], labels["version"] = r.Info.Status, strconv.Itoa(r.Version)
	labels["modifiedAt"] = strconv.FormatInt(stamp.Unix(), 10)
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: SecretName(r.Name, r.Version), Namespace: r.Namespace, Labels: labels},
		Type:       SecretType,
		Data:       map[string][]byte{secretKey: []byte(data)},
	}, nil
}

// DecodeRecord reads a record that helm or Secret wrote.
func DecodeRecord(secret *corev1.Secret) (*Record, error) {
	r, err := decodeRecord(secret.Data[secretKey])
	if err != nil {
		return nil, fmt.Errorf("reading the release in Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	for key, value := range secret.Labels {
		if slices.Contains(systemLabels, key) {
			continue
		}
		if r.Labels == nil {
			r.Labels = map[string]string{}
		}
		r.Labels[key] = value
	}
	return r, nil
}

func decodeRecord(data []byte) (*Record, error) {
	raw, err := base64.StdEncoding.AppendDecode(nil, data)
	if err != nil {
		return nil, err
	}
	// Records older than helm's compression are plain.
	if bytes.HasPrefix(raw, []byte{0x1f, 0x8b, 0x08}) {
		unpacked, err := gzip.NewReader(bytes.NewReader(raw))
		if err != nil {
			return nil, err
		}
		if raw, err = io.ReadAll(io.LimitReader(unpacked, maxRecord+1)); err != nil {
			return nil, err
		}
		if len(raw) > maxRecord {
			return nil, fmt.Errorf("it has more than %d bytes", maxRecord)
		}
	}
	r := &Record{}
	if err := json.Unmarshal(raw, r); err != nil {
		return nil, err
	}
	if r.Name == "" || r.Version < 1 {
		return nil, errors.New("it has no name or no version")
	}
	return r, nil
}

// ChartInfo names the chart of the record.
func (r *Record) ChartInfo() ChartInfo {
	var chart struct {
		Metadata ChartInfo `json:"metadata"`
	}
	if json.Unmarshal(r.Chart, &chart) != nil {
		return ChartInfo{}
	}
	return chart.Metadata
}

// Pending says whether an install, upgrade or rollback is underway, or was interrupted.
func (r *Record) Pending() bool {
	switch r.Info.Status {
	case StatusPendingInstall, StatusPendingUpgrade, StatusPendingRollback:
		return true
	}
	return false
}
