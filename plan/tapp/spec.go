package tapp

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/ids"
	"tkestack.io/tapp/plan/problem"
	"tkestack.io/tapp/plan/refusal"
	"tkestack.io/tapp/plan/restart"
	"tkestack.io/tapp/plan/termination"
)

// MaxReplicas is the most instances that one TApp can have: with them, all in the state
// with the longest name, a TApp takes 1.1 MB of the 1.5 MiB that etcd takes by default. One
// with neverMigrate, or with a large spec, can have less: admission counts what is to be stored.
const MaxReplicas = 50_000

// Reasons of the condition Stalled: instances wait for lost nodes, and those of problems.
const (
	ReasonNodeLost         = "NodeLost"
	ReasonInvalidSpec      = "InvalidSpec"
	ReasonTemplateMissing  = "TemplateMissing"
	ReasonSelectorMismatch = "SelectorMismatch"
	ReasonInPlaceOnly      = "InPlaceOnly"
)

// spec is what the TApp asks for, as the steps work with it.
type spec struct {
	tapp   *tappv1.TApp // defaulted; only the spec is a copy
	stored *tappv1.TApp // as it was given
	policy Policy

	ids ids.Range
	// idsInvalid: the spec asks for ids that cannot be. Those that exist stay.
	idsInvalid bool
	selector   labels.Selector // nil: invalid
	// frozen is why no pod may be created or changed: the spec is invalid as a
	// whole. Stopped instances still go.
	frozen string
	// noCreationUntil: nothing may be created before, the namespace is terminating.
	noCreationUntil time.Time
	problems        []Problem
	terminating     termination.Claims // claims in use that are being deleted
	templates
	budgets
	restarts *restart.Judge
	// spread has the constraints of new pods.
	spread []corev1.TopologySpreadConstraint
	// triedInVain is what the API server refused in dry runs, with its words.
	triedInVain map[refusal.Key]string
	// openGate is the second write of every create.
	openGate []byte
	foresees bool // for a preview, to which orphans are adopted already
}

// readSpec turns the input's spec into what the steps work with, and notes its
// problems.
func readSpec(in Input) *spec {
	s := &spec{tapp: defaulted(in.TApp), stored: in.TApp, policy: in.Policy, noCreationUntil: in.NoCreationUntil, triedInVain: map[refusal.Key]string{}}
	s.readIDs()
	s.selector = s.readSelector()
	s.readTemplates()
	s.readBudgets()
	s.restarts = restart.NewJudge(&s.tapp.Spec.UpdateStrategy)
	s.spread = in.Policy.Spread.Constraints(&s.tapp.Spec)
	s.checkIDs()
	return s
}

// problem notes something that the controller cannot do.
func (s *spec) problem(of problem.Concern, reason, field, format string, args ...any) {
	s.problems = append(s.problems, problem.New(of, reason, field, format, args...))
}

// readIDs reads which ids there are to be. With some that cannot be the instances that
// exist are left as they are, see idsNow.
func (s *spec) readIDs() {
	s.ids = ids.Of(&s.tapp.Spec)
	n, field, value := s.ids.Count, "spec.replicas", s.ids.Count
	switch {
	case s.ids.Start < 0:
		field, value = "spec.ordinals.start", s.ids.Start
		s.problem(problem.All, ReasonInvalidSpec, field, "%d is negative; give 0 or more", s.ids.Start)
	case n < 0:
		s.problem(problem.All, ReasonInvalidSpec, "spec.replicas", "%d is negative; give 0 or more", n)
	case n > MaxReplicas:
		s.problem(problem.All, ReasonInvalidSpec, "spec.replicas", "%d is more than the %d instances that one TApp can have; split it into several", n, MaxReplicas)
	case s.ids.Last() > ids.Max:
		field, value = "spec.ordinals.start", s.ids.Start
		s.problem(problem.All, ReasonInvalidSpec, field, "with %d the last id would be %d, and no id is above %d; begin lower", s.ids.Start, s.ids.Last(), ids.Max)
	default:
		return
	}
	s.idsInvalid = true
	s.frozen = fmt.Sprintf("%s cannot be %d, and every instance stays as it is until that is corrected", field, value)
}

// idsNow are those in range, in ascending order. While the spec asks for ids that cannot be, they are
// those that the stored status or a pod tells of: what has ended must not be
// forgotten, and what was never there must not appear.
func (s *spec) idsNow(pods []*corev1.Pod) []int {
	if !s.idsInvalid {
		return s.ids.All()
	}
	known := map[int]struct{}{}
	for name := range s.tapp.Status.Statuses {
		if id, ok := ids.Parse(name); ok {
			known[id] = struct{}{}
		}
	}
	for _, pod := range pods {
		if id, ok := ids.InName(s.tapp.Name, pod.Name); ok && controls(s.tapp, pod) {
			known[id] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(known))
}

// readSelector returns the selector, or nil when it is unusable: then nothing is
// created, adopted or released.
func (s *spec) readSelector() labels.Selector {
	selector := s.parseSelector()
	if selector == nil && s.frozen == "" {
		s.frozen = "there is no usable selector, so that a new pod would not belong to the TApp"
	}
	return selector
}

func (s *spec) parseSelector() labels.Selector {
	given := s.tapp.Spec.Selector
	if given == nil {
		s.problem(problem.All, ReasonInvalidSpec, "spec.template.metadata.labels", "spec.selector is absent and the template has no labels to take it from; give the template a label, such as app: %s", s.tapp.Name)
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(given)
	if err != nil {
		s.problem(problem.All, ReasonInvalidSpec, "spec.selector", "%v; correct the selector", err)
		return nil
	}
	if selector.Empty() {
		s.problem(problem.All, ReasonInvalidSpec, "spec.selector", "an empty selector matches every pod of the namespace; name labels that the templates carry")
		return nil
	}
	return selector
}

// mayCreate says whether anything may be created; the time when it may be is another look.
func (s *spec) mayCreate(c *clock) bool {
	left := s.noCreationUntil.Sub(c.now)
	if left > 0 {
		c.waitFor(left)
	}
	return left <= 0
}

func (s *spec) selects(pod *corev1.Pod) bool {
	return s.selector != nil && s.selector.Matches(labels.Set(pod.Labels))
}

// checkIDs notes keys that are no instance ids. Their entries have no effect.
func (s *spec) checkIDs() {
	for _, f := range []struct {
		field string
		keys  []string
	}{
		{"spec.templates", slices.Sorted(maps.Keys(s.tapp.Spec.Templates))},
		{"spec.statuses", slices.Sorted(maps.Keys(s.tapp.Spec.Statuses))},
	} {
		for _, id := range f.keys {
			if _, ok := ids.Parse(id); !ok {
				s.problem(problem.Entries, ReasonInvalidSpec, f.field+"["+id+"]", "%q is not an instance id; ids are whole numbers from 0 without leading zeros, such as \"0\" or \"12\"", id)
			}
		}
	}
}
