package sim

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
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
	s.end()
	return nil
}

func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		close(s.ready)
	}
}

func (s *stream) isOpen() bool {
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

// watching is an open watch.
type watching struct {
	*stream
	server   *apiServer
	replica  *replica
	resource string
	selector labels.Selector
	media    string
	// told is the version that the client knows of.
	told int64
}

// key sorts watches.
func (w *watching) key() string { return w.replica.name + " " + w.resource }

// serveWatch opens a watch. Versions before oldest are forgotten.
func (s *apiServer) serveWatch(r *request, oldest int64) (*watching, *answer) {
	selector, err := labels.Parse(r.query.Get("labelSelector"))
	if err != nil {
		return nil, refusal(s.invalid(r.resource, "", "labelSelector", err.Error()))
	}
	w := &watching{server: s, replica: r.replica, resource: r.resource, selector: selector, media: mediaOf(r.resource, r.accept)}
	asked, initial := r.query.Get("resourceVersion"), r.query.Get("sendInitialEvents") == "true"
	from, _ := strconv.ParseInt(asked, 10, 64)
	switch {
	case initial:
		w.told = s.version
	case asked == "" || asked == "0":
		w.told = s.version
	case from < oldest:
		return nil, refusal(apierrors.NewResourceExpired("too old resource version: " + asked))
	default:
		w.told = from
	}
	w.stream = newStream(r.http.Context())
	media := w.media
	if media == inProtobuf {
		media += ";stream=watch"
	}
	if initial {
		w.sendInitial()
	}
	return w, &answer{status: http.StatusOK, media: media, stream: w.stream}
}

// sendInitial sends what there is, and the bookmark that says that this was all.
func (w *watching) sendInitial() {
	t := w.server.tables[w.resource]
	for _, name := range t.names() {
		o := t.objects[name]
		if w.selector.Matches(labels.Set(o.GetLabels())) {
			w.sendObject(apiwatch.Added, o)
		}
	}
	w.bookmark(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
}

func (w *watching) bookmark(annotations map[string]string) {
	o := w.server.kinds[w.resource].newOne()
	o.GetObjectKind().SetGroupVersionKind(w.server.kinds[w.resource].gvk)
	o.SetResourceVersion(strconv.FormatInt(w.told, 10))
	o.SetAnnotations(annotations)
	w.sendObject(apiwatch.Bookmark, o)
}

func (w *watching) sendObject(kind apiwatch.EventType, o object) {
	frame, err := w.frame(kind, o)
	if err != nil {
		w.end()
		return
	}
	w.send(frame)
}

// frame is an event as the client gets it.
func (w *watching) frame(kind apiwatch.EventType, o object) ([]byte, error) {
	body, err := encode(o, w.server.kinds[w.resource].gvk, w.media)
	if err != nil {
		return nil, err
	}
	return encodeEvent(string(kind), body, w.media)
}

// pending are the changes that the client has not been told of.
func (w *watching) pending() []*change {
	return w.server.tables[w.resource].since(w.told)
}

// next tells the client of one change.
func (w *watching) next() {
	list := w.pending()
	if len(list) == 0 {
		return
	}
	c := list[0]
	w.told = c.version
	kind, ok := w.kindOf(c)
	if !ok {
		return
	}
	id := string(kind) + w.media
	frame, cached := c.wire[id]
	if !cached {
		var err error
		if frame, err = w.frame(kind, c.object()); err != nil {
			w.end()
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
func (w *watching) kindOf(c *change) (apiwatch.EventType, bool) {
	was := c.before != nil && w.selector.Matches(labels.Set(c.before.GetLabels()))
	is := c.after != nil && w.selector.Matches(labels.Set(c.after.GetLabels()))
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

// expire tells the client that it is too far behind to go on.
func (w *watching) expire() {
	s := apierrors.NewResourceExpired("too old resource version").Status()
	s.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	body, err := encode(runtime.Object(&s), metav1.SchemeGroupVersion.WithKind("Status"), w.media)
	if err == nil {
		body, err = encodeEvent(string(apiwatch.Error), body, w.media)
	}
	if err == nil {
		w.send(body)
	}
	w.end()
}
