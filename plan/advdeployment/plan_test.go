package advdeployment

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/manifest"
)

// spec of an AdvDeployment with podSets.
func spec(deployType, more string, podSets ...string) string {
	return fmt.Sprintf(`{podSpec: {deployType: %s, template: {spec: {containers: [{name: a, image: nginx, resources: {}, volumeMounts: [{name: v, mountPath: /a}, {name: v, mountPath: /b}]}]}}}, %s topology: {podSets: [%s]}}`,
		deployType, more, strings.Join(podSets, ", "))
}

var (
	web     = "{name: web, replicas: 2, version: v1}"
	webTApp = Child{TApp, "web"}
	webSet  = Child{StatefulSet, "web"}
	webDep  = Child{Deployment, "web"}
)

// TestChildrenOfAllTypes: what each type becomes, and that it ends.
func TestChildrenOfAllTypes(t *testing.T) {
	for deployType, child := range map[string]Child{"InPlaceSet": webTApp, "tapp": webTApp, "StatefulSet": webSet, "deployment": webDep, "Deployment": webDep} {
		t.Run(deployType, func(t *testing.T) {
			w := newWorld(t, spec(deployType, "serviceName: inner.example.com, updateStrategy: {minReadySeconds: 7}, revisionHistoryLimit: 3,", web))
			w.expect("first", w.step(), []string{"Finalize"})
			w.expect("second", w.step(), []string{`Create Service "a-svc"`, "Create " + child.String()})
			w.expect("status", w.d.Status.AggrStatus.Status, v1beta1.PhaseInstalling)
			w.expect("nothing is there", w.d.Status.AggrStatus.PodSets[0].Message, "it does not exist yet")
			w.step()
			w.expect("not observed before its children are", w.d.Status.ObservedGeneration, int64(-1))
			w.expect("nobody looked yet", w.condition(v1beta1.ConditionReconciling), fmt.Sprintf("True Progressing: %s: the controller of %ss has not looked at it yet", child, child.Kind))
			w.settle()
			w.expect("then", w.step(), []string(nil))
			s := w.d.Status.AggrStatus
			w.expect("status", fmt.Sprint(s.Status, s.Desired, s.Available, s.UnAvailable, s.Version), fmt.Sprint(v1beta1.PhaseRunning, 2, 2, 0, "v1"))
			w.expect("resources", s.OwnerResource, slices.Sorted(slices.Values([]string{"Service/a-svc", string(child.Kind) + "/web"})))
			w.expect("observed", w.d.Status.ObservedGeneration, w.d.Generation)
			w.expect("ready", w.condition(v1beta1.ConditionReady), "True Synced: "+Synced)
			w.expect("again", w.step(), []string(nil))

			w.expect("selector", w.field(child, "spec", "selector"), `{"matchLabels":{"app":"a","release":"web"}}`)
			w.expect("labels", w.field(child, "metadata", "labels"), `{"app":"a","lightningDomain0":"inner.example.com","release":"web","version":"v1","workload.dmall.com/advdeployment":"a"}`)
			w.expect("pods' labels", w.field(child, "spec", "template", "metadata", "labels"), `{"app":"a","lightningDomain0":"inner.example.com","release":"web","version":"v1"}`)
			w.expect("containers", w.field(child, "spec", "template", "spec", "containers"), `[{"image":"nginx:v1","name":"a","volumeMounts":[{"mountPath":"/a","name":"v"},{"mountPath":"/b","name":"v"}]}]`)
			w.expect("seconds", w.field(child, "spec", "minReadySeconds")+w.field(child, "spec", "revisionHistoryLimit"), "73")
			w.expect("service", w.field(Child{Service, "a-svc"}, "spec"), `{"clusterIP":"None","selector":{"app":"a"}}`)
			w.expect("hostname", w.field(Child{Service, "a-svc"}, "metadata", "annotations", annotationHostname), `"inner.example.com"`)
			if child.Kind != Deployment {
				w.expect("service name", w.field(child, "spec", "serviceName"), `"a-svc"`)
				w.expect("ordinals", s.PodSets[0].Ordinals, "0-1")
			}
		})
	}
}

