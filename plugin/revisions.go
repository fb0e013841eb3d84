package plugin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
)

// revision is a stored version of the templates.
type revision struct {
	*appsv1.ControllerRevision
	version plan.Version
}

// revisions of a TApp, the oldest first.
func (s *session) revisions(ctx context.Context, t *tappv1.TApp) ([]revision, error) {
	list, err := s.apps.ControllerRevisions(t.Namespace).List(ctx, metav1.ListOptions{LabelSelector: tappv1.LabelTApp + "=" + t.Name})
	if err != nil {
		return nil, fmt.Errorf("listing revisions: %w", err)
	}
	var out []revision
	for i := range list.Items {
		r := &list.Items[i]
		if !metav1.IsControlledBy(r, t) {
			continue
		}
		version, err := plan.ReadRevision(r)
		if err != nil {
			return nil, err
		}
		out = append(out, revision{r, version})
	}
	slices.SortFunc(out, func(a, b revision) int { return cmp.Compare(a.Revision, b.Revision) })
	return out, nil
}

// find a revision by its name or its number.
func find(t *tappv1.TApp, revisions []revision, nameOrNumber string) (*revision, error) {
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
func verify(r *revision) error {
	hash, err := r.version.Hash()
	if err != nil {
		return fmt.Errorf("revision %s cannot be verified: %w", r.Name, err)
	}
	if !strings.HasSuffix(r.Name, "-"+hash) {
		return fmt.Errorf("revision %d (%s) does not hold what its name says: its content has the hash %s, so that it was not written by the controller, or was changed", r.Revision, r.Name, hash)
	}
	return nil
}

// maxChanges is the most changes that a summary lists.
const maxChanges = 3

// summary of the differences between two versions.
func summary(from, to plan.Version) (string, error) {
	changes, err := fieldChanges("", from, to)
	if err != nil {
		return "", err
	}
	var out []string
	for _, c := range changes {
		if len(out) == maxChanges {
			out = append(out, fmt.Sprintf("%d more", len(changes)-maxChanges))
			break
		}
		out = append(out, short(c))
	}
	if len(out) == 0 {
		return "nothing", nil
	}
	return strings.Join(out, "; "), nil
}

// short is a change with its values, if they are short.
func short(c fieldChange) string {
	const limit = 60
	switch {
	case c.From == nil && len(c.To) > limit:
		return c.Path + " is new"
	case c.To == nil && len(c.From) > limit:
		return c.Path + " is gone"
	case len(c.From) > limit || len(c.To) > limit:
		return c.Path + " differs"
	}
	return c.String()
}

// imagesOf a version: what is told of the first one, which has none to compare it with.
func imagesOf(v plan.Version) string {
	var out []string
	for _, c := range v.Template.Spec.Containers {
		out = append(out, c.Name+" runs "+c.Image)
	}
	return strings.Join(out, ", ")
}
