package client

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// brackets finds the end of a JSON object that comes in pieces. It does not check it: who decodes it does.
type brackets struct {
	open            int
	quoted, escaped bool
}

// end is how many bytes of a piece belong to the object, and whether it ends there.
func (b *brackets) end(piece []byte) (n int, ended bool) {
	for i, c := range piece {
		switch {
		case b.escaped:
			b.escaped = false
		case c == '"':
			b.quoted = !b.quoted
		case b.quoted:
			b.escaped = c == '\\'
		case c == '{':
			b.open++
		case c == '}':
			if b.open--; b.open <= 0 {
				return i + 1, true
			}
		}
	}
	return len(piece), false
}

const blanks = " \t\r\n"

// framer has a watch's events found one by one in what the server sends.
type framer struct{ runtime.Framer }

// NewFrameReader implements runtime.Framer.
func (framer) NewFrameReader(r io.ReadCloser) io.ReadCloser { return &frames{ReadCloser: r} }

// frames are the JSON objects of a stream.
type frames struct {
	io.ReadCloser
	// buffer is small: each watch keeps one, hundreds in a fleet.
	buffer [512]byte
	rest   []byte // of the buffer
	failed error  // why nothing comes after the rest
	within bool   // an object has begun
	object brackets
}

// Read the next object, or as much of it as there is room for: io.ErrShortBuffer says that it goes on.
func (f *frames) Read(into []byte) (n int, err error) {
	for n < len(into) {
		if !f.within {
			f.rest = bytes.TrimLeft(f.rest, blanks)
		}
		if len(f.rest) == 0 {
			if f.failed != nil {
				return n, f.ending()
			}
			var got int
			got, f.failed = f.ReadCloser.Read(f.buffer[:])
			f.rest = f.buffer[:got]
			continue
		}
		if !f.within {
			if f.rest[0] != '{' {
				return n, fmt.Errorf("an event begins with %q, and not as a JSON object does", f.rest[0])
			}
			f.within, f.object = true, brackets{}
		}
		piece := f.rest[:min(len(f.rest), len(into)-n)]
		took, ended := f.object.end(piece)
		n += copy(into[n:], piece[:took])
		f.rest = f.rest[took:]
		if ended {
			f.within = false
			return n, nil
		}
	}
	return n, io.ErrShortBuffer
}

// ending is why the stream ends.
func (f *frames) ending() error {
	if f.within && errors.Is(f.failed, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return f.failed
}

// open a watch's event that is written as API servers do, and false: it is not.
func open(data []byte, event *metav1.WatchEvent) bool {
	const before, between, after = `{"type":"`, `","object":`, "}"
	rest, ok := bytes.CutPrefix(data, []byte(before))
	if !ok {
		return false
	}
	kind, rest, ok := bytes.Cut(rest, []byte(between))
	if !ok || bytes.ContainsAny(kind, `"\`) || len(rest) == 0 || rest[0] != '{' {
		return false
	}
	var object brackets
	end, ended := object.end(rest)
	if !ended || string(bytes.TrimRight(rest[end:], blanks)) != after {
		return false
	}
	event.Type, event.Object.Raw = string(kind), rest[:end]
	return true
}
