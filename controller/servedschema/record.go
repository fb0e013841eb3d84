package servedschema

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// maxRecordBytes bounds a record that is unpacked. Ours have 200 KB at most.
const maxRecordBytes = 4 << 20

// Record is what a leader knew of a kind's schema, for the next one.
type Record struct {
	// Fields that the schema had.
	Fields []string `json:"fields"`
	// Used are those that some object had.
	Used []string `json:"used"`
	// Held is not nil while the kind is held.
	Held *Held `json:"held,omitempty"`
}

// Held says why a kind is held, and how that ends.
type Held struct {
	Since metav1.Time `json:"since"`
	// Lost fields, the first few of them.
	Lost []string `json:"lost"`
	// Digest of the schema that is served, which --accept-schema takes; empty: not known yet.
	Digest  string `json:"digest,omitempty"`
	Message string `json:"message"`
}

// records are kept in a ConfigMap, one key for each kind.
type records struct {
	core      corev1client.ConfigMapsGetter
	namespace string // empty: nothing is kept
	key       string
	manager   string
}

// read returns nil if there is no record, or none that may be read.
func (r *records) read(ctx context.Context) (*Record, error) {
	if r.namespace == "" {
		return nil, nil
	}
	object, err := r.core.ConfigMaps(r.namespace).Get(ctx, tappv1.SchemasConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the ConfigMap %s/%s: %w", r.namespace, tappv1.SchemasConfigMap, err)
	}
	return Decode(object.BinaryData[r.key])
}

// Decode a record as it is stored. There is none in no data.
func Decode(data []byte) (*Record, error) {
	if len(data) == 0 {
		return nil, nil
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("unpacking the record of a schema: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(unpacked, maxRecordBytes))
	if err != nil {
		return nil, fmt.Errorf("unpacking the record of a schema: %w", err)
	}
	var out Record
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, fmt.Errorf("reading the record of a schema: %w", err)
	}
	return &out, nil
}

func (r *records) write(ctx context.Context, record *Record) error {
	if r.namespace == "" {
		return nil
	}
	text, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("encoding the record of a schema: %w", err)
	}
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	if _, err := zip.Write(text); err != nil {
		return fmt.Errorf("packing the record of a schema: %w", err)
	}
	if err := zip.Close(); err != nil {
		return fmt.Errorf("packing the record of a schema: %w", err)
	}
	configMap := corev1apply.ConfigMap(tappv1.SchemasConfigMap, r.namespace).WithBinaryData(map[string][]byte{r.key: packed.Bytes()})
	if record.Held != nil {
		configMap.WithData(map[string]string{r.key + ".held": record.Held.Message})
	}
	options := metav1.ApplyOptions{FieldManager: r.manager + "-" + r.key, Force: true}
	if _, err := r.core.ConfigMaps(r.namespace).Apply(ctx, configMap, options); err != nil {
		return fmt.Errorf("applying the ConfigMap %s/%s: %w", r.namespace, tappv1.SchemasConfigMap, err)
	}
	return nil
}

func newRecord(fields, used Fields, held *Held) *Record {
	return &Record{Fields: slices.Sorted(maps.Keys(fields)), Used: slices.Sorted(maps.Keys(used)), Held: held}
}

func sinceNow(now time.Time) metav1.Time { return metav1.NewTime(now.Truncate(time.Second)) }
