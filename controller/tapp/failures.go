package tapp

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/controller/write"
	plan "tkestack.io/tapp/plan/tapp"
)

// errStale is what a write returns that came too late: the object has gone, or
// is another one by now. That is no fault: the next plan will see it.
var errStale = errors.New("the view was stale")

// staleOr makes errStale of an error that says that what was to be changed has
// gone, or is another one by now.
func staleOr(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) || write.IsOtherUID(err) {
		return fmt.Errorf("%w: %s", errStale, err.Error())
	}
	return err
}

// reach says how many writes an error concerns.
type reach int

const (
	// reachNone: no error, or none of its own.
	reachNone reach = iota
	// reachOne: only the object that was written.
	reachOne
	// reachSome: perhaps all writes of the class; after a few in a row it is all.
	reachSome
	// reachClass: all writes of the class, such as a quota's, or of a namespace that
	// is being deleted.
	reachClass
	// reachAll: all writes, such as an API server that is away.
	reachAll
)

func reachOf(err error) reach {
	switch {
	case terminates(err):
		return reachClass // nothing more will be created there
	case err == nil, errors.Is(err, errStale):
		return reachNone
	case write.IsTransient(err):
		return reachAll
	case apierrors.IsForbidden(err) && !strings.Contains(err.Error(), "admission webhook"):
		return reachClass // a quota, a policy of the namespace, or a permission that we lack
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return reachSome
	}
	return reachOne
}

// words of an error for people: the API server's own, with the instance's name
// replaced, so that the same fault of 1,000 instances reads the same.
func words(err error, object string) string {
	var status apierrors.APIStatus
	var request *url.Error
	text := err.Error()
	if errors.As(err, &request) {
		text = request.Err.Error() // without the address, which has the name in it
	}
	if errors.As(err, &status) && status.Status().Reason != metav1.StatusReasonUnknown {
		text = status.Status().Message
	}
	if object == "" {
		return text
	}
	s, _ := stem(object)
	return strings.ReplaceAll(text, `"`+object+`"`, `"`+s+`-<id>"`)
}

// mostCauses is how many different errors of one sync are told.
const mostCauses = 5

// failures collects the errors of a sync: 1,000 equal ones become one with the
// ids in ranges.
type failures struct {
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

// add notes an error; doing says what failed, object is the name that the error
// may contain.
func (f *failures) add(doing, object string, err error) {
	f.addFor(doing, object, "", err)
}

func (f *failures) addFor(doing, object, id string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	text := words(err, object)
	for _, c := range f.causes {
		if c.doing == doing && c.text == text {
			c.note(id)
			return
		}
	}
	if len(f.causes) == mostCauses {
		f.others++
		return
	}
	c := &cause{doing: doing, text: text, err: err}
	c.note(id)
	f.causes = append(f.causes, c)
}

func (c *cause) note(id string) {
	if id != "" {
		c.ids = append(c.ids, number(id))
	}
}

// join returns all errors as one, or nil.
func (f *failures) join() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	for _, c := range f.causes {
		err := c.err
		switch {
		case len(c.ids) > 0:
			err = fmt.Errorf("cannot %s %s: %w", c.doing, instances(c.ids), c.err)
		case c.doing != "":
			err = fmt.Errorf("cannot %s: %w", c.doing, c.err)
		}
		errs = append(errs, err)
	}
	if f.others > 0 {
		errs = append(errs, fmt.Errorf("and %d other errors", f.others))
	}
	return errors.Join(errs...)
}

// instances names instances for people.
func instances(ids []int) string {
	ids = sortedUnique(ids)
	if len(ids) == 1 {
		return "instance " + plan.Ranges(ids)
	}
	return "instances " + plan.Ranges(ids)
}