// TestBudget: what holds a change back, for each kind.
func TestBudget(t *testing.T) {
	for _, c := range []struct {
		name, strategy, podSet string
		child                  Child
		deployType, path, want string
	}{
		{"TApp", "", "", webTApp, "tapp", "spec.paused", "false"},
		{"TApp paused", "updateStrategy: {paused: true},", "", webTApp, "tapp", "spec.paused", "true"},
		{"TApp at 0", "", "maxUnavailable: 0", webTApp, "tapp", "spec.paused", "true"},
		{"TApp at 2", "", "maxUnavailable: 2", webTApp, "tapp", "spec.updateStrategy", `{"maxUnavailable":2}`},
		{"podSet paused", "", "paused: true", webTApp, "tapp", "spec.paused", "true"},
		{"TApp whose ids begin at 5", "", "ordinals: {start: 5}", webTApp, "tapp", "spec.ordinals", `{"start":5}`},
		{"TApp of its own ids", "", "", webTApp, "tapp", "spec.ordinals", "null"},
		{"StatefulSet", "", "", webSet, "StatefulSet", "spec.updateStrategy.rollingUpdate", `{"partition":0}`},
		{"StatefulSet at 2", "", "maxUnavailable: 2", webSet, "StatefulSet", "spec.updateStrategy.rollingUpdate", `{"maxUnavailable":2,"partition":0}`},
		{"StatefulSet paused", "updateStrategy: {paused: true},", "", webSet, "StatefulSet", "spec.updateStrategy.rollingUpdate", `{"partition":2}`},
		{"StatefulSet whose ids begin at 5", "", "paused: true, ordinals: {start: 5}", webSet, "StatefulSet", "spec.updateStrategy.rollingUpdate", `{"partition":7}`},
		{"its first id", "", "ordinals: {start: 5}", webSet, "StatefulSet", "spec.ordinals", `{"start":5}`},
		{"Deployment", "", "maxUnavailable: 1", webDep, "deployment", "spec.strategy", `{"rollingUpdate":{"maxUnavailable":1},"type":"RollingUpdate"}`},
		{"Deployment paused", "", "paused: true", webDep, "deployment", "spec.paused", "true"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, spec(c.deployType, c.strategy, strings.TrimSuffix(web, "}")+", "+c.podSet+"}"))
			w.step()
			w.step()
			if c.child.Kind == Deployment {
				w.expect("a new one makes its pods", w.field(c.child, "spec", "paused"), "false")
			}
			w.run()
			w.expect(c.path, w.field(c.child, strings.Split(c.path, ".")...), c.want)
			w.expect("status", w.d.Status.AggrStatus.Status, v1beta1.PhaseRunning)
		})
	}
}

// TestUpdate: both versions are told while both run.
func TestUpdate(t *testing.T) {
	w := newWorld(t, spec("tapp", "", web))
	w.run()
	first := w.d.Status.CurrentRevision
	w.spec(spec("tapp", "", "{name: web, replicas: 2, version: v2}"))
	p := w.plan()
	w.expect("before it is written", *p.Status.AggrStatus.PodSets[0].Update, int32(0))
	w.expect("changed", w.step(), []string{`Apply TApp "web"`})
	w.step()
	w.expect("nobody has looked", fmt.Sprint(w.d.Status.AggrStatus.Status, w.d.Status.ObservedGeneration < w.d.Generation), fmt.Sprint(v1beta1.PhaseUpdating, true))
	w.tell(webTApp, 2, 1, 1)
	w.step()
	s := w.d.Status.AggrStatus
	w.expect("half", fmt.Sprint(s.Status, s.Version, s.Available, s.UnAvailable, *s.PodSets[0].Update), fmt.Sprint(v1beta1.PhaseUpdating, "v1/v2", 1, 1, 1))
	w.expect("why", s.PodSets[0].Message, "1 of 2 instances have the content that they are to have")
	w.run()
	s = w.d.Status.AggrStatus
	w.expect("done", fmt.Sprint(s.Status, s.Version), fmt.Sprint(v1beta1.PhaseRunning, "v2"))
	if w.d.Status.CurrentRevision == first || w.d.Status.CurrentRevision != w.d.Status.UpdateRevision {
		t.Errorf("revisions %s, %s, %s", first, w.d.Status.CurrentRevision, w.d.Status.UpdateRevision)
	}
	w.tell(webTApp, 2, 2, 1)
	w.step()
	w.expect("an instance fails", w.d.Status.AggrStatus.Status, v1beta1.PhaseDegraded)
	w.run()
	w.spec(spec("tapp", "", "{name: web, replicas: 5, version: v2}"))
	w.step()
	w.tell(webTApp, 5, 5, 2)
	w.step()
	w.expect("more instances", w.d.Status.AggrStatus.Status, v1beta1.PhaseScaling)
	w.run()
	w.expect("all of them", w.d.Status.AggrStatus.Status, v1beta1.PhaseRunning)
}

