package servedschema

import (
	"fmt"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

const (
	// heldInterval is how often the served schema is asked for while the kind is held.
	heldInterval = 5 * time.Second
	// settles is for how long after an object lost fields the schema may not show it yet: an
	// API server publishes it later than it goes by it.
	settles = 30 * time.Second
	// countInterval is how often what objects use is counted anew.
	countInterval = time.Hour
	// maxTold bounds the fields that a message names.
	maxTold = 10
)

// Reasons of events.
const (
	ReasonLost     = "SchemaLostFields"
	ReasonComplete = "SchemaComplete"
)

// Options of a Hold.
type Options struct {
	// Kind that is held, and the name of its resource with the group.
	Kind     schema.GroupVersionKind
	Resource string
	// REST reads the served schema.
	REST rest.Interface
	// ConfigMaps and Namespace are where the record is; an empty namespace keeps none.
	ConfigMaps corev1client.ConfigMapsGetter
	Namespace  string
	// FieldManager of the record.
	FieldManager string
	// Interval is how often the served schema is asked for; 0: nothing is held.
	Interval time.Duration
	// Accepted are digests of schemas that are fine, whatever they lost.
	Accepted []string
	// Objects are those of the kind in the cache; specs returns the spec of one.
	Objects func() []metav1.Object
	SpecOf  func(metav1.Object) any
	// Tell is called with an event when the kind begins to be held, and when that ends.
	Tell func(reason, message string)
	// Measure is called with 1 when the kind begins to be held, and with 0 when that ends.
	Measure func(float64)
	Clock   clock.WithTicker
}

// Hold of one kind.
type Hold struct {
	Options
	records records

	mu sync.Mutex
	// changed is closed when held begins or ends.
	changed chan struct{}
	held    *Held
	// known are the fields that the schema has or had; nil: not asked for yet.
	known Fields
	// served are the fields that were read last.
	served servedFields
	// used are the fields that objects have or had since countedAt, as far as generations tells.
	used        Fields
	generations map[types.UID]int64
	countedAt   time.Time
	// whole are the objects that lost fields, as they were before, and lostAt is when the last one did.
	whole  map[types.NamespacedName]metav1.Object
	lostAt time.Time
	// stored is what the record says; nil: not known.
	stored *Record
}

// servedFields with the address of the document, in which is its hash.
type servedFields struct {
	url    string
	fields Fields
}

// New makes a Hold that holds nothing.
func New(o Options) *Hold {
	return &Hold{
		Options: o, records: records{core: o.ConfigMaps, namespace: o.Namespace, key: o.Resource, manager: o.FieldManager},
		changed: make(chan struct{}), used: Fields{}, generations: map[types.UID]int64{}, whole: map[types.NamespacedName]metav1.Object{},
	}
}

// Held says why the kind is held; nil: it is not.
func (h *Hold) Held() *Held {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.held
}

// Incoming looks at an object as it comes in, before it is cached and before anything is
// planned by it. before is the one in the cache.
func (h *Hold) Incoming(before, now metav1.Object) {
	if h.Interval == 0 {
		return // nobody would end it
	}
	fields := lostFields(before, now, h.SpecOf)
	if len(fields) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	name := nameOf(now)
	if whole, ok := h.whole[name]; !ok || len(lostFields(whole, now, h.SpecOf)) == 0 { // else it loses one field after another
		h.whole[name] = before
	}
	h.lostAt = h.Clock.Now()
	if h.held == nil {
		h.begin(fields, "", fmt.Sprintf("%s lost %s, and nobody wrote it", name, list(fields)))
	}
}

// begin to hold. The caller has the lock.
func (h *Hold) begin(lost []string, digest, why string) {
	message := fmt.Sprintf("nothing is done for any %s: %s. The API server leaves out fields that objects use, and each write erases them. "+
		"Apply the CustomResourceDefinition %s of this version of TApp", h.Kind.Kind, why, h.Resource)
	if digest != "" {
		message += ", or accept the loss by --accept-schema=" + digest
	}
	h.held = &Held{Since: sinceNow(h.Clock.Now()), Lost: lost[:min(len(lost), maxTold)], Digest: digest, Message: message}
	h.Measure(1)
	close(h.changed)
	h.changed = make(chan struct{})
}

func nameOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

func list(fields []string) string {
	text := strings.Join(fields[:min(len(fields), maxTold)], ", ")
	if more := len(fields) - maxTold; more > 0 {
		text += fmt.Sprintf(" and %d more fields", more)
	}
	return "spec." + strings.ReplaceAll(text, ", ", ", spec.")
}
