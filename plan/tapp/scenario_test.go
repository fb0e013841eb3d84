package tapp

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/claim"
	"tkestack.io/tapp/plan/ids"
	"tkestack.io/tapp/plan/revision"
	"tkestack.io/tapp/plan/template"
)

var update = flag.Bool("update", false, "write what the scenarios give as what they want")

// scenario is a file of testdata/scenarios: what is, and what is to be done about
// it, whole and exact.
type scenario struct {
	About string       `json:"about"`
	TApp  *tappv1.TApp `json:"tapp"`
	// Unrecorded: the status does not have the selector yet.
	Unrecorded bool                       `json:"unrecorded"`
	Versions   map[string]json.RawMessage `json:"versions"` // patches of spec.template, by name
	Lost       []string                   `json:"lost"`     // versions whose revision somebody deleted
	Pods       []podStory                 `json:"pods"`
	Claims     []claimStory               `json:"claims"`
	Nodes      map[string]nodeStory       `json:"nodes"`
	// Workloads that were read, by name; the list may be empty.
	Workloads map[string][]workloadStory `json:"workloads"`
	Policy    policyStory                `json:"policy"`
	// Terminating is for how long nothing may be created.
	Terminating string `json:"terminating"`
	// Show more of the plan: pods, claims, patches.
	Show []string `json:"show"`
	Want string   `json:"want"`
}

type claimStory struct {
	Name  string `json:"name"`
	Dying bool   `json:"dying"`
	// Owner is "" for none, "tapp" or another UID.
	Owner   string `json:"owner"`
	Unknown bool   `json:"unknown"` // without the label of its instance
	// Mark is that of the TApp by default, or "none". An unknown one has none.
	Mark     string            `json:"mark"`
	Found    bool              `json:"found"`
	Labels   map[string]string `json:"labels"` // beside that of its instance
	Unbound  bool              `json:"unbound"`
	Request  string            `json:"request"`
	Capacity string            `json:"capacity"`
	Resize   string            `json:"resize"`  // status.allocatedResourceStatuses.storage
	Tried    string            `json:"tried"`   // status.allocatedResources.storage, where Resize is given; the request by default
	Problem  string            `json:"problem"` // what the condition ControllerResizeError says
}

// workloadStory is a TApp or StatefulSet that makes claims.
type workloadStory struct {
	Kind      string            `json:"kind"`
	Templates []string          `json:"templates"`
	Labels    map[string]string `json:"labels"`
}

type nodeStory struct {
	Gone         bool   `json:"gone"`
	OutOfService bool   `json:"outOfService"`
	NotReady     string `json:"notReady"` // for so long
}

type policyStory struct {
	DeletePodAfterAppFinish *bool  `json:"deletePodAfterAppFinish"`
	NodeLostAfter           string `json:"nodeLostAfter"`
	NoResize                bool   `json:"noResize"`
	Batch                   int    `json:"batch"`
}

func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/scenarios/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 50 {
		t.Errorf("%d scenarios", len(files))
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) { runScenario(t, file) })
	}
}