// TestForeign: what is somebody else's is not touched, and told.
func TestForeign(t *testing.T) {
	for name, owner := range map[string]*metav1.OwnerReference{"nobody's": nil, "somebody's": {Kind: "App", Name: "x", UID: "y", Controller: new(true)}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, spec("deployment", "", web, "{name: other, replicas: 1}"))
			w.run()
			theirs := w.children[webDep]
			theirs.SetLabels(nil)
			theirs.SetOwnerReferences(nil)
			whose := "nobody controls it"
			if owner != nil {
				theirs.SetOwnerReferences([]metav1.OwnerReference{*owner})
				whose = `App "x" controls it`
			}
			w.spec(spec("deployment", "", "{name: web, replicas: 9}", "{name: other, replicas: 2}"))
			p := w.plan()
			w.expect("events", p.Events, []Event{{"Warning", "ErrResourceExists", `Resource "web" already exists and is not managed by AdvDeployment`}})
			w.expect("wait", p.Wait > 0, true)
			w.expect("the other one goes on", w.step(), []string{`Apply Deployment "other"`})
			w.expect("told", w.condition(v1beta1.ConditionStalled), `True ErrResourceExists: Resource "web" already exists and is not managed by AdvDeployment: there is a Deployment of this name, and `+whose)
			w.expect("told of the podSet", w.d.Status.AggrStatus.PodSets[0].Message, "its name is taken: there is a Deployment of this name, and "+whose)
			w.expect("told once", len(w.plan().Events), 0)
			w.d.DeletionTimestamp = &metav1.Time{Time: w.now}
			w.expect("deletion", w.run(), []string{`Delete Deployment "other"`, "Finalize"})
			w.expect("left", w.names(), []Child{webDep})
		})
	}
}

// TestAdoption: what an AdvDeployment of this name left behind is its own again.
func TestAdoption(t *testing.T) {
	w := newWorld(t, spec("tapp", "", web))
	w.run()
	w.children[webTApp].SetOwnerReferences(nil)
	w.d.UID = "another"
	w.expect("adopted", w.step(), []string{`Adopt TApp "web"`})
	w.expect("owner", w.children[webTApp].GetOwnerReferences()[0].UID, w.d.UID)
}

// TestRestoring: nothing is done for an AdvDeployment of which a restore brings its history
// yet. Then what it left behind is its own again.
func TestRestoring(t *testing.T) {
	w := newWorld(t, spec("tapp", "", web))
	w.run()
	w.children[webTApp].SetOwnerReferences(nil)
	w.d.UID, w.d.Annotations = "another", map[string]string{v1beta1.AnnotationRestoring: "true"}
	before := w.d.Status
	w.expect("restoring", w.step(), []string(nil))
	w.expect("status", w.d.Status, before)
	w.d.Annotations = nil
	w.expect("adopted", w.step(), []string{`Adopt TApp "web"`})
}

