package podset

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"strings"

	"tkestack.io/tapp/plan/rollout"
)

const (
	// mostPlain is how long the text of a record may be, in bytes, to be stored as it is. All
	// annotations of an object may have 256 KiB together: of a longer one each byte counts, as
	// where a thousand podSets fail at once.
	mostPlain = 128 << 10
	// packed begins the text of a longer one: gzip, in base64.
	packed = "gzip:"
	// mostRecord is how long a record may be when it is unpacked.
	mostRecord = 8 << 20
)

// textOf a record, as the annotation has it.
func textOf(record *rollout.Record) string {
	text, _ := json.Marshal(record) // it came from JSON
	if len(text) <= mostPlain {
		return string(text)
	}
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // the level is one
	_, _ = w.Write(text)                                    // nor can a write to memory fail
	_ = w.Close()
	return packed + base64.StdEncoding.EncodeToString(out.Bytes())
}

// recordIn the text of an annotation; nil: there is none that can be read.
func recordIn(text string) *rollout.Record {
	plain := []byte(text)
	if coded, is := strings.CutPrefix(text, packed); is {
		r, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(coded)))
		if err != nil {
			return nil
		}
		if plain, err = io.ReadAll(io.LimitReader(r, mostRecord)); err != nil {
			return nil
		}
	}
	out := &rollout.Record{}
	if err := json.Unmarshal(plain, out); err != nil || out.ID == "" {
		return nil
	}
	return out
}
