package apiserver

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// Media types.
const (
	inJSON     = runtime.ContentTypeJSON
	inProtobuf = runtime.ContentTypeProtobuf
)

// mediaOf an answer: protobuf where it is asked for and spoken. Who asks for metadata alone
// gets all of it, in JSON.
func mediaOf(k Kind, accept string) string {
	if !k.Custom && strings.Contains(accept, inProtobuf) && !strings.Contains(accept, "as=Partial") {
		return inProtobuf
	}
	return inJSON
}

// Assign copies what from points to into what to points to.
func Assign(to, from Object) error {
	a, b := reflect.ValueOf(to), reflect.ValueOf(from)
	if a.Type() != b.Type() {
		return fmt.Errorf("%T is no %T", from, to)
	}
	a.Elem().Set(b.Elem())
	return nil
}

// encode an object of a kind.
func encode(o runtime.Object, gvk schema.GroupVersionKind, media string) ([]byte, error) {
	if media == inJSON {
		return json.Marshal(o)
	}
	m, ok := o.(interface{ Marshal() ([]byte, error) })
	if !ok {
		return nil, fmt.Errorf("%T does not speak protobuf", o)
	}
	raw, err := m.Marshal()
	if err != nil {
		return nil, err
	}
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind}, Raw: raw}
	body, err := envelope.Marshal()
	if err != nil {
		return nil, err
	}
	return append([]byte("k8s\x00"), body...), nil
}

// encodeEvent of a watch, in its frame.
func encodeEvent(kind string, o []byte, media string) ([]byte, error) {
	e := metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: o}}
	if media == inJSON {
		b, err := json.Marshal(e)
		return append(b, '\n'), err
	}
	b, err := e.Marshal()
	if err != nil {
		return nil, err
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...), nil
}

// Decode a body into a new object of the resource.
func (s *Server) Decode(resource string, body []byte) (Object, error) {
	k := s.kinds[resource]
	if k.Custom {
		o := k.New()
		return o, json.Unmarshal(body, o)
	}
	o, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return nil, err
	}
	out, ok := o.(Object)
	if !ok || reflect.TypeOf(out) != reflect.TypeOf(k.New()) {
		return nil, fmt.Errorf("%T is no %s", o, resource)
	}
	return out, nil
}

// DecodeDelete reads the options of a deletion.
func DecodeDelete(body []byte) (metav1.DeleteOptions, error) {
	var out metav1.DeleteOptions
	if len(body) == 0 {
		return out, nil
	}
	if body[0] == '{' {
		return out, json.Unmarshal(body, &out)
	}
	_, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, &out)
	return out, err
}

// list encodes objects as a list.
func (s *Server) list(resource string, objects []runtime.Object, version, media string) ([]byte, error) {
	k := s.kinds[resource]
	out := k.NewList()
	if err := meta.SetList(out, objects); err != nil {
		return nil, err
	}
	m, err := meta.ListAccessor(out)
	if err != nil {
		return nil, err
	}
	m.SetResourceVersion(version)
	gvk := k.GVK.GroupVersion().WithKind(k.GVK.Kind + "List")
	out.GetObjectKind().SetGroupVersionKind(gvk)
	return encode(out, gvk, media)
}