// TestLeftOver: a podSet that is taken out goes when all others are done.
func TestLeftOver(t *testing.T) {
	w := newWorld(t, spec("tapp", "", web, "{name: old, replicas: 3}"))
	w.run()
	w.spec(spec("tapp", "", "{name: web, replicas: 3, version: v1}"))
	w.expect("first the others", w.step(), []string{`Apply TApp "web"`})
	w.tell(webTApp, 3, 3, 2)
	w.expect("not yet", w.step(), []string(nil))
	w.expect("why", w.condition(v1beta1.ConditionReconciling), `True Progressing: TApp "web": 2 of 3 instances are available; TApp "old" stays until all others are done`)
	w.tell(webTApp, 3, 3, 3)
	w.expect("now", w.step(), []string{`Delete TApp "old"`})
	w.expect("status", w.d.Status.AggrStatus.Status, v1beta1.PhaseMigrating)
	w.settle()
	w.step()
	w.expect("status", w.d.Status.AggrStatus.Status, v1beta1.PhaseRunning)
}

// TestLeftOverOfBudget: what is left out uses the fleet's budget as long as it is there, and does
// not wait for podSets that are given none of it, unless instances of them are unavailable.
func TestLeftOverOfBudget(t *testing.T) {
	for available, want := range map[int64][]string{2: nil, 3: {`Delete TApp "old"`}} {
		w := newWorld(t, spec("tapp", "", web, "{name: old, replicas: 3}"))
		w.run()
		w.spec(spec("tapp", "", "{name: web, replicas: 3, version: v1, maxUnavailable: 0}"))
		w.expect("it is held back", w.step(), []string{`Apply TApp "web"`})
		w.tell(webTApp, 3, 1, available)
		w.expect("left over", w.step(), want)
	}
}

// TestDeletion: children first, and what is set free stays.
func TestDeletion(t *testing.T) {
	w := newWorld(t, spec("StatefulSet", "serviceName: s,", web))
	w.d.Finalizers = []string{v1beta1.LegacyFinalizer, "theirs"}
	w.run()
	w.expect("finalizers", w.d.Finalizers, []string{"theirs", v1beta1.Finalizer})
	w.d.DeletionTimestamp = &metav1.Time{Time: w.now}
	w.expect("children", w.step(), []string{`Delete Service "s"`, `Delete StatefulSet "web"`})
	w.expect("they take their time", w.step(), []string(nil))
	w.expect("status", w.d.Status.AggrStatus.Status, v1beta1.PhaseDeleting)
	w.expect("told", w.condition(v1beta1.ConditionReady), `False Deleting: Service "s" is being deleted; StatefulSet "web" is being deleted`)
	w.settle()
	p := w.plan()
	w.expect("only where their absence is certain", len(p.Actions) == 1 && p.Actions[0].Absent, true)
	w.expect("then", w.step(), []string{"Finalize"})
	w.expect("finalizers", w.d.Finalizers, []string{"theirs"})
	w.expect("nothing more", w.step(), []string(nil))

	w = newWorld(t, spec("tapp", "", web))
	w.run()
	w.d.DeletionTimestamp = &metav1.Time{Time: w.now}
	w.d.Finalizers = append(w.d.Finalizers, metav1.FinalizerOrphanDependents)
	w.expect("set free", w.step(), []string{"Finalize"})
	w.expect("left", w.names(), []Child{webTApp})
}

// TestAutoscaled: the number of replicas is the autoscaler's, and our last one stays until
// it has written its own.
func TestAutoscaled(t *testing.T) {
	w := newWorld(t, spec("deployment", "", web))
	w.run()
	w.autoscaled[webDep] = true
	w.spec(spec("deployment", "", "{name: web, replicas: 7, version: v2}"))
	w.expect("the live number is applied", manifest.At(w.plan().Actions[0].Manifest, "spec", "replicas"), any(int64(2)))
	w.step()
	theirs := w.children[webDep]
	theirs.Object["spec"].(map[string]any)["replicas"] = int64(4)
	theirs.SetAnnotations(merged(theirs.GetAnnotations(), AnnotationReplicasBy, "autoscaler"))
	w.expect("no number is", manifest.At(w.plan().Actions[0].Manifest, "spec", "replicas"), any(nil))
	w.step()
	w.expect("theirs", w.field(webDep, "spec", "replicas"), "4")
	w.run()
	w.expect("desired", w.d.Status.AggrStatus.Desired, int32(4))
}

