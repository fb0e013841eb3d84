package plugin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/effect"
	"tkestack.io/tapp/plan/ids"
	"tkestack.io/tapp/plan/inplace"
	plan "tkestack.io/tapp/plan/tapp"
	"tkestack.io/tapp/plan/template"
	"tkestack.io/tapp/plan/view"
)

// explanation is all that the plan says of one instance.
type explanation struct {
	view.Instance
	// Desired is what the spec asks of it, Update how it gets to a new template.
	Desired string `json:"wanted"`
	Update  string `json:"update"`
	// The hashes of its template, and of the pod; the latter absent without a pod.
	TemplateHash    string `json:"templateHash,omitempty"`
	UniqHash        string `json:"uniqHash,omitempty"`
	PodTemplateHash string `json:"podTemplateHash,omitempty"`
	PodUniqHash     string `json:"podUniqHash,omitempty"`
	// InitImages says which init containers ran another image than the pod's spec names.
	InitImages string `json:"initImages,omitempty"`
	// Differs are the labels and annotations that somebody changed in a pod that follows its template.
	Differs []string `json:"differs,omitempty"`
	// Rollout is what the preview says of it.
	Rollout  string   `json:"rollout,omitempty"`
	Problems []string `json:"problems,omitempty"`
	// Contains are the pod's containers, the init containers first.
	Contains []containerView `json:"containers,omitempty"`
}

type containerView struct {
	Name     string `json:"name"`
	Image    string `json:"image"`
	State    string `json:"state"`
	Restarts int32  `json:"restarts"`
}

func newExplain(e *environment) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "explain NAME ID [-o json|yaml]",
		Short: "Tell all that the planner says of one instance",
		Long: `Tell all that the planner says of one instance: what the spec wants of it, which template it has and whether its pod
follows it, what holds it, and what the controller does next.`,
		Example:           "  kubectl tapp explain web 3",
		Args:              exactly("NAME", "ID"),
		RunE:              func(c *cobra.Command, args []string) error { return e.explain(c.Context(), args[0], args[1], output) },
		ValidArgsFunction: e.completeInstances,
	}
	c.Flags().StringVarP(&output, "output", "o", "", "Output format: json or yaml")
	e.completeFlag(c, "output", "json", "yaml")
	return c
}

func (e *environment) explain(ctx context.Context, name, id, output string) error {
	if output != "" && output != "json" && output != "yaml" {
		return usageError{fmt.Errorf("--output is %q; give json or yaml", output)}
	}
	s, err := e.connect()
	if err != nil {
		return err
	}
	o, err := s.observe(ctx, name)
	if err != nil {
		return err
	}
	num, ok := ids.Parse(id)
	if !ok {
		return fmt.Errorf("%q is not an instance id; ids are whole numbers from 0", id)
	}
	i := o.Instance(num) // it may be one that is about to go, out of range
	if i == nil {
		if _, err := parseIDs(o.TApp, []string{id}); err != nil {
			return err
		}
		return fmt.Errorf("nothing is known of instance %s of %s", id, name)
	}
	e.note(o.policyNote([]plan.Instance{*i}))
	e.note(o.unreadNote([]plan.Instance{*i}))
	x := o.explain(i)
	if output != "" {
		return write(e.streams.Out, output, x)
	}
	return x.print(e)
}

func (o *observed) explain(i *plan.Instance) explanation {
	x := explanation{Instance: o.View(i), Desired: o.desiredState(i), Update: "rolling, at most " + o.BudgetOf(false).String() + " at a time"}
	if i.Forced {
		x.Update = "by force, at most " + o.BudgetOf(true).String() + " at a time"
	}
	if spec := o.TApp.Spec.FindTemplate(i.Template); spec != nil {
		if h, err := template.Hash(spec); err == nil {
			x.TemplateHash, x.UniqHash = h.Template, h.Uniq
		}
		x.Differs = view.ChangedMetadata(i.Pod, spec)
	}
	if i.Pod != nil {
		x.InitImages = inplace.BehindInitImages(i.Pod)
		x.PodTemplateHash, x.PodUniqHash = i.Pod.Labels[tappv1.LabelTemplateHash], i.Pod.Labels[tappv1.LabelUniqHash]
		for _, c := range slices.Concat(i.Pod.Status.InitContainerStatuses, i.Pod.Status.ContainerStatuses) {
			x.Contains = append(x.Contains, containerView{c.Name, c.Image, stateOf(&c), c.RestartCount})
		}
	}
	for _, c := range plan.Preview(o.Input) {
		for _, id := range c.IDs {
			if id == i.Num {
				x.Rollout = effect.Change{Effect: c.Effect, IDs: []int{i.Num}, Why: c.Why}.String()
			}
		}
	}
	if o.Concerns(i) {
		x.Problems = append(x.Problems, o.refused())
	}
	for _, p := range o.Plan.Problems {
		x.Problems = append(x.Problems, p.Field+": "+p.Why)
	}
	return x
}

