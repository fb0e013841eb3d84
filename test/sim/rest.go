package sim

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/sim/apiserver"
)

// heal ends all faults, and has users and operators put right what only they can.
func (w *world) heal() {
	w.until = map[string]int{}
	w.armed, w.refusing = nil, 0
	w.follow()
	w.until, w.idle = map[string]int{}, false // what the plan has for this very step
	w.recover()
	for _, r := range w.alive()[min(1, len(w.alive())):] {
		w.kill(r)
	}
	for _, r := range w.requests() {
		if r.abandoned.Load() {
			w.done(r)
		}
	}
	w.mendClaims()
	for _, t := range apiserver.All[*tappv1.TApp](w.Store, tapps) {
		mended := func(o object) error {
			spec := &o.(*tappv1.TApp).Spec
			mend(spec)
			spec.ForceDeletePod = spec.ForceDeletePod || w.lost != "" // else its pods wait for ever, as they are told to
			spec.NeverMigrate = spec.NeverMigrate && w.lost == ""
			return nil
		}
		if _, err := w.Update(tapps, keyOf(t), "", w.as("user"), mended); err != nil { // there is no room for it
			_, _ = w.Update(tapps, keyOf(t), "", w.as("user"), func(o object) error {
				empty(o.(*tappv1.TApp))
				return mended(o)
			})
		}
	}
	for _, pod := range apiserver.All[*corev1.Pod](w.Store, pods) {
		w.mendPod(pod)
	}
	for _, pod := range apiserver.All[*corev1.Pod](w.Store, pods) {
		w.letClaimsGo(pod)
	}
	if !slices.ContainsFunc(w.alive(), func(r *replica) bool { return !r.stopping }) {
		_ = w.start()
		w.trace.say(w.steps, w.now(), "%s starts", w.replicas[len(w.replicas)-1].Name)
	}
	w.trace.say(w.steps, w.now(), "from here on nothing goes wrong")
}

// mend a spec: what is broken in it is rolled back, and what holds it up is lifted.
func mend(s *tappv1.TAppSpec) {
	s.Paused = false
	s.UpdateStrategy.InPlaceUpdate.Policy = tappv1.InPlaceIfPossible
	if _, exists := s.TemplatePool[s.UpdateStrategy.Template]; !exists {
		s.UpdateStrategy.Template = ""
	}
	for id, name := range s.Templates {
		if _, exists := s.TemplatePool[name]; !exists {
			delete(s.Templates, id)
		}
	}
	for n := range 2 {
		c := &templateOf(s, n).Spec.Containers[0]
		if slices.Contains(spoilt(), c.Image) {
			c.Image = images()[0]
		}
	}
}

// mendPod gives back what somebody took from a pod, and removes one that stands in
// the way of an instance.
func (w *world) mendPod(pod *corev1.Pod) {
	app, id := stem(keyOf(pod))
	owner := controllerOf(pod)
	t, ok := apiserver.Find[*tappv1.TApp](w.Store, tapps, app)
	switch {
	case owner == "" && (!ok || t.DeletionTimestamp != nil), w.isStranded(pod, ok && owner == t.UID):
		_, _ = w.Remove(pods, keyOf(pod), apiserver.DeleteNow(), w.as("user"))
	case ok && owner == t.UID, owner == "" && pod.Labels[tappv1.LabelInstanceID] == id:
		_, _ = w.Update(pods, keyOf(pod), "", w.as("user"), func(o object) error {
			set(&o.(*corev1.Pod).Labels, "app", path.Base(app))
			return nil
		})
	case owner == "" || owner == foreignOwner().UID:
		_, _ = w.Remove(pods, keyOf(pod), apiserver.DeleteNow(), w.as("user"))
	}
}

// isStranded says whether a pod is on the node that is lost for good, and no TApp may remove
// it: its owner is gone, or somebody took it from its owner as it was being deleted already.
func (w *world) isStranded(pod *corev1.Pod, owned bool) bool {
	return w.lost != "" && pod.Spec.NodeName == w.lost && !owned && (pod.DeletionTimestamp != nil || controllerOf(pod) != "")
}

// atRest checks where a run has ended: L1, and S6.
func (w *world) atRest() error {
	for _, t := range apiserver.All[*tappv1.TApp](w.Store, tapps) {
		if err := w.settled(t); err != nil {
			return fmt.Errorf("L1: at rest, and TApp %s is not as it should be: %w", t.Name, err)
		}
	}
	for _, pod := range apiserver.All[*corev1.Pod](w.Store, pods) {
		if owner := controllerOf(pod); owner != "" && owner != foreignOwner().UID {
			app, _ := stem(keyOf(pod))
			if t, ok := apiserver.Find[*tappv1.TApp](w.Store, tapps, app); !ok || t.UID != owner {
				return fmt.Errorf("L1: at rest, and pod %s of a TApp that is gone is there", pod.Name)
			}
		}
	}
	return nil
}