// TestAutoscaledHeld: what is held back stays so with any number of instances, which is the autoscaler's.
func TestAutoscaledHeld(t *testing.T) {
	w := newWorld(t, spec("StatefulSet", "", web))
	w.run()
	w.autoscaled[webSet] = true
	w.spec(spec("StatefulSet", "", "{name: web, replicas: 2, version: v2, maxUnavailable: 0}"))
	w.expect("partition", manifest.At(w.plan().Actions[0].Manifest, "spec", "updateStrategy", "rollingUpdate", "partition"), any(int64(math.MaxInt32)))
}

// TestLeftBehind: instances that are not in the range count, also where others are missing.
func TestLeftBehind(t *testing.T) {
	w := newWorld(t, spec("tapp", "", "{name: web, replicas: 2, ordinals: {start: 5}}"))
	w.run()
	status := w.children[webTApp].Object["status"].(map[string]any)
	status["statuses"] = map[string]any{"5": "Running", "6": "NotCreated"}
	status["availableReplicas"], status["replicas"] = int64(1), int64(1)
	w.step()
	w.expect("none is left", *w.d.Status.AggrStatus.PodSets[0].Current, int32(1))
	status = w.children[webTApp].Object["status"].(map[string]any)
	status["statuses"] = map[string]any{"4": "Killing", "5": "Running", "6": "NotCreated"}
	w.step()
	w.expect("current", *w.d.Status.AggrStatus.PodSets[0].Current, int32(3))
	w.expect("told", w.d.Status.AggrStatus.PodSets[0].Message, "1 instances too many are left")
}

// TestEmptyObjects: objects that say nothing are not applied: where they said something before, an
// apply makes null of them.
func TestEmptyObjects(t *testing.T) {
	w := newWorld(t, `{podSpec: {deployType: tapp, template: {spec: {securityContext: {}, containers: [{name: a, image: nginx, resources: {}, securityContext: {}}]}}}, topology: {podSets: [`+web+`]}}`)
	w.run()
	w.expect("template", w.field(webTApp, "spec", "template", "spec"), `{"containers":[{"image":"nginx:v1","name":"a"}]}`)
}

// TestInPlaceOf: a patch in place of an apply makes the same of a TApp, and leaves what is somebody else's.
func TestInPlaceOf(t *testing.T) {
	w := newWorld(t, spec("tapp", "", web))
	w.run()
	live := w.children[webTApp]
	inSpec := live.Object["spec"].(map[string]any)
	inSpec["templates"] = map[string]any{"0": templateNext, "1": "theirs"}
	inSpec["templatePool"] = map[string]any{templateNext: map[string]any{}, "theirs": map[string]any{"spec": map[string]any{}}}
	inSpec["updateStrategy"] = map[string]any{"template": templateNext, "inPlaceUpdate": map[string]any{"resources": true}}
	live.SetAnnotations(merged(merged(live.GetAnnotations(), "theirs", "stays"), v1beta1.AnnotationGrant, "1/1"))
	w.spec(spec("tapp", "", "{name: web, replicas: 3, version: v1}"))
	var a *Action
	for _, one := range w.plan().Actions {
		if one.Op == Apply {
			a = &one
		}
	}
	patch, err := jsonpatch.DecodePatch(a.InPlaceOf())
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := json.Marshal(live.Object)
	raw, err = patch.Apply(raw)
	after := &unstructured.Unstructured{}
	if err != nil || after.UnmarshalJSON(raw) != nil {
		t.Fatal(err)
	}
	w.expect("it is as the manifest says", manifest.Differences(a.Manifest, after), []string(nil))
	w.expect("templates", fmt.Sprint(manifest.At(after.Object, "spec", "templates")), "map[1:theirs]")
	w.expect("pool", fmt.Sprint(manifest.At(after.Object, "spec", "templatePool")), "map[theirs:map[spec:map[]]]")
	w.expect("strategy", fmt.Sprint(manifest.At(after.Object, "spec", "updateStrategy")), "map[inPlaceUpdate:map[resources:true]]")
	w.expect("annotation", after.GetAnnotations()["theirs"]+after.GetAnnotations()[v1beta1.AnnotationGrant], "stays")
}