// desiredState says in words what the spec asks of an instance.
func (o *observed) desiredState(i *plan.Instance) string {
	switch {
	case i.Desired:
		return "running"
	case !ids.Of(&o.TApp.Spec).Has(i.Num):
		return "gone: " + ids.Of(&o.TApp.Spec).Why()
	case o.TApp.Spec.Statuses[i.ID] == tappv1.InstanceKilled:
		return "stopped: spec.statuses says Killed"
	}
	return "as it ended"
}

// isCompleted says whether the instance completed: it ended, and stays as it ended.
func isCompleted(i *plan.Instance) bool {
	return i.Status == tappv1.InstanceFailed || i.Status == tappv1.InstanceSucc
}

func stateOf(c *corev1.ContainerStatus) string {
	switch s := c.State; {
	case s.Waiting != nil:
		return "waiting: " + joinReason(s.Waiting.Reason, s.Waiting.Message)
	case s.Terminated != nil:
		return fmt.Sprintf("ended with exit code %d: %s", s.Terminated.ExitCode, joinReason(s.Terminated.Reason, s.Terminated.Message))
	case c.Ready:
		return "running, ready"
	case s.Running != nil:
		return "running, not ready"
	}
	return "unknown"
}

func joinReason(reason, message string) string {
	return strings.TrimSuffix(strings.TrimSuffix(reason+", "+message, ", "), ", ")
}

func (x *explanation) print(e *environment) error {
	p, now := newPainter(e.streams.Out), time.Now()
	var b strings.Builder
	line := func(key, format string, args ...any) {
		fmt.Fprintf(&b, "%-15s %s\n", key+":", fmt.Sprintf(format, args...))
	}
	line("Instance", "%s of %s in namespace %s", x.ID, x.TApp, x.Namespace)
	line("Wanted", "%s", x.Desired)
	state := p.paint(colourOf(x.State), string(x.State))
	if x.Since != nil {
		state += " for " + age(x.Since, now)
	}
	line("State", "%s", state)
	line("Available", "%s", yesNo(x.Available))
	line("Template", "%s, hash %s, uniq hash %s", x.Template, orNone(x.TemplateHash), orNone(x.UniqHash))
	line("Updates", "%s", clean(x.Update))
	if x.Pod == "" {
		line("Pod", none)
	} else {
		line("Pod", "%s on node %s, IP %s, UID %s", x.Pod, orNone(x.Node), orNone(x.IP), x.UID)
		line("Pod's template", "hash %s, uniq hash %s: %s", orNone(x.PodTemplateHash), orNone(x.PodUniqHash), x.follows())
	}
	for _, c := range x.Contains {
		line("Container", "%s runs %s: %s, restarts %d", c.Name, clean(c.Image), clean(c.State), c.Restarts)
	}
	if x.InitImages != "" {
		line("Init images", "%s until the instance has another pod", clean(x.InitImages))
	}
	for _, d := range x.Differs {
		line("Differs", "%s", clean(d))
	}
	if x.Reason != "" {
		line("Held", "%s: %s", p.paint(yellow, x.Reason), clean(x.Why))
	}
	for _, a := range x.Next {
		line("Next", "%s, %s: %s", p.paint(bold, string(a.Op)), clean(a.Reason), clean(a.Why))
	}
	if x.Reason == "" && len(x.Next) == 0 {
		line("Next", "nothing: it is where the spec wants it")
	}
	if x.Rollout != "" {
		line("Rollout", "%s", clean(x.Rollout))
	}
	for _, problem := range x.Problems {
		line("Problem", "%s", p.paint(red, problem))
	}
	_, err := fmt.Fprint(e.streams.Out, b.String())
	return err
}

func (x *explanation) follows() string {
	switch {
	case x.Current:
		return "it follows its template"
	case x.Kept:
		return "it was made with its former content, and is updated when its update is not held any more"
	case x.PodUniqHash == x.UniqHash:
		return "it differs in images, labels or annotations only"
	}
	return "it differs in more than images, labels and annotations"
}