func (w *world) settled(stored *tappv1.TApp) error {
	if stored.DeletionTimestamp != nil {
		return fmt.Errorf("it is being deleted, and never goes")
	}
	t := *stored
	t.Spec = *stored.Spec.DeepCopy()
	tappv1.Default(&t)
	hashes, running, ready := map[string]string{}, int32(0), int32(0)
	for n := range max(mostReplicas, int(*t.Spec.Replicas)) + 1 {
		id := strconv.Itoa(n)
		pod, exists := apiserver.Find[*corev1.Pod](w.Store, pods, keyOf(&t)+"-"+id)
		if exists && controllerOf(pod) != t.UID {
			exists = false
		}
		if why := wanted(&t, id); why != "" {
			if exists {
				return fmt.Errorf("instance %s has a pod, and %s", id, why)
			}
			continue
		}
		if !exists {
			pod = nil
		}
		running++
		if w.oracle.isCompleted(&t, pod, id) {
			if !w.oracle.ended[instanceKey(&t, id)] {
				return fmt.Errorf("S8: instance %s stays down, and never came to its end", id)
			}
			if pod != nil && w.has(classFinish) {
				return fmt.Errorf("instance %s came to its end, and its pod is there, which was to go at once", id)
			}
			running--
			continue
		}
		switch {
		case !exists:
			return fmt.Errorf("instance %s has no pod", id)
		case pod.DeletionTimestamp != nil || !isReady(pod):
			return fmt.Errorf("the pod of instance %s is not ready:%s", id, describe(pod))
		case conditionOf(pod, corev1.PodResizePending) != nil:
			return fmt.Errorf("S6: the node of instance %s refuses the resources of its template", id)
		case !follows(pod, template(&t, id)) && !w.tampered[pod.UID]:
			return fmt.Errorf("S6: instance %s does not follow its template:%s", id, describe(pod))
		}
		ready++
		hash, name := pod.Labels[tappv1.LabelTemplateHash], templateName(&t, id)
		if has := hashes[name]; has != "" && has != hash {
			return fmt.Errorf("S6: instances of template %s have the hashes %s and %s", name, has, hash)
		}
		hashes[name] = hash
		if err := w.claimed(&t, id); err != nil {
			return err
		}
	}
	if err := w.oracle.leftBehind(&t); err != nil {
		return err
	}
	return told(&t, running, ready)
}

// claimed says whether the claims of an instance are there, and go with the TApp if
// and only if that is the policy.
func (w *world) claimed(t *tappv1.TApp, id string) error {
	for _, c := range t.Spec.VolumeClaimTemplates {
		claim, ok := apiserver.Find[*corev1.PersistentVolumeClaim](w.Store, claims, claimOf(keyOf(t)+"-"+id))
		asked, wants := claim.Spec.Resources.Requests[corev1.ResourceStorage], c.Spec.Resources.Requests[corev1.ResourceStorage]
		switch {
		case !ok:
			return fmt.Errorf("instance %s lacks a claim", id)
		case claim.DeletionTimestamp != nil: // for as long as the pod runs
		case w.has(classOthers) && !isProvenOurs(t, claim):
			return fmt.Errorf("S3: claim %s of a running instance is not marked as the TApp's", claim.Name)
		case w.oracle.strange[keyOf(claim)] && !ownedByTApp(claim): // no policy need be about it
		case ownedByTApp(claim) != (t.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted == tappv1.DeletePersistentVolumeClaim):
			return fmt.Errorf("S3: the owners of claim %s are not what the policy says", claim.Name)
		case asked.Cmp(wants) < 0:
			return fmt.Errorf("claim %s is too small", claim.Name)
		}
	}
	return nil
}

// told says whether the status tells the truth.
func told(t *tappv1.TApp, running, ready int32) error {
	s := &t.Status
	var wrong []string
	note := func(bad bool, format string, args ...any) {
		if bad {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	failed := slices.Contains(slices.Collect(maps.Values(s.Statuses)), tappv1.InstanceFailed)
	note(s.ObservedGeneration != t.Generation, "observedGeneration is %d of %d", s.ObservedGeneration, t.Generation)
	note(s.ReadyReplicas != ready, "readyReplicas is %d, not %d", s.ReadyReplicas, ready)
	note(s.AvailableReplicas != running, "availableReplicas is %d, not %d", s.AvailableReplicas, running)
	note(s.UpdatedReplicas < ready, "updatedReplicas is %d of %d", s.UpdatedReplicas, ready)
	note(running > 0 && !failed && !meta.IsStatusConditionTrue(s.Conditions, tappv1.ConditionReady), "Ready is not True")
	note(meta.IsStatusConditionTrue(s.Conditions, tappv1.ConditionStalled), "Stalled is True")
	for id, state := range t.Spec.Statuses {
		num, _ := number(id)
		note(state == tappv1.InstanceKilled && num < int(*t.Spec.Replicas) && s.Statuses[id] != tappv1.InstanceKilled, "instance %s is %s, not Killed", id, s.Statuses[id])
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return fmt.Errorf("the status is wrong: %s", strings.Join(wrong, ", "))
	}
	return nil
}
