package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/revision"
)

// Stored is a stored version of the templates.
type Stored struct {
	*appsv1.ControllerRevision
	Version revision.Version
}

// StoredOf a TApp among the revisions of its namespace, the oldest first.
func StoredOf(t *tappv1.TApp, revisions []appsv1.ControllerRevision) ([]Stored, error) {
	var out []Stored
	for i := range revisions {
		r := &revisions[i]
		if !metav1.IsControlledBy(r, t) {
			continue
		}
		version, err := revision.Read(r)
		if err != nil {
			return nil, err
		}
		out = append(out, Stored{r, version})
	}
	slices.SortFunc(out, func(a, b Stored) int { return cmp.Compare(a.Revision, b.Revision) })
	return out, nil
}

// Revision is what is told of a stored version.
type Revision struct {
	Revision int64       `json:"revision"`
	Name     string      `json:"name"`
	Created  metav1.Time `json:"created"`
	// Current: the last one whose rollout ended. Update: that of the present spec.
	Current bool `json:"current"`
	Update  bool `json:"update"`
	// Change from the version before it, in words; of the first one: its images.
	Change string `json:"change"`
}

// History of a TApp, the oldest version first.
func History(t *tappv1.TApp, stored []Stored) ([]Revision, error) {
	out := make([]Revision, len(stored))
	for i, r := range stored {
		out[i] = Revision{Revision: r.Revision, Name: r.Name, Created: r.CreationTimestamp,
			Current: r.Name == t.Status.CurrentRevision, Update: r.Name == t.Status.UpdateRevision, Change: ImagesOf(r.Version)}
		if i == 0 {
			continue
		}
		var err error
		if out[i].Change, err = Summary(stored[i-1].Version, r.Version); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// maxChanges is the most changes that a summary lists.
const maxChanges = 3

// Summary of the differences between two versions.
func Summary(from, to revision.Version) (string, error) {
	changes, err := Changes("", from, to)
	if err != nil {
		return "", err
	}
	return InWords(changes), nil
}

// InWords are the first few changes, and how many more there are.
func InWords(changes []FieldChange) string {
	var out []string
	for _, c := range changes {
		if len(out) == maxChanges {
			out = append(out, fmt.Sprintf("%d more", len(changes)-maxChanges))
			break
		}
		out = append(out, c.Short())
	}
	if len(out) == 0 {
		return "nothing"
	}
	return strings.Join(out, "; ")
}

// Short is a change with its values, if they are short.
func (c FieldChange) Short() string {
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

// ImagesOf a version: what is told of the first one, which has none to compare it with.
func ImagesOf(v revision.Version) string {
	var out []string
	for _, c := range v.Template.Spec.Containers {
		out = append(out, c.Name+" runs "+c.Image)
	}
	return strings.Join(out, ", ")
}
