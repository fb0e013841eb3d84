package sim

import (
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// A class is a way in which the cluster of a run, or those who use it, are worse than in
// all runs. What a seed draws for one class does not depend on the others, so that a run
// with a class can be compared with the same run without it.
const (
	// Admission adds a container and an annotation to pods, and has images pulled from a
	// mirror.
	classAdmission = "admission"
	// Somebody deletes claims.
	classClaims = "claims"
	// A claim that is being deleted stays for as long as any pod mounts it, one that has
	// ended among them, as Kubernetes has it.
	classKept = "kept-claims"
	// The garbage collector stands still for a while: claims of dead owners stay.
	classCollector = "collector"
	// Containers end gracefully, and nothing starts them again.
	classExits = "exits"
	// Somebody puts finalizers on pods.
	classFinalizers = "finalizers"
	// The clocks of nodes are some seconds off.
	classClocks = "clocks"
	// Kubelets do not tell which generation of a pod they have seen.
	classOldKubelets = "old-kubelets"
	// Nodes or the API server refuse to resize pods.
	classResizes = "resizes"
	// Kubelets and drivers tell more than a status can hold.
	classMessages = "messages"
	// Templates that instances name are missing for a while.
	classTemplates = "templates"
	// Ended pods go at once: --delete-pod-after-app-finish=false.
	classFinish = "finish"
	// More TApps, in two namespaces, with up to 8 instances.
	classCrowd = "crowd"
	// There are more nodes than the controller reads for one decision; one of them is lost
	// for good, and on those that are well pods hang that are being deleted.
	classNodes = "nodes"
	// Objects come near to what etcd takes: the limit is as small as the runs are, and users
	// write specs and annotations that just fit beside what a status may say.
	classSizes = "sizes"
	// Admission gives a container other resources than its template, and tells of it or not.
	// Somebody overwrites hashes of pods.
	classResources = "resources"
	// Kubelets restart, and renew the time of the condition Ready of pods that were Ready all
	// along; minReadySeconds are minutes, and the next change comes in the soak of the last.
	classRenewed = "renewed"
	// Pods are lost, made and started while the TApp is paused or its budget is spent.
	classLosses = "losses"
	// Pods are taken away in each of the ways that kubelets and others have.
	classEvictions = "evictions"
	// Others have claims of the names of ours, and claims lose their marks or have others'.
	classOthers = "claims-of-others"
	// Policies and webhooks refuse pods and updates for a while.
	classPolicies = "policies"
	// Templates change in what means a restart: a checksum, the image of an init container.
	classRestarts = "restarts"
	// Kubelets report late what they saw of a pod: also a gate that was opened again by then.
	classLate = "late-kubelets"
)

// class is what a seed draws for one.
type class struct {
	name string
	// needs is the class that this one makes no sense without; empty: none.
	needs string
	// fails says by which fault of the product runs with the class fail. It is there by its
	// name alone, and not with any. Empty: none is known.
	fails string
	// plan adds what users do, and what goes wrong.
	plan func(p *Plan, rng *rand.Rand)
	// draft changes a TApp as it is first created.
	draft func(t *tappv1.TApp, rng *rand.Rand)
}

func classes() []class {
	return []class{
		{name: classAdmission, plan: busy("image", "label"), draft: func(t *tappv1.TApp, _ *rand.Rand) {
			t.Spec.Template.Annotations = map[string]string{meshAnnotation: meshOfTemplate}
		}},
		{name: classClaims, plan: func(p *Plan, rng *rand.Rand) {
			p.Claims = true
			p.strikes(rng, claimDeleted, claimDeleted, podEnds, foreignDelete)
			p.edits(rng, "env", "restart", "kill")
			p.strikes(rng, claimDeleted, claimLetGo, claimLetGo)
		}},
		{name: classKept, needs: classClaims, plan: func(p *Plan, rng *rand.Rand) {
			p.strikes(rng, claimDeleted, claimDeleted, evicted, evicted, podEnds)
		}},
		{name: classCollector, plan: namesakes, draft: func(t *tappv1.TApp, _ *rand.Rand) {
			t.Spec.PersistentVolumeClaimRetentionPolicy = retention(1)
		}},
		{name: classExits, plan: busy("spoil", "spoil", "image"), draft: func(t *tappv1.TApp, rng *rand.Rand) {
			t.Spec.Template.Spec.RestartPolicy = []corev1.RestartPolicy{corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure}[rng.IntN(2)]
		}},
		{name: classFinalizers, plan: func(p *Plan, rng *rand.Rand) {
			p.strikes(rng, podHeld, podHeld, podHeld, evicted, nodeTainted, nodeTainted)
			p.edits(rng, "force", "env")
		}, draft: func(t *tappv1.TApp, _ *rand.Rand) { t.Spec.ForceDeletePod = true }},
		{name: classClocks, plan: busy("image", "env")},
		{name: classOldKubelets, plan: busy("image", "resources")},
		{name: classResizes, plan: func(p *Plan, rng *rand.Rand) {
			p.Requests = true
			p.edits(rng, "resources", "resources")
		}},
		{name: classMessages, plan: busy("spoil", "image")},
		{name: classTemplates, plan: func(p *Plan, rng *rand.Rand) {
			p.edits(rng, "pool", "nowhere", "nowhere", "emptied")
			p.strikes(rng, evicted, evicted, podEnds)
		}},
		{name: classFinish, plan: func(p *Plan, rng *rand.Rand) { p.strikes(rng, podEnds, podEnds, podEnds) },
			draft: func(t *tappv1.TApp, _ *rand.Rand) {
				t.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
			}},
		{name: classCrowd, plan: crowd},
		{name: classNodes, plan: func(p *Plan, rng *rand.Rand) {
			p.Faults = append(p.Faults, Fault{Step: 60 + rng.IntN(p.Horizon/2), Kind: nodeLost})
			p.strikes(rng, podHangs, podHangs, podHangs, podHangs)
		}, draft: func(t *tappv1.TApp, _ *rand.Rand) {
			t.Spec.Replicas, t.Spec.ForceDeletePod, t.Spec.NeverMigrate = ptr.To[int32](fewReplicas), true, false
		}},
		{name: classSizes, plan: fill, draft: func(t *tappv1.TApp, rng *rand.Rand) {
			t.Spec.ProgressDeadlineSeconds, t.Spec.NeverMigrate = ptr.To[int32](30), rng.IntN(4) == 0
		}},
		{name: classResources, plan: func(p *Plan, rng *rand.Rand) {
			p.Requests = true
			p.edits(rng, "resources", "resources", "image")
			p.strikes(rng, foreignLabel, foreignLabel, foreignLabel)
		}, draft: func(t *tappv1.TApp, _ *rand.Rand) {
			t.Spec.Template.Spec.Containers = append(t.Spec.Template.Spec.Containers[:1:1], corev1.Container{Name: besides, Image: "side:v1",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m")}}})
		}},
		{name: classRenewed, plan: func(p *Plan, rng *rand.Rand) {
			p.edits(rng, "image", "env", "image", "env")
			p.strikes(rng, kubeletRestarts, kubeletRestarts, kubeletRestarts, kubeletRestarts, nodeSilent)
		}, draft: func(t *tappv1.TApp, rng *rand.Rand) { t.Spec.MinReadySeconds = 60 * (1 + rng.Int32N(3)) }},
		{name: classEvictions, plan: func(p *Plan, rng *rand.Rand) {
			p.strikes(rng, takenAway, takenAway, takenAway, podsRefused, disrupted, disrupted, podEnds, endStored)
			if at := rng.IntN(p.Horizon); rng.IntN(2) == 0 { // what ends by itself may be disrupted afterwards
				p.Faults = append(p.Faults, Fault{Step: at, Kind: podEnds, A: 1}, Fault{Step: at + 5, Kind: clockJump, A: 30}, Fault{Step: at + 10, Kind: takenAway, A: 1})
			}
		}, draft: func(t *tappv1.TApp, rng *rand.Rand) {
			t.Spec.NeverMigrate = rng.IntN(2) == 0
			t.Spec.Template.Spec.RestartPolicy = []corev1.RestartPolicy{"", "", corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever}[rng.IntN(4)]
		}},
		{name: classLosses, plan: lose, draft: func(t *tappv1.TApp, rng *rand.Rand) {
			t.Spec.Replicas, t.Spec.RevisionHistoryLimit = ptr.To(3+rng.Int32N(fewReplicas-2)), []*int32{nil, new(int32)}[rng.IntN(2)]
		}},
		{name: classOthers, plan: contest, draft: func(t *tappv1.TApp, rng *rand.Rand) {
			t.Spec.Replicas, t.Spec.PersistentVolumeClaimRetentionPolicy = ptr.To(2+rng.Int32N(3)), retention(2+rng.IntN(2))
		}},
		{name: classPolicies, plan: drawPolicies},
		{name: classRestarts, plan: busy("checksum", "checksum", "init", "checksum", "image", "init"), draft: func(t *tappv1.TApp, rng *rand.Rand) {
			t.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "init:v1"}}
			if rng.IntN(2) == 0 {
				set(&t.Spec.Template.Annotations, checksum, "0")
			}
		}},
		{name: classLate, plan: takeBack, draft: func(t *tappv1.TApp, rng *rand.Rand) {
			t.Spec.Replicas, t.Spec.MinReadySeconds = ptr.To(3+rng.Int32N(fewReplicas-2)), 30*rng.Int32N(2)
		}},
	}
}

// oneIn is how many runs there are for one with a given class, where -sim.with is "any".
// Where neither that nor -sim.without is given, each run whose seed is a multiple of
// everyAny is as if it were.
const (
	oneIn    = 12
	anyClass = "any"
	everyAny = 32
)

// drawClasses draws which classes a run has, and what comes of them.
func (p *Plan) drawClasses(with, without string) {
	if with == "" && without == "" && p.Seed%everyAny == 0 {
		with = anyClass
	}
	for i, c := range classes() {
		rng := rand.New(rand.NewPCG(uint64(p.Seed), uint64(100+i)))
		has := rng.IntN(oneIn) == 0 && with == anyClass && c.fails == "" || c.name == with || isNeeded(c.name, with)
		if !has || c.name == without || c.needs != "" && c.needs == without {
			continue
		}
		p.Classes = append(p.Classes, c.name)
		if c.plan != nil {
			c.plan(p, rng)
		}
	}
}

func isNeeded(name, by string) bool {
	return slices.ContainsFunc(classes(), func(c class) bool { return c.name == by && c.needs == name })
}

// shape changes the TApps that users create to what the classes are about.
func (p *Plan) shape(key string, t *tappv1.TApp) {
	for i, c := range classes() {
		if c.draft != nil && slices.Contains(p.Classes, c.name) {
			c.draft(t, rand.New(rand.NewPCG(uint64(p.Seed), uint64(200+10*i+slices.Index(appKeys(), key)))))
		}
	}
}

// apps that are created in the run.
func (p *Plan) apps() []string {
	var out []string
	for _, e := range p.Edits {
		if e.Kind == "create" && !slices.Contains(out, e.App) {
			out = append(out, e.App)
		}
	}
	return out
}

// edits adds such edits at any steps.
func (p *Plan) edits(rng *rand.Rand, kinds ...string) {
	apps := p.apps()
	for _, kind := range kinds {
		p.Edits = append(p.Edits, Edit{Step: 40 + rng.IntN(p.Horizon), App: apps[rng.IntN(len(apps))], Kind: kind, A: rng.IntN(60), B: rng.IntN(60)})
	}
}

// strikes adds such faults at any steps.
func (p *Plan) strikes(rng *rand.Rand, kinds ...string) {
	for _, kind := range kinds {
		p.Faults = append(p.Faults, Fault{Step: rng.IntN(p.Horizon), Kind: kind, A: rng.IntN(100)})
	}
}

// busy is a plan with some more edits.
func busy(kinds ...string) func(*Plan, *rand.Rand) {
	return func(p *Plan, rng *rand.Rand) { p.edits(rng, kinds...) }
}

// namesakes are TApps that are deleted and created again while the garbage collector
// stands still.
func namesakes(p *Plan, rng *rand.Rand) {
	p.Claims = true
	for range 2 {
		step := 60 + rng.IntN(p.Horizon)
		p.Faults = append(p.Faults, Fault{Step: step, Kind: collectorStands, A: rng.IntN(100)})
		p.Edits = append(p.Edits, Edit{Step: step + 1, App: p.apps()[0], Kind: "delete", A: 0}, Edit{Step: step + 2 + rng.IntN(20), App: p.apps()[0], Kind: "create"})
	}
}

// lose has pods lost while an update is held: by a pause, or by an update that hangs. Two go
// at once, others are killed, started and added, a revision goes, and leaders crash between
// a deletion and the creation that follows.
func lose(p *Plan, rng *rand.Rand) {
	step, app := 60+rng.IntN(60), p.apps()[0]
	edit := func(kind string, a int) {
		p.Edits = append(p.Edits, Edit{Step: step, App: app, Kind: kind, A: a, B: 2 * rng.IntN(30)})
	}
	strike := func(kinds ...string) {
		for _, kind := range kinds {
			p.Faults = append(p.Faults, Fault{Step: step, Kind: kind, A: rng.IntN(100)})
		}
	}
	if rng.IntN(3) > 0 {
		edit("pause", 0)
		step += rng.IntN(10)
	}
	edit([]string{"image", "spoil", "env"}[rng.IntN(3)], rng.IntN(60))
	step += 5 + rng.IntN(40)
	for range 4 {
		switch rng.IntN(6) {
		case 0:
			strike(foreignDelete, foreignDelete)
		case 1:
			strike(evicted, podEnds)
		case 2:
			edit("kill", rng.IntN(60))
			p.Edits = append(p.Edits, Edit{Step: step + 10 + rng.IntN(40), App: app, Kind: "start"})
		case 3:
			edit("scale", fewReplicas)
		case 4:
			strike(revisionDeleted, nodeGone)
		case 5:
			p.Faults = append(p.Faults, Fault{Step: step, Kind: crashAfter, Site: "delete pods to recreate"}, Fault{Step: step, Kind: crashBefore, Site: "create pods"})
		}
		step += 5 + rng.IntN(30)
	}
	edit("resume", 0)
	p.Horizon = max(p.Horizon, step+1)
}

// takeBack has images pushed and taken back within a few steps, again and again.
func takeBack(p *Plan, rng *rand.Rand) {
	step, app := 60+rng.IntN(60), p.apps()[0]
	for n := range 6 {
		p.Edits = append(p.Edits, Edit{Step: step, App: app, Kind: "image", A: n % 2})
		step += 2 + rng.IntN(25)
	}
	p.Horizon = max(p.Horizon, step+1)
}

func crowd(p *Plan, rng *rand.Rand) {
	had := p.apps()
	for _, key := range appKeys() {
		if !slices.Contains(had, key) {
			p.Edits = append(p.Edits, Edit{Step: rng.IntN(60), App: key, Kind: "create"})
		}
	}
	p.edits(rng, "many", "many", "image", "image", "env", "delete", "kill")
}

// has says whether the run has a class.
func (k *kubelets) has(class string) bool { return slices.Contains(k.classes, class) }

// skews are how far the clocks of the nodes are off, in seconds.
func skews() map[string]int { return map[string]int{"n1": 9, "n2": -7, "n3": 0} }

// many replicas, as a crowd has.
func many(n int) *int32 { return ptr.To(int32(fewReplicas + 1 + n%(mostReplicas-fewReplicas))) }
