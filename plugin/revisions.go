package plugin

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/view"
)

// revisions of a TApp, the oldest first.
func (s *session) revisions(ctx context.Context, t *tappv1.TApp) ([]view.Stored, error) {
	list, err := s.apps.ControllerRevisions(t.Namespace).List(ctx, metav1.ListOptions{LabelSelector: tappv1.LabelTApp + "=" + t.Name})
	if err != nil {
		return nil, fmt.Errorf("listing revisions: %w", err)
	}
	return view.StoredOf(t, list.Items)
}

// find a revision by its name or its number.
func find(t *tappv1.TApp, revisions []view.Stored, nameOrNumber string) (*view.Stored, error) {
	numbers := make([]string, len(revisions))
	for i := range revisions {
		numbers[i] = strconv.FormatInt(revisions[i].Revision, 10)
		if numbers[i] == nameOrNumber || revisions[i].Name == nameOrNumber {
			return &revisions[i], nil
		}
	}
	if len(numbers) == 0 {
		return nil, fmt.Errorf("%s has no revision yet", t.Name)
	}
	return nil, fmt.Errorf("%s has no revision %q: it has %s", t.Name, nameOrNumber, strings.Join(numbers, ", "))
}

// verify checks that a revision holds what its name says, the hash of its content: who may
// write revisions can make one up, and have whoever rolls back run it.
func verify(r *view.Stored) error {
	hash, err := r.Version.Hash()
	if err != nil {
		return fmt.Errorf("revision %s cannot be verified: %w", r.Name, err)
	}
	if !strings.HasSuffix(r.Name, "-"+hash) {
		return fmt.Errorf("revision %d (%s) does not hold what its name says: its content has the hash %s, so that it was not written by the controller, or was changed", r.Revision, r.Name, hash)
	}
	return nil
}