// TestBadSpecs: a sentence each, and nothing is lost.
func TestBadSpecs(t *testing.T) {
	for name, c := range map[string]struct{ spec, reason, want string }{
		"unknown type":     {spec("daemonset", "", web), "Invalid", `spec.podSpec.deployType: "daemonset" is none of helm, InPlaceSet, StatefulSet and deployment`},
		"no template":      {`{podSpec: {deployType: tapp}, topology: {podSets: [{name: web, replicas: 1}]}}`, "Invalid", "spec.podSpec.template: deployType InPlaceSet needs a pod template"},
		"percentage":       {spec("tapp", "", "{name: web, replicas: 10%}"), "Invalid", "spec.topology.podSets[web].replicas: it is a part of spec.replicas, which is absent: give that, or a number here"},
		"unknown revision": {spec("tapp", "", "{name: web, replicas: 1, revision: r}"), "Invalid", "spec.topology.podSets[web].revision: spec.revisions has no revision r"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, spec("tapp", "", web))
			w.run()
			w.spec(c.spec)
			w.expect("nothing is touched", w.step(), []string(nil))
			w.expect("told", w.condition(v1beta1.ConditionStalled), "True "+c.reason+": "+c.want)
			w.expect("observed", w.d.Status.ObservedGeneration, w.d.Generation)
			if c.reason == "Invalid" {
				w.expect("status", w.d.Status.AggrStatus.Status, v1beta1.PhaseInvalid)
				w.expect("sums stay", w.d.Status.AggrStatus.Available, int32(2))
			}
			w.now = w.now.Add(time.Hour)
			before := w.d.Status.DeepCopy()
			w.step()
			w.expect("no write at rest", w.d.Status, *before)
		})
	}
}

// TestFailures: what the child's own controller cannot do, and what the API server does
// not take.
func TestFailures(t *testing.T) {
	w := newWorld(t, spec("deployment", "", web))
	w.run()
	w.children[webDep].Object["status"].(map[string]any)["conditions"] = []any{
		map[string]any{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "it takes too long"},
		map[string]any{"type": "Available", "status": "False"},
	}
	w.step()
	w.expect("told", w.condition(v1beta1.ConditionStalled), `True ProgressDeadlineExceeded: Deployment "web": it takes too long`)
	w = newWorld(t, spec("deployment", "", web))
	w.step()
	w.refused = map[Child]string{webDep: strings.Repeat("no! ", 1000)}
	p := w.plan()
	if text := p.Status.Conditions[2].Message; !strings.HasPrefix(text, `the cluster refuses Deployment "web": no! no!`) || len(text) > 2000 || len(p.Events) != 1 {
		t.Errorf("%d events, %d bytes: %s", len(p.Events), len(text), text)
	}
}

// TestStopped: an instance that the user stopped is not to run, and keeps nothing from
// being done.
func TestStopped(t *testing.T) {
	w := newWorld(t, spec("tapp", "", web))
	w.run()
	w.children[webTApp].Object["spec"].(map[string]any)["statuses"] = map[string]any{"1": "Killed", "7": "Killed", "0": "Running"}
	w.tell(webTApp, 1, 1, 1)
	w.step()
	s := w.d.Status.AggrStatus
	w.expect("sums", fmt.Sprint(s.Status, s.Desired, s.Available, s.UnAvailable), fmt.Sprint(v1beta1.PhaseRunning, 1, 1, 0))
	// Of ids that begin elsewhere those count that the TApp has.
	w.children[webTApp].Object["spec"].(map[string]any)["ordinals"] = map[string]any{"start": int64(7)}
	if got := stopped(w.children[webTApp].Object, 2); got != 1 {
		t.Errorf("%d of the instances 7 and 8 are stopped", got)
	}
	delete(w.children[webTApp].Object["spec"].(map[string]any), "ordinals")
}
