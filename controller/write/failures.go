package write

import (
	"errors"
	"fmt"
	"slices"
	"sync"
)

// maxCauses is how many different errors of one sync are told.
const maxCauses = 5

// Failures collects the errors of a sync: 1,000 equal ones become one with the
// ids in ranges. The zero value has none.
type Failures struct {
	// Names names objects by their ids for people, such as "instances 0-3".
	Names func(ids []int) string

	mu     sync.Mutex
	causes []*cause
	others int
}

type cause struct {
	doing string
	text  string
	err   error
	ids   []int
}

// Add notes an error. doing says what failed; errors with the same text are the same.
func (f *Failures) Add(doing, text string, err error, ids ...int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.causes, func(c *cause) bool { return c.doing == doing && c.text == text })
	switch {
	case i >= 0:
		f.causes[i].ids = append(f.causes[i].ids, ids...)
	case len(f.causes) == maxCauses:
		f.others++
	default:
		f.causes = append(f.causes, &cause{doing: doing, text: text, err: err, ids: ids})
	}
}

// Join returns all errors as one, or nil.
func (f *Failures) Join() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	for _, c := range f.causes {
		if len(c.ids) > 0 && f.Names != nil {
			errs = append(errs, fmt.Errorf("cannot %s %s: %w", c.doing, f.Names(c.ids), c.err))
		} else {
			errs = append(errs, fmt.Errorf("cannot %s: %w", c.doing, c.err))
		}
	}
	if f.others > 0 {
		errs = append(errs, fmt.Errorf("and %d other errors", f.others))
	}
	return errors.Join(errs...)
}
