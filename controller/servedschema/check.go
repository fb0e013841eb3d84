package servedschema

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

// Check asks for the served schema, and compares it with what is recorded. An error means
// that it cannot be told; what holds goes on to hold.
func (h *Hold) Check(ctx context.Context) error {
	served, err := h.read(ctx)
	if err != nil {
		return err
	}
	h.mu.Lock()
	first := h.stored == nil
	h.mu.Unlock()
	var stored *Record
	if first {
		if stored, err = h.records.read(ctx); err != nil {
			klog.FromContext(ctx).Info("What the last leader knew of a schema cannot be read", "kind", h.Kind.Kind, "reason", err.Error())
		}
	}
	objects := h.Objects()

	h.mu.Lock()
	was := h.held
	if first && stored != nil {
		h.known, h.used = newFields(stored.Fields), newFields(stored.Used)
		if h.held, h.lostAt = cmp.Or(h.held, stored.Held), h.Clock.Now(); h.held != nil {
			h.Measure(1)
		}
	}
	note := h.judge(served, objects)
	is, record := h.held, h.toStore()
	h.mu.Unlock()

	if note != "" {
		h.Tell(ReasonLost, note)
	}
	h.tell(ctx, was, is)
	if record == nil {
		return nil
	}
	if err := h.records.write(ctx, record); err != nil {
		return err
	}
	h.mu.Lock()
	h.stored = record
	h.mu.Unlock()
	return nil
}

// read the fields that are served. The document is read again when its hash in the index has changed,
// and always while the kind is held: an API server renews its index once a minute.
func (h *Hold) read(ctx context.Context) (Fields, error) {
	index, err := h.REST.Get().AbsPath("/openapi/v3").SetHeader("Accept", "application/json").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the index of schemas: %w", err)
	}
	var paths struct {
		Paths map[string]struct {
			URL string `json:"serverRelativeURL"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(index, &paths); err != nil {
		return nil, fmt.Errorf("reading the index of schemas: %w", err)
	}
	group := "apis/" + h.Kind.GroupVersion().String()
	at := paths.Paths[group].URL
	if at == "" {
		return nil, fmt.Errorf("no schema of %s is served", h.Kind.GroupVersion())
	}
	h.mu.Lock()
	known, held := h.served, h.held != nil
	h.mu.Unlock()
	if known.url == at && !held {
		return known.fields, nil
	}
	document, err := h.REST.Get().AbsPath("/openapi/v3/"+group).SetHeader("Accept", "application/json").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the served schema of %s: %w", h.Kind.Kind, err)
	}
	fields, err := parseFields(document, h.Kind)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	h.served = servedFields{url: at, fields: fields}
	h.mu.Unlock()
	return fields, nil
}

// judge the schema that is served, and return what is to be told beside. The caller has the lock.
func (h *Hold) judge(served Fields, objects []metav1.Object) (note string) {
	digest := served.Digest()
	if slices.Contains(h.Accepted, digest) {
		h.settle(served, objects)
		h.countAnew(objects)
		return ""
	}
	h.use(h.known, objects)
	var lost []string
	lacks := h.known.Missing(served)
	for _, path := range lacks {
		if h.isUsed(path) {
			lost = append(lost, path)
		}
	}
	switch {
	case len(lost) > 0 && (h.held == nil || h.held.Digest != digest):
		h.begin(lost, digest, "the schema that is served lacks "+list(lost))
	case len(lost) > 0 || h.isSettling() || h.stillLost(objects):
	default:
		h.settle(served, objects)
		if len(lacks) > 0 {
			return fmt.Sprintf("the served schema of %s lacks %s, which no object has", h.Kind.Kind, list(lacks))
		}
	}
	return ""
}

// settle for the schema that is served.
func (h *Hold) settle(served Fields, objects []metav1.Object) {
	h.known = served
	clear(h.whole)
	if h.held != nil {
		h.held = nil
		h.Measure(0)
		close(h.changed)
		h.changed = make(chan struct{})
	}
	if h.Clock.Since(h.countedAt) >= countInterval {
		h.countAnew(objects)
	} else {
		h.use(served, objects)
	}
}

// isUsed says whether objects have or had a field, or one below it.
func (h *Hold) isUsed(path string) bool {
	for used := range h.used {
		if used == path || isBelow(used, path) {
			return true
		}
	}
	return false
}

// use notes what objects use that changed since they were looked at.
func (h *Hold) use(fields Fields, objects []metav1.Object) {
	if fields == nil || h.held != nil {
		return
	}
	for _, o := range objects {
		if h.generations[o.GetUID()] != o.GetGeneration() {
			h.generations[o.GetUID()] = o.GetGeneration()
			fields.addUsed(h.used, toJSON(h.SpecOf(o)), "")
		}
	}
}

// countAnew forgets what objects used once, so that fields which nobody uses any more can go.
func (h *Hold) countAnew(objects []metav1.Object) {
	h.used, h.generations, h.countedAt = Fields{}, map[types.UID]int64{}, h.Clock.Now()
	h.use(h.known, objects)
}

// isSettling says whether the served schema may lag behind what an object lost, or behind what
// the last leader knew.
func (h *Hold) isSettling() bool {
	return h.held != nil && h.Clock.Since(h.lostAt) < settles
}

// stillLost says whether an object lacks fields that it lost. One that was written since, or
// is gone, lacks none.
func (h *Hold) stillLost(objects []metav1.Object) bool {
	for _, o := range objects {
		if whole, ok := h.whole[nameOf(o)]; ok && len(lostFields(whole, o, h.SpecOf)) > 0 {
			return true
		}
	}
	return false
}

// toStore is the record if it differs from the stored one; nil: nothing is to be written.
func (h *Hold) toStore() *Record {
	record := newRecord(h.known, h.used, h.held)
	if h.stored != nil && slices.Equal(record.Fields, h.stored.Fields) && slices.Equal(record.Used, h.stored.Used) && sameHeld(record.Held, h.stored.Held) {
		return nil
	}
	return record
}

func sameHeld(a, b *Held) bool {
	return (a == nil) == (b == nil) && (a == nil || a.Message == b.Message)
}

func (h *Hold) tell(ctx context.Context, was, is *Held) {
	logger := klog.FromContext(ctx)
	switch {
	case is != nil && (was == nil || was.Message != is.Message):
		h.Tell(ReasonLost, is.Message)
	case is == nil && was != nil:
		h.Tell(ReasonComplete, "the served schema of "+h.Kind.Kind+" has what objects use, or its loss was accepted: work goes on")
	}
	if is != nil {
		logger.Error(nil, "A kind is held", "kind", h.Kind.Kind, "reason", is.Message)
	}
}
