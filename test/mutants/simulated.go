package main

import (
	"context"
	"fmt"
	"strconv"
)

// simulated is a mutant that only one class of faults of the simulation notices: with it
// some run fails, and without it none of as many. It shows that the class is not there for
// nothing.
type simulated struct {
	room, class string
	mutant
}

// simulations are the mutants of the classes of test/sim, by class.
var simulations = []simulated{
	{inPlaceRoom, "admission", mutant{"sim-annotations-set-back", "metadata.go", "an update sets back an annotation that admission has merged",
		" || !template.IsOurKey(key) && had(key, value) {", " || !template.IsOurKey(key) && had(key, value) && false {"}},
	{planRoom, "claims", mutant{"sim-terminating-claim-mounted", "claims.go", "a pod is created that mounts a claim which is being deleted",
		"			case c.DeletionTimestamp != nil:\n", "			case c.DeletionTimestamp != nil && c.UID == \"\":\n"}},
	{planRoom, "claims", mutant{"sim-claim-goes-with-its-pod", "keep.go", "a pod goes although its claim is being deleted",
		"	if len(holding) == 0 || i.pod.DeletionTimestamp != nil {", "	if len(holding) >= 0 || i.pod.DeletionTimestamp != nil {"}},
	{planRoom, "kept-claims", mutant{"sim-ended-pod-keeps-claim", "ends.go", "an ended pod and its claim that is being deleted wait for each other",
		"case claims.waitFor(i):", "case claims.waitFor(i) && s.tapp == nil:"}},
	{planRoom, "exits", mutant{"sim-update-counts-as-end", "ends.go", "a pod that an update stopped for good counts as one that ended",
		"inplace.StoppedByUpdate(pod) == \"\" && ending.IsFinal(pod,", "ending.IsFinal(pod,"}},
	{inPlaceRoom, "exits", mutant{"sim-taken-back-counts-as-end", "stopped.go", "a pod that a wrong tag stopped counts as one that ended, once the tag is taken back",
		"if !c.isTakenBack(last) {", "if !c.isTakenBack(last) || last.Image != \"\" {"}},
	{planRoom, "finalizers", mutant{"sim-forced-again", "terminating.go", "a pod that only its finalizers keep is deleted by force again and again",
		"*grace == 0 && len(i.pod.Finalizers) > 0 {\n\t\t// No", "*grace < 0 && len(i.pod.Finalizers) > 0 {\n\t\t// No"}},
	{planRoom, "clocks", mutant{"sim-clocks-trusted", "../unready/opening.go", "a pod is not available while the clock of its node says that it will get ready",
		"	if lasts == 0 {\n", "	if lasts < 0 {\n"}},
	{planRoom, "late-kubelets", mutant{"sim-reopened-serves-at-once", "../unready/opening.go", "a pod counts as soon as its gate is open again, whatever its kubelet has still to report",
		"	if left <= 0 {\n", "	if left <= answersWithin {\n"}},
	{inPlaceRoom, "old-kubelets", mutant{"sim-generation-awaited", "progress.go", "an update waits for a kubelet to tell of its generation that never does",
		"if reportsGeneration(pod) && pod.Status.ObservedGeneration < pod.Generation {\n		return Progress{", "if pod.Status.ObservedGeneration < pod.Generation {\n		return Progress{"}},
	{shellRoom, "resizes", mutant{"sim-refused-for-ever", "table.go", "a resize that the API server never allows is tried again and again",
		"trial.Judge(trial.Resize, err) != trial.Immutable {", "trial.Judge(trial.Resize, err) != \"?\" {"}},
	{inPlaceRoom, "resources", mutant{"sim-resources-set-back", "resize.go", "a resize sets back the resources that admission gave another container",
		"case !r.follows.Has(field) || to == nil", "case to == nil"}},
	{templateRoom, "resources", mutant{"sim-unsigned-trusted", "match_admission.go", "resources of a pod of another program are taken for admission's, though nobody says so",
		"if c.pod != nil && c.pod.Annotations[annotationVPA] != \"\" {", "if c.pod != nil {"}},
	{messageRoom, "messages", mutant{"sim-message-unbounded", "message.go", "a message is as long as what others wrote",
		"	if len(text) <= size {\n", "	if len(text) >= 0 {\n"}},
	{hookRoom, "sizes", mutant{"sim-admits-twice", "size.go", "admission lets in twice what etcd takes",
		"Most: 1536 << 10", "Most: 3072 << 10"}},
	{hookRoom, "sizes", mutant{"sim-no-room-for-status", "size.go", "admission keeps no room for what a status has beside the instances",
		"s.Most - s.Rest - ", "s.Most - 0*s.Rest - "}},
	{messageRoom, "sizes", mutant{"sim-messages-too-long", "message.go", "messages are as long as the schema lets them be",
		"	if len(text) <= size {\n", "	if len(text) <= 16*size {\n"}},
	{planRoom, "templates", mutant{"sim-end-without-template", "ends.go", "an instance whose template is missing when its pod ends stays down for good",
		"return s.isFinal(i.pod)\n	case", "return !s.runsAgain(i)\n	case"}},
	{claimRoom, "collector", mutant{"sim-namesake-claim-mounted", "claim.go", "a pod mounts a claim that goes with a dead TApp of the same name",
		"owner != nil && owner.UID != w.UID {", "owner != nil && owner.Kind != tappv1.Kind {"}},
	{planRoom, "finish", mutant{"sim-ends-wait-for-all", "ends.go", "pods that ended wait for all instances, whatever the operator says",
		"case s.policy.DeletePodAfterAppFinish && !allEnded:", "case !allEnded:"}},
	{loopRoom, "crowd", mutant{"sim-namesakes-are-one", "pace.go", "events of two TApps of one name in two namespaces are taken for those of one",
		"func (p *pace) of(key Key) *debounce {\n", "func (p *pace) of(key Key) *debounce {\n	key.Namespace = \"\"\n"}},
	{shellRoom, "nodes", mutant{"sim-first-nodes-alone", "sync.go", "of more nodes than one sync reads, the same ones are read each time",
		"NodesAfter: o.nodesAfter,", "NodesAfter: \"\","}},
	{planRoom, "evictions", mutant{"sim-disrupted-is-own-end", "../ending/ending.go", "a pod that was disrupted counts as one that failed by itself",
		"	case c != nil && isDisrupted(pod, c):\n", "	case c != nil && c.Reason == \"\" && isDisrupted(pod, c):\n"}},
	{planRoom, "policies", mutant{"sim-unadmitted", "trials.go", "instances are interrupted for updates and creations that nobody asked the API server about",
		"	if r.bench == nil {\n		return true, true", "	if r.bench == nil || r.tapp != nil {\n		return true, true"}},
	{planRoom, "evictions", mutant{"sim-told-failure-forgotten", "losses.go", "a pod that failed by itself counts as lost once its node takes it away",
		"Follows: i.state == ended && last.Follows", "Follows: i.state == alive && last.Follows"}},
	{planRoom, "restarts", mutant{"sim-init-image-in-place", "../restart/restart.go", "another image of an init container starts no other pod",
		"	case len(images) > 0:\n", "	case len(images) < 0:\n"}},
	{planRoom, "losses", mutant{"sim-used-revision-goes", "history.go", "a revision goes by which a lost instance would come back as it was",
		"return former.IsNewestOf(r.Revision, used) })", "return former.IsNewestOf(r.Revision, used) && s.tapp == nil })"}},
	{claimRoom, "claims-of-others", mutant{"sim-marks-of-others-ours", "claim.go", "a claim that is marked as another's is used",
		"case kind != \"\" && (kind != w.Kind || name != w.Name):", "case kind != \"\" && name == \"\":"}},
	{planRoom, "renewed", mutant{"sim-serving-alone", "../budget/round.go", "what is available is taken while others serve, though too few are available",
		"return after.Serving >= r.Least && (!w.Available || after.Available >= r.Least)", "return after.Serving >= r.Least"}},
}

