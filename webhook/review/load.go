package review

import (
	"errors"
	"io"
	"net/http"
	"sync"
)

// Load is what all reviews under way take together, and the most that they may. Who
// calls is not known without a client certificate, and one caller must not have the
// process take more memory than it has. A review beyond the bounds is answered with
// 429, and the API server tries it again a second later, within its timeout.
type Load struct {
	// Reviews is how many may be under way; a body that is still being read counts by
	// its bytes only, so that slow callers take nobody's place.
	Reviews int
	// Bytes of bodies that may be held.
	Bytes int64

	mu      sync.Mutex
	reviews int
	bytes   int64
}

var errBusy = errors.New("too many reviews are under way; try again")

// Bound has the handler's requests count.
func (l *Load) Bound(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := &countedBody{ReadCloser: r.Body, load: l}
		defer body.release()
		r.Body = body
		next.ServeHTTP(w, r)
	})
}

// take bytes and a review, or neither.
func (l *Load) take(bytes int64, reviews int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bytes+bytes > l.Bytes || l.reviews+reviews > l.Reviews {
		return false
	}
	l.bytes += bytes
	l.reviews += reviews
	return true
}

// countedBody counts what is read, and at its end the review.
type countedBody struct {
	io.ReadCloser
	load    *Load
	bytes   int64
	reviews int
}

// Read fails with errBusy beyond the bounds.
func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	reviews := 0
	if errors.Is(err, io.EOF) && b.reviews == 0 {
		reviews = 1
	}
	if !b.load.take(int64(n), reviews) {
		return 0, errBusy
	}
	b.bytes += int64(n)
	b.reviews += reviews
	return n, err
}

func (b *countedBody) release() { b.load.take(-b.bytes, -b.reviews) }
