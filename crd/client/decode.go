package client

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
)

// expecting are the codecs of clients of one kind. client-go's read each object twice, first for its kind and version
// alone, and each event of a watch ten times, all but one of them to find where something ends. A client knows what
// it asked for. What is not of that kind, a Status most of all, is decoded by the codecs that it wraps, as is what cannot
// be decoded, so that errors are theirs.
type expecting struct {
	runtime.NegotiatedSerializer
	scheme *runtime.Scheme
	// kind of the objects of a watch.
	kind  schema.GroupVersionKind
	media []runtime.SerializerInfo
	// told decodes an object of a kind that it is told.
	told runtime.Decoder
}

func expect(kind schema.GroupVersionKind, known *codecs) *expecting {
	e := &expecting{
		NegotiatedSerializer: known.objects, scheme: known.scheme, kind: kind,
		told: json.NewSerializerWithOptions(untold{}, known.scheme, known.scheme, json.SerializerOptions{}),
	}
	for _, info := range known.objects.SupportedMediaTypes() {
		if info.MediaType == runtime.ContentTypeJSON && info.StreamSerializer != nil {
			stream := *info.StreamSerializer
			stream.Serializer, stream.Framer = &events{stream.Serializer}, framer{stream.Framer}
			info.StreamSerializer = &stream
			e.media = append(e.media, info)
		}
	}
	return e
}

// untold is a json.MetaFactory that leaves the kind to the caller.
type untold struct{}

func (untold) Interpret([]byte) (*schema.GroupVersionKind, error) {
	return &schema.GroupVersionKind{}, nil
}

// SupportedMediaTypes implements runtime.NegotiatedSerializer: JSON is all that custom resources speak.
func (e *expecting) SupportedMediaTypes() []runtime.SerializerInfo { return e.media }

// DecoderToVersion implements runtime.NegotiatedSerializer.
func (e *expecting) DecoderToVersion(d runtime.Decoder, v runtime.GroupVersioner) runtime.Decoder {
	return &decoder{e, e.NegotiatedSerializer.DecoderToVersion(d, v)}
}

type decoder struct {
	*expecting
	exact runtime.Decoder
}

// Decode implements runtime.Decoder.
func (d *decoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	kind := d.kind
	switch {
	case defaults != nil: // the caller expects something else: a Status
		return d.exact.Decode(data, defaults, into)
	case into != nil:
		kinds, _, err := d.scheme.ObjectKinds(into)
		if err != nil {
			return d.exact.Decode(data, defaults, into)
		}
		kind = kinds[0]
	}
	o, _, err := d.told.Decode(data, &kind, into)
	if err == nil && o.GetObjectKind().GroupVersionKind() == kind {
		o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // as runtime.WithoutVersionDecoder does
		return o, &kind, nil
	}
	if into != nil { // something of it may have been filled in
		reflect.ValueOf(into).Elem().SetZero()
	}
	return d.exact.Decode(data, defaults, into)
}

// events decodes the envelopes of watches without looking into them.
type events struct{ runtime.Serializer }

// Decode implements runtime.Decoder.
func (e *events) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if event, ok := into.(*metav1.WatchEvent); ok && open(data, event) {
		return event, nil, nil
	}
	return e.Serializer.Decode(data, defaults, into)
}