// seedsOfClass is how many runs have the class, and how many have not.
const seedsOfClass = 150

// stages of a class: the runs that have it, and those that have not.
func (s simulated) stages() (with, without stage) {
	of := func(flag string) stage {
		return stage{"the simulation " + flag + " " + s.class, "test/sim",
			[][]string{{"-test.run=^TestSeeds$", "-sim.tell", "-sim.seeds=" + strconv.Itoa(seedsOfClass), "-sim." + flag + "=" + s.class}}, nil}
	}
	return of("with"), of("without")
}

// classStages are the runs with each class that a mutant is to be killed by: what fails
// there without it says nothing of it.
func classStages(jobs []job) map[string]stage {
	out := map[string]stage{}
	for _, j := range jobs {
		if j.class != nil {
			out[j.class.class], _ = j.class.stages()
		}
	}
	return out
}

// killAlone returns how the class alone killed the mutant; empty: it did not.
func (h hunting) killAlone(ctx context.Context, s simulated, overlay string) (string, error) {
	with, without := s.stages()
	for _, st := range []stage{with, without} {
		t, err := h.compile(ctx, st, overlay)
		if err != nil {
			return "", fmt.Errorf("mutant %s: %w", s.name, err)
		}
		by, err := t.run(ctx)
		switch {
		case err != nil:
			return "", err
		case st.name == with.name && by == "":
			return "", nil
		case st.name == without.name && by != "":
			return "", fmt.Errorf("mutant %s of the class %s is killed without it", s.name, s.class)
		}
	}
	return "the class " + s.class + " of the simulation alone", nil
}
