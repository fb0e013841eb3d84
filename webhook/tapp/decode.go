package tapp

import (
	"bytes"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	kjson "k8s.io/apimachinery/pkg/util/json"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/process/parallel"
	"tkestack.io/tapp/webhook/review"
)

// piece is a template of a pool.
type piece[T any] struct {
	text  []byte
	value T
	err   error
}

func (p *piece[T]) decode() { p.err = kjson.Unmarshal(p.text, &p.value) }

// inPieces decodes the rest of a review and the templates concurrently.
func inPieces[R, T any](rest []byte, templates []*piece[T]) (r *review.Request[R], err error) {
	var all parallel.Group
	all.Do(func() { r, err = review.Decode[R](rest) })
	all.Each(len(templates), func(i int) { templates[i].decode() })
	all.Wait()
	for _, p := range templates {
		if err == nil {
			err = p.err
		}
	}
	return r, err
}

// piecesOf makes a piece of each text.
func piecesOf[T any](texts map[string][]byte) (named map[string]*piece[T], all []*piece[T]) {
	named = make(map[string]*piece[T], len(texts))
	for name, text := range texts {
		named[name] = &piece[T]{text: text}
		all = append(all, named[name])
	}
	return named, all
}

// DecodeTApps is review.Decode for /validate/tapp. A template that an update leaves
// alone is decoded once, and both TApps share what it points to.
func DecodeTApps(body []byte) (*review.Request[*tappv1.TApp], error) {
	cut, ok := cut(body)
	if !ok {
		return review.Decode[*tappv1.TApp](body)
	}
	now, all := piecesOf[corev1.PodTemplateSpec](cut.now)
	was := make(map[string]*piece[corev1.PodTemplateSpec], len(cut.was))
	for name, text := range cut.was {
		if p := now[name]; p != nil && bytes.Equal(p.text, text) {
			was[name] = p
			continue
		}
		was[name] = &piece[corev1.PodTemplateSpec]{text: text}
		all = append(all, was[name])
	}
	r, err := inPieces[*tappv1.TApp](cut.rest, all)
	if err != nil {
		return review.Decode[*tappv1.TApp](body) // whose error tells of the whole
	}
	for name, p := range now {
		r.Object.Spec.TemplatePool[name] = p.value
	}
	for name, p := range was {
		r.OldObject.Spec.TemplatePool[name] = p.value
	}
	return r, nil
}

// DecodeTrees is review.Decode for /mutate/tapp. The templates of the old object are
// only compared: an equal one is taken from the object, and after the first
// difference the others are not decoded. To decode them all took 15 % longer.
func DecodeTrees(body []byte) (*review.Request[map[string]any], error) {
	cut, ok := cut(body)
	if !ok {
		return review.Decode[map[string]any](body)
	}
	now, all := piecesOf[any](cut.now)
	r, err := inPieces[map[string]any](cut.rest, all)
	if err != nil {
		return review.Decode[map[string]any](body) // whose error tells of the whole
	}
	object, old := tree{root: r.Object}, tree{root: r.OldObject}
	pool := object.object("spec", fieldPool)
	for name, p := range now {
		pool[name] = p.value
	}
	changed := false
	pool = old.object("spec", fieldPool)
	for name, text := range cut.was {
		p := now[name]
		switch {
		case p != nil && bytes.Equal(text, p.text):
			pool[name] = p.value
		case !changed:
			stored := piece[any]{text: text}
			if stored.decode(); stored.err != nil {
				return review.Decode[map[string]any](body)
			}
			pool[name] = stored.value
			changed = p == nil || !reflect.DeepEqual(stored.value, p.value)
		}
	}
	return r, nil
}