func runScenario(t *testing.T, file string) {
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var s scenario
	if err := yaml.UnmarshalStrict(raw, &s); err != nil {
		t.Fatal(err)
	}
	in := s.input(t)
	got := s.render(t, in.TApp, s.plan(t, in))
	if got == s.Want {
		return
	}
	if !*update {
		t.Errorf("%s\ngot:\n%s\nwant:\n%s", s.About, got, s.Want)
		return
	}
	story, _, _ := bytes.Cut(raw, []byte("\nwant:"))
	text := string(story) + "\nwant: |\n  " + strings.ReplaceAll(strings.TrimSuffix(got, "\n"), "\n", "\n  ") + "\n"
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "  \n", "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (s *scenario) input(t rapid.TB) Input {
	t.Helper()
	tapp := s.TApp
	tapp.Name, tapp.Namespace, tapp.UID = "web", "shop", "tapp"
	tapp.Generation = 7
	if tapp.Spec.Selector == nil && tapp.Status.ScaleLabelSelector == "" && !s.Unrecorded {
		complete := defaulted(tapp)
		if complete.Spec.Selector != nil {
			tapp.Status.ScaleLabelSelector = metav1.FormatLabelSelector(complete.Spec.Selector)
		}
	}
	in := Input{TApp: tapp, Now: now, Nodes: map[string]NodeState{}, Workloads: map[string][]claim.Workload{}, Policy: Policy{
		DeletePodAfterAppFinish: s.Policy.DeletePodAfterAppFinish == nil || *s.Policy.DeletePodAfterAppFinish,
		NodeLostAfter:           span(t, s.Policy.NodeLostAfter, 5*time.Minute),
		Resize:                  !s.Policy.NoResize,
		Batch:                   s.Policy.Batch,
	}}
	if s.Terminating != "" {
		in.NoCreationUntil = now.Add(span(t, s.Terminating, 0))
	}
	for _, p := range s.Pods {
		in.Pods = append(in.Pods, s.tell(t, p)...)
	}
	for _, c := range s.Claims {
		in.Claims = append(in.Claims, c.tell(tapp.Namespace))
	}
	for name, list := range s.Workloads {
		in.Workloads[name] = []claim.Workload{}
		for _, w := range list {
			in.Workloads[name] = append(in.Workloads[name], claim.Workload{Kind: w.Kind, Name: name, UID: types.UID(w.Kind), Templates: w.Templates, Labels: w.Labels, Selector: labels.SelectorFromSet(w.Labels)})
		}
	}
	for name, n := range s.Nodes {
		state := NodeState{Exists: !n.Gone, OutOfService: n.OutOfService}
		if n.NotReady != "" {
			state.NotReadySince = ago(span(t, n.NotReady, 0)).Time
		}
		in.Nodes[name] = state
	}
	return in
}

// plan is what the shell does: it reads the revisions when the plan asks for that.
func (s *scenario) plan(t rapid.TB, in Input) Plan {
	t.Helper()
	p := Compute(in)
	if !p.NeedsRevisions {
		return p
	}
	in.Revisions, in.RevisionsRead = s.revisions(t, in.TApp), true
	if p = Compute(in); p.NeedsRevisions {
		t.Fatalf("it asks for revisions that were read")
	}
	return p
}

// revisions that the versions made, in the order of their names, and no others are there.
func (s *scenario) revisions(t rapid.TB, tapp *tappv1.TApp) (out []*appsv1.ControllerRevision) {
	t.Helper()
	for n, name := range sortedKeys(s.Versions) {
		if slices.Contains(s.Lost, name) {
			continue
		}
		then := tapp.DeepCopy()
		then.Spec.Template = *s.version(t, name)
		data, err := revision.Of(then).Data()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: "web-" + name, UID: types.UID("revision-" + name)}, Revision: int64(n + 1), Data: runtime.RawExtension{Raw: data}})
	}
	return out
}

// isExact says whether a disruption holds for the observed version of the pod only.
func isExact(a Action) bool {
	return a.Op == OpDelete && a.ResourceVersion != "" || strings.Contains(string(a.Status)+string(a.Patch), `"resourceVersion"`) && a.Pod != nil
}

