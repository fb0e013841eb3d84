package write

import (
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tkestack.io/tapp/process/parallel"
)

// MayAdopt reads the adopter live: a cache that is behind could have us adopt objects
// for one that is gone already, and the garbage collector would delete them. The error
// is ErrStale if the object with this UID is gone or being deleted.
func MayAdopt[T metav1.Object](kind string, uid types.UID, get func() (T, error)) error {
	now, err := get()
	switch {
	case apierrors.IsNotFound(err) || err == nil && now.GetUID() != uid:
		return fmt.Errorf("%w: the %s is gone", ErrStale, kind)
	case err != nil:
		return fmt.Errorf("reading the %s live: %w", kind, err)
	case now.GetDeletionTimestamp() != nil:
		return fmt.Errorf("%w: the %s is being deleted", ErrStale, kind)
	}
	return nil
}

// Once is f made once, when it is first wanted, for all who ask. It is not
// sync.OnceValue, which holds a lock for as long as f takes: in a test with virtual
// time that stands still while anybody waits for a lock.
func Once(f func() error) func() error {
	var start sync.Once
	var err error
	var made parallel.Group
	return func() error {
		start.Do(func() { made.Do(func() { err = f() }) })
		made.Wait()
		return err
	}
}
