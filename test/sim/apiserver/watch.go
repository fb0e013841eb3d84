package apiserver

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
)

// stream is the body of an answer to a watch. Reading waits for the next event.
type stream struct {
	ctx   context.Context
	ready chan []byte
	rest  []byte

	mu     sync.Mutex
	closed bool
}

// mostReady is how many frames may wait to be read.
const mostReady = 4096

func newStream(ctx context.Context) *stream {
	return &stream{ctx: ctx, ready: make(chan []byte, mostReady)}
}

func (s *stream) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		select {
		case <-s.ctx.Done():
			return 0, s.ctx.Err()
		case frame, ok := <-s.ready:
			if !ok {
				return 0, io.EOF
			}
			s.rest = frame
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// Close is what the client does.
func (s *stream) Close() error {
	s.End()
	return nil
}

// End of the stream.
func (s *stream) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		close(s.ready)
	}
}

// IsOpen says whether anybody reads it.
func (s *stream) IsOpen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.closed && s.ctx.Err() == nil
}

func (s *stream) send(frame []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.ready <- frame
	}
}

// Watch is an open watch.
type Watch struct {
	*stream
	Resource string
	// Told is the version that the client knows of.
	Told int64

	server   *Server
	selected selection
	media    string
}

// ServeWatch opens a watch. Versions before oldest are forgotten.
func (s *Server) ServeWatch(r *Request, oldest int64) (*Watch, *Answer) {
	k, known := s.kinds[r.Resource]
	if !known {
		return nil, Refusal(s.notFound(r.Resource, ""))
	}
	selected, err := s.selectionOf(r)
	if err != nil {
		return nil, Refusal(err)
	}
	w := &Watch{server: s, Resource: r.Resource, selected: selected, media: mediaOf(k, r.Accept)}
	asked, initial := r.Query.Get("resourceVersion"), r.Query.Get("sendInitialEvents") == "true"
	from, _ := strconv.ParseInt(asked, 10, 64)
	switch {
	case initial:
		w.Told = s.Version
	case asked == "" || asked == "0":
		w.Told = s.Version
	case from < oldest:
		return nil, Refusal(apierrors.NewResourceExpired("too old resource version: " + asked))
	default:
		w.Told = from
	}
	w.stream = newStream(r.Context)
	media := w.media
	if media == inProtobuf {
		media += ";stream=watch"
	}
	if initial {
		w.sendInitial()
	}
	return w, &Answer{Status: http.StatusOK, Media: media, stream: w.stream}
}

// sendInitial sends what there is, and the bookmark that says that this was all.
func (w *Watch) sendInitial() {
	t := w.server.Tables[w.Resource]
	for _, key := range t.Keys() {
		if o := t.Objects[key]; w.selected.has(o) {
			w.sendObject(apiwatch.Added, o)
		}
	}
	w.bookmark(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
}

// Bookmark tells the client of the version that it knows of.
func (w *Watch) Bookmark() { w.bookmark(nil) }

func (w *Watch) bookmark(annotations map[string]string) {
	k := w.server.kinds[w.Resource]
	o := k.New()
	o.GetObjectKind().SetGroupVersionKind(k.GVK)
	o.SetResourceVersion(strconv.FormatInt(w.Told, 10))
	o.SetAnnotations(annotations)
	w.sendObject(apiwatch.Bookmark, o)
}

func (w *Watch) sendObject(kind apiwatch.EventType, o Object) {
	frame, err := w.frame(kind, o)
	if err != nil {
		w.End()
		return
	}
	w.send(frame)
}

// frame is an event as the client gets it.
func (w *Watch) frame(kind apiwatch.EventType, o Object) ([]byte, error) {
	body, err := encode(o, w.server.kinds[w.Resource].GVK, w.media)
	if err != nil {
		return nil, err
	}
	return encodeEvent(string(kind), body, w.media)
}

// Pending are the changes that the client has not been told of.
func (w *Watch) Pending() []*Change {
	return w.server.Tables[w.Resource].Since(w.Told)
}

// Next tells the client of one change.
func (w *Watch) Next() {
	list := w.Pending()
	if len(list) == 0 {
		return
	}
	c := list[0]
	w.Told = c.Version
	kind, ok := w.kindOf(c)
	if !ok {
		return
	}
	id := string(kind) + w.media
	frame, cached := c.wire[id]
	if !cached {
		var err error
		if frame, err = w.frame(kind, c.Object()); err != nil {
			w.End()
			return
		}
		if c.wire == nil {
			c.wire = map[string][]byte{}
		}
		c.wire[id] = frame
	}
	w.send(frame)
}

// kindOf a change as the watch's selector makes it.
func (w *Watch) kindOf(c *Change) (apiwatch.EventType, bool) {
	was, is := w.selected.has(c.Before), w.selected.has(c.After)
	switch {
	case was && is:
		return apiwatch.Modified, true
	case is:
		return apiwatch.Added, true
	case was:
		return apiwatch.Deleted, true
	}
	return "", false
}

// Expire tells the client that it is too far behind to go on.
func (w *Watch) Expire() {
	s := apierrors.NewResourceExpired("too old resource version").Status()
	s.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	body, err := encode(runtime.Object(&s), metav1.SchemeGroupVersion.WithKind("Status"), w.media)
	if err == nil {
		body, err = encodeEvent(string(apiwatch.Error), body, w.media)
	}
	if err == nil {
		w.send(body)
	}
	w.End()
}