// render writes the whole plan as text.
func (s *scenario) render(t rapid.TB, tapp *tappv1.TApp, p Plan) string {
	t.Helper()
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	for _, a := range p.Actions {
		op := string(a.Op)
		if isExact(a) {
			op += " exactly"
		}
		line("%s %s%s %s: %s", op, a.ID, made(a), a.Reason, a.Why)
		s.renderWrites(t, &b, a)
	}
	for _, i := range p.Instances {
		if i.Reason != "" {
			line("held %s %s: %s", i.ID, i.Reason, i.Why)
		}
	}
	for _, x := range p.Problems {
		line("problem %s %s: %s", x.Field, x.Reason, x.Why)
	}
	st := &p.Status
	line("%s: %s", st.AppStatus, renderStatuses(t, st.Statuses))
	line("replicas %d, ready %d, available %d, updated %d", st.Replicas, st.ReadyReplicas, st.AvailableReplicas, st.UpdatedReplicas)
	for _, c := range st.Conditions {
		line("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message)
		if c.ObservedGeneration != tapp.Generation {
			line("  of generation %d", c.ObservedGeneration)
		}
	}
	if len(st.Nodes) > 0 {
		line("nodes %v", st.Nodes)
	}
	if len(st.Failures) > 0 {
		line("failures %v", st.Failures)
	}
	for _, hash := range sortedKeys(st.Contents) {
		if !slices.Contains(s.Show, "contents") {
			break
		}
		line("contents %s: %s", hash, st.Contents[hash])
	}
	if len(p.Workloads) > 0 {
		line("workloads %v", p.Workloads)
	}
	if len(p.Evidence) > 0 {
		line("evidence %v", p.Evidence)
	}
	if p.Wait != 0 {
		line("wait %s", p.Wait)
	}
	return s.named(t, b.String())
}

// made is what an action creates, in short.
func made(a Action) string {
	switch a.Op {
	case OpCreateClaim, OpUpdateClaim, OpDeleteClaim:
		return " (" + a.Claim.Name + ")"
	case OpCreate, OpReplace:
		out := a.Pod.Spec.Containers[0].Image
		if n := a.Pod.Annotations[tappv1.AnnotationFailures]; n != "" {
			out += ", failures " + n
		}
		if a.Pod.Annotations[tappv1.AnnotationKept] != "" {
			out += ", kept"
		}
		return " (" + out + ")"
	}
	return ""
}

func (s *scenario) renderWrites(t rapid.TB, b *strings.Builder, a Action) {
	t.Helper()
	show := func(what string, is any) {
		text, err := yaml.Marshal(is)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(b, "  %s:\n    %s\n", what, strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "\n    "))
	}
	if a.Old != nil {
		fmt.Fprintf(b, "  of %s\n", a.Old.UID)
	}
	if a.Pod != nil && (a.Op == OpCreate || a.Op == OpReplace) && slices.Contains(s.Show, "pods") {
		show("pod", a.Pod)
	}
	if a.Op == OpCreateClaim && slices.Contains(s.Show, "claims") {
		show("claim", a.Claim)
	}
	if slices.Contains(s.Show, "patches") {
		if a.Patch != nil {
			fmt.Fprintf(b, "  patch %s\n", a.Patch)
		}
		if a.Status != nil {
			fmt.Fprintf(b, "  status %s\n", a.Status)
		}
	}
}

// named writes the names of templates in place of their hashes, so that the
// scenarios say what a hash is of, and not which number it happens to be.
func (s *scenario) named(t rapid.TB, text string) string {
	t.Helper()
	names := []string{tappv1.DefaultTemplateName}
	for name := range s.TApp.Spec.TemplatePool {
		names = append(names, name)
	}
	for name := range s.Versions {
		names = append(names, name)
	}
	slices.Sort(names[1:])
	for _, name := range names {
		h, err := template.Hash(s.version(t, name))
		if err != nil {
			continue // of a template that is bad on purpose
		}
		text = strings.ReplaceAll(text, h.Template, "<hash of "+name+">")
		text = strings.ReplaceAll(text, h.Uniq, "<uniq hash of "+name+">")
	}
	return text
}

func renderStatuses(t rapid.TB, statuses map[string]tappv1.InstanceStatus) string {
	t.Helper()
	by := map[tappv1.InstanceStatus][]int{}
	for id, s := range statuses {
		num, err := strconv.Atoi(id)
		if err != nil {
			t.Errorf("status of %q", id)
		}
		by[s] = append(by[s], num)
	}
	var out []string
	for s, nums := range by {
		slices.Sort(nums)
		out = append(out, fmt.Sprintf("%s %s", s, ids.Ranges(nums)))
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}
