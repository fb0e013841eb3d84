package fleet

import (
	"bytes"
	"encoding/binary"
	"maps"
	"reflect"
	"slices"
	"time"
)

// delta is what an object has otherwise than another one of its type, its model. It follows the fields of the type, so that
// none can be forgotten:
//
//	struct        the number of a field that differs, from 1, and its delta; the next one; 0
//	slice         so with its elements; there are as many as in the model
//	map           so with the values of a map of strings, in the order of its keys, which are the model's
//	pointer       what became of it, and the delta of what it points to
//	string        its length and its bytes
//	int, time     the number; seconds and nanoseconds
//	bool          nothing: it is the other one
//
// What is not among these has to be equal.
type delta []byte

// relation of an object to its model.
type relation int

const (
	unlike relation = iota // no delta tells it
	same
	differs
)

// What became of a pointer.
const (
	pointsNowhere = iota
	pointsToZero
	pointsToNew // zero but for a delta
	pointsToOther
)

// add what o has otherwise than the model; nothing, if it is the same.
func (d *delta) add(model, o reflect.Value) relation {
	switch model.Kind() {
	case reflect.Struct:
		return d.addStruct(model, o)
	case reflect.Slice:
		switch {
		case model.Len() != o.Len() || model.IsNil() != o.IsNil():
			return unlike
		case model.UnsafePointer() == o.UnsafePointer():
			return same
		case model.Type().Elem().Kind() == reflect.Uint8:
			return sameIf(bytes.Equal(model.Bytes(), o.Bytes()))
		}
		return d.addMembers(model.Len(), func(i int) (reflect.Value, reflect.Value) { return model.Index(i), o.Index(i) })
	case reflect.Map:
		return d.addMap(model, o)
	case reflect.Pointer:
		return d.addPointer(model, o)
	case reflect.String:
		if model.String() == o.String() {
			return same
		}
		*d = append(binary.AppendUvarint(*d, uint64(o.Len())), o.String()...)
		return differs
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if model.Int() == o.Int() {
			return same
		}
		*d = binary.AppendVarint(*d, o.Int())
		return differs
	case reflect.Bool:
		if model.Bool() == o.Bool() {
			return same
		}
		return differs
	default:
		return sameIf(reflect.DeepEqual(model.Interface(), o.Interface()))
	}
}

func sameIf(equal bool) relation {
	if equal {
		return same
	}
	return unlike
}

// addMembers of a struct, slice or map.
func (d *delta) addMembers(n int, member func(i int) (model, o reflect.Value)) relation {
	began := len(*d)
	for i := range n {
		mark := len(*d)
		*d = binary.AppendUvarint(*d, uint64(i)+1)
		switch d.add(member(i)) {
		case unlike:
			return unlike
		case same:
			*d = (*d)[:mark]
		}
	}
	if len(*d) == began {
		return same
	}
	*d = append(*d, 0)
	return differs
}

func (d *delta) addStruct(model, o reflect.Value) relation {
	if model.Type() == reflect.TypeFor[time.Time]() {
		return d.addTime(model, o)
	}
	for i := range model.NumField() {
		if !model.Field(i).CanInterface() { // nobody could set it
			return sameIf(reflect.DeepEqual(model.Interface(), o.Interface()))
		}
	}
	return d.addMembers(model.NumField(), func(i int) (reflect.Value, reflect.Value) { return model.Field(i), o.Field(i) })
}

// addTime takes times as they are decoded: local ones.
func (d *delta) addTime(model, o reflect.Value) relation {
	now, ok := o.Interface().(time.Time)
	switch {
	case model.Equal(o):
		return same
	case !ok || !reflect.ValueOf(time.Unix(now.Unix(), int64(now.Nanosecond()))).Equal(o):
		return unlike
	}
	*d = binary.AppendVarint(binary.AppendVarint(*d, now.Unix()), int64(now.Nanosecond()))
	return differs
}

func (d *delta) addMap(model, o reflect.Value) relation {
	before, isText := model.Interface().(map[string]string)
	now, areTexts := o.Interface().(map[string]string)
	if !isText || !areTexts {
		return sameIf(reflect.DeepEqual(model.Interface(), o.Interface()))
	}
	keys := slices.Sorted(maps.Keys(before))
	if (before == nil) != (now == nil) || !slices.Equal(keys, slices.Sorted(maps.Keys(now))) {
		return unlike
	}
	return d.addMembers(len(keys), func(i int) (reflect.Value, reflect.Value) {
		return reflect.ValueOf(before[keys[i]]), reflect.ValueOf(now[keys[i]])
	})
}

func (d *delta) addPointer(model, o reflect.Value) relation {
	switch {
	case model.UnsafePointer() == o.UnsafePointer():
		return same
	case o.IsNil():
		*d = append(*d, pointsNowhere)
		return differs
	}
	mark, kind, before := len(*d), byte(pointsToOther), model.Elem()
	if model.IsNil() {
		kind, before = pointsToNew, reflect.Zero(model.Type().Elem())
	}
	*d = append(*d, kind)
	found := d.add(before, o.Elem())
	switch {
	case found != same:
		return found
	case kind == pointsToNew:
		(*d)[mark] = pointsToZero
		return differs
	}
	*d = (*d)[:mark]
	return same
}

// reader makes an object of its model and a delta. What is equal in both is there once, and what is not is the object's own.
type reader struct {
	delta string // what is left of it
}

// apply the delta to what is the model's still.
func (r *reader) apply(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			seconds := r.number()
			v.Set(reflect.ValueOf(time.Unix(seconds, r.number())))
			return
		}
		r.members(func(i int) { r.apply(v.Field(i)) })
	case reflect.Slice:
		own := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(own, v)
		v.Set(own)
		r.members(func(i int) { r.apply(own.Index(i)) })
	case reflect.Map:
		model, _ := v.Interface().(map[string]string)
		own, keys := maps.Clone(model), slices.Sorted(maps.Keys(model))
		r.members(func(i int) { own[keys[i]] = r.text() })
		v.Set(reflect.ValueOf(own))
	case reflect.Pointer:
		r.point(v)
	case reflect.String:
		v.SetString(r.text())
	case reflect.Bool:
		v.SetBool(!v.Bool())
	default:
		v.SetInt(r.number())
	}
}

func (r *reader) members(each func(i int)) {
	for i := r.size(); i > 0; i = r.size() {
		each(i - 1)
	}
}

func (r *reader) point(v reflect.Value) {
	own := reflect.New(v.Type().Elem())
	switch r.size() {
	case pointsNowhere:
		v.SetZero()
		return
	case pointsToNew:
		r.apply(own.Elem())
	case pointsToOther:
		own.Elem().Set(v.Elem())
		r.apply(own.Elem())
	}
	v.Set(own)
}

// size is a number that is not negative.
func (r *reader) size() int {
	n, read := binary.Uvarint(r.head())
	r.delta = r.delta[read:]
	return int(n)
}

func (r *reader) number() int64 {
	n, read := binary.Varint(r.head())
	r.delta = r.delta[read:]
	return n
}

// head has the next number.
func (r *reader) head() []byte { return []byte(r.delta[:min(len(r.delta), binary.MaxVarintLen64)]) }

// text is a piece of the delta itself.
func (r *reader) text() string {
	n := r.size()
	text := r.delta[:n]
	r.delta = r.delta[n:]
	return text
}
