package ownership

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// tries to give fields back, each at the version that was read last.
const tries = 5

// Write is how one object is written.
type Write[T metav1.Object] struct {
	// Manager that writes.
	Manager string
	// Adopt names the fields of the spec whose new parts go to who declares some of them.
	Adopt []string
	// Maps names the fields of the spec that are maps of which single entries are written.
	Maps []string
	// DryRun: nothing is changed.
	DryRun bool
	// Patch asks the server for a patch; in a dry run it changes nothing.
	Patch func(ctx context.Context, kind types.PatchType, patch []byte, dryRun bool) (T, error)
	// Get reads the object again.
	Get func(ctx context.Context) (T, error)
	// Tell what users have to know.
	Tell func(note string)
}

// Do patches an object that was read before. Before it writes, it tells who sets the fields
// back. After it, who declared them has them again, with their new values.
func (w *Write[T]) Do(ctx context.Context, before T, kind types.PatchType, patch []byte) (T, error) {
	was := before.GetManagedFields()
	if !hasOthers(was, w.Manager) && !w.DryRun {
		return w.Patch(ctx, kind, patch, false)
	}
	after, err := w.Patch(ctx, kind, patch, true)
	if err != nil {
		return after, err
	}
	taken, unread := Compare(was, after.GetManagedFields(), w.Manager, w.Adopt)
	w.tell(was, taken, unread)
	if w.DryRun {
		return after, nil
	}
	if after, err = w.Patch(ctx, kind, patch, false); err != nil || unread != nil {
		return after, err
	}
	if taken, err = Compare(was, after.GetManagedFields(), w.Manager, w.Adopt); err == nil {
		after, err = w.giveBack(ctx, after, taken)
	}
	if err != nil {
		w.Tell(fmt.Sprintf("Note: it is written, and %s owns the fields now, because they could not be given back: %v. The next apply of them is a conflict, unless it is forced, as by helm upgrade --force-conflicts.", w.Manager, err))
	}
	return after, nil
}

func (w *Write[T]) tell(before Entries, taken *Taken, unread error) {
	if unread != nil {
		w.Tell(fmt.Sprintf("Note: who owns the fields cannot be told: %v. If somebody applies them, the next apply is a conflict with %s, unless it is forced, as by helm upgrade --force-conflicts.", unread, w.Manager))
		return
	}
	for _, note := range taken.Notes() {
		w.Tell(note)
	}
	if note := NoteOfFlux(before, w.Manager); note != "" {
		w.Tell(note)
	}
}

// giveBack the fields. Where the object changes meanwhile, it is read again: who has got a
// field since keeps it.
func (w *Write[T]) giveBack(ctx context.Context, now T, taken *Taken) (T, error) {
	for try := 1; ; try++ {
		entries, err := taken.Return(now.GetManagedFields(), w.Manager, w.Maps)
		if err != nil || entries == nil {
			return now, err
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"uid": now.GetUID(), "resourceVersion": now.GetResourceVersion(), "managedFields": entries,
		}})
		if err != nil {
			return now, fmt.Errorf("writing a patch: %w", err)
		}
		after, err := w.Patch(ctx, types.MergePatchType, patch, false)
		if err == nil {
			return after, nil
		}
		if !apierrors.IsConflict(err) || try == tries {
			return now, err
		}
		again, err := w.Get(ctx)
		if err != nil || again.GetUID() != now.GetUID() {
			return now, err
		}
		now = again
	}
}

// hasOthers says whether somebody else has written fields of the object itself.
func hasOthers(entries Entries, manager string) bool {
	for _, e := range entries {
		if e.Subresource == "" && (e.Manager != manager || e.Operation == metav1.ManagedFieldsOperationApply) {
			return true
		}
	}
	return false
}
