package sim

import (
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/sim/apiserver"
)

// Claims of others (kubernetes/kubernetes#41153): template data-web of the workload 1 makes
// claims of the same names as template data of the TApp web-1. The rival has made some, and
// nothing else is done for it.
const (
	statefulSets  = "statefulsets"
	contested     = "shop/web-1"
	rivalName     = "1"
	rivalTemplate = "data-web"
	rivalApp      = "rival"
	rivalClaims   = 3
	// claimMark of a claim says whose it is: <kind>/<name>/<uid>.
	claimMark = "tkestack.io/claim-of"
)

func rivalKinds(kinds map[string]apiserver.Kind) {
	kinds[statefulSets] = apiserver.Kind{GVK: appsv1.SchemeGroupVersion.WithKind("StatefulSet"), New: func() object { return &appsv1.StatefulSet{} },
		NewList: func() runtime.Object { return &appsv1.StatefulSetList{} }}
}

// contest has others make claims of our names, and claims lose or change their marks, as by a
// former version, a restore or a namesake.
func contest(p *Plan, rng *rand.Rand) {
	p.Claims = true
	if !slices.Contains(p.apps(), contested) {
		p.Edits = append(p.Edits, Edit{Step: 30 + rng.IntN(30), App: contested, Kind: "create"})
	}
	p.Faults = append(p.Faults, Fault{Step: rng.IntN(60), Kind: rivalComes, A: rng.IntN(100)})
	p.edits(rng, "scale", "scale", "scale", "retention", "env")
	p.strikes(rng, claimUnmarked, claimUnmarked, claimOfNamesake, claimOfOther, claimByHand, claimByHand, foreignDelete)
}

// rivalArrives is a workload with claims of the contested names: a StatefulSet, or a TApp for
// which nothing is done. Its claims have the rival's labels, or its mark, too.
func (w *world) rivalArrives(n int) {
	app := map[string]string{"app": rivalApp}
	var err error
	kind, uid := "StatefulSet", types.UID("")
	template := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: rivalTemplate}}
	if n%2 == 0 {
		s := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: rivalName}}
		s.Spec.Selector, s.Spec.VolumeClaimTemplates = &metav1.LabelSelector{MatchLabels: app}, []corev1.PersistentVolumeClaim{template}
		_, err = w.Create(statefulSets, s, w.as("rival"))
		uid = s.UID
	} else {
		t := &tappv1.TApp{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: rivalName, Annotations: map[string]string{tappv1.AnnotationRestoring: "true"}}}
		t.Spec.Replicas, t.Spec.Selector, t.Spec.VolumeClaimTemplates = ptr.To[int32](rivalClaims), &metav1.LabelSelector{MatchLabels: app}, []corev1.PersistentVolumeClaim{template}
		t.Spec.Template.Labels = app
		t.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: images()[0]}}
		_, err = w.Create(tapps, t, w.as("rival"))
		kind, uid = tappv1.Kind, t.UID
	}
	if err != nil {
		return
	}
	for id := range rivalClaims {
		c := bareClaim(contested, id)
		c.Labels = map[string]string{"app": rivalApp, tappv1.LabelInstanceID: fmt.Sprint(id)}
		if n%4 > 1 {
			c.Annotations = map[string]string{claimMark: fmt.Sprintf("%s/%s/%s", kind, rivalName, uid)}
		}
		_, _ = w.Create(claims, c, w.as("rival"))
	}
}

// bareClaim has a name of an instance, and says nothing of whose it is.
func bareClaim(app string, id int) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: path.Dir(app), Name: path.Base(claimOf(fmt.Sprintf("%s-%d", app, id)))}}
	c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	return c
}

// strikeClaim is what somebody does to a claim, or to the place of one.
func (w *world) strikeClaim(f Fault) {
	if f.Kind == claimByHand {
		app := w.plan.apps()[f.A%len(w.plan.apps())]
		c := bareClaim(app, f.A%mostReplicas)
		if _, err := w.Create(claims, c, w.as("somebody")); err == nil {
			w.oracle.strange[keyOf(c)] = true
		}
		return
	}
	list := apiserver.All[*corev1.PersistentVolumeClaim](w.Store, claims)
	if len(list) == 0 {
		return
	}
	c := list[f.A%len(list)]
	if c.Labels["app"] == rivalApp {
		return
	}
	w.oracle.strange[keyOf(c)] = true
	_, _ = w.Update(claims, keyOf(c), "", w.as("somebody"), func(o object) error {
		c := o.(*corev1.PersistentVolumeClaim)
		switch f.Kind {
		case claimUnmarked:
			delete(c.Annotations, claimMark)
			if f.A%3 == 0 {
				c.Labels = nil
			}
		case claimOfNamesake:
			app, _ := stem(instanceOf(keyOf(c)))
			set(&c.Annotations, claimMark, fmt.Sprintf("%s/%s/%s", tappv1.Kind, path.Base(app), "dead"))
		case claimOfOther:
			set(&c.Annotations, claimMark, fmt.Sprintf("%s/%s/%s", tappv1.Kind, "somebody", "u0"))
		}
		return nil
	})
}

// mendClaims has people take away what others made under our names.
func (w *world) mendClaims() {
	for _, c := range apiserver.All[*corev1.PersistentVolumeClaim](w.Store, claims) {
		switch mark := c.Annotations[claimMark]; {
		case c.Labels["app"] == rivalApp:
			_, _ = w.Remove(claims, keyOf(c), metav1.DeleteOptions{}, w.as("user"))
		case strings.Contains(mark, "/somebody/"):
			_, _ = w.Update(claims, keyOf(c), "", w.as("user"), func(o object) error {
				delete(o.(*corev1.PersistentVolumeClaim).Annotations, claimMark)
				return nil
			})
		}
	}
	for _, resource := range []string{statefulSets, tapps} {
		_, _ = w.Remove(resource, apiserver.KeyOf(namespace, rivalName), metav1.DeleteOptions{}, w.as("user"))
	}
}

// isOthers says whether a claim is proven another's than the TApp's: by its controller, by its
// mark, or by its labels and a workload that makes this very name.
func (o *oracle) isOthers(t *tappv1.TApp, c *corev1.PersistentVolumeClaim, b *belief) bool {
	if c == nil {
		return false
	}
	if owner := controllerOf(c); owner != "" {
		return owner != t.UID
	}
	if mark := strings.Split(c.Annotations[claimMark], "/"); len(mark) == 3 {
		return mark[0] != tappv1.Kind || mark[1] != t.Name
	}
	_, instance := c.Labels[tappv1.LabelInstanceID]
	selector, err := metav1.LabelSelectorAsSelector(t.Spec.Selector)
	return err == nil && instance && keyOf(t) == contested && !selector.Matches(labels.Set(c.Labels)) && c.Labels["app"] == rivalApp && o.hasRival(b)
}

// hasRival says whether a process knew, for all that it saw, of a workload that makes the
// contested names.
func (o *oracle) hasRival(b *belief) bool {
	key := apiserver.KeyOf(namespace, rivalName)
	if o.w.Get(statefulSets, key) != nil {
		return true
	}
	return !slices.ContainsFunc(versionsOf[*tappv1.TApp](o, tapps, key, b), func(t *tappv1.TApp) bool { return t == nil })
}

// isProvenOurs says whether a policy may go by the claim: the TApp controls it, or its mark has
// the TApp's UID.
func isProvenOurs(t *tappv1.TApp, c *corev1.PersistentVolumeClaim) bool {
	return c != nil && (controllerOf(c) == t.UID || strings.HasSuffix(c.Annotations[claimMark], "/"+string(t.UID)))
}

// mayGo is S3 of names, which prove nothing: a claim is deleted only where it was proven ours
// before the plan that deletes it.
func (o *oracle) mayGo(name string, seen []*tappv1.TApp, b *belief) error {
	for _, t := range seen {
		for _, c := range versionsOf[*corev1.PersistentVolumeClaim](o, claims, name, b) {
			if isProvenOurs(t, c) && (!o.markedBy(c, b) || c.Labels["app"] == t.Name) {
				return nil
			}
		}
	}
	return fmt.Errorf("S3: claim %s is deleted, and nothing but its name says that it is the TApp's", name)
}

// markedBy says whether it was this very plan that marked the claim.
func (o *oracle) markedBy(claim *corev1.PersistentVolumeClaim, b *belief) bool {
	return slices.ContainsFunc(o.w.Tables[claims].History, func(c *change) bool {
		now, _ := c.After.(*corev1.PersistentVolumeClaim)
		before, _ := c.Before.(*corev1.PersistentVolumeClaim)
		return now != nil && before != nil && now.UID == claim.UID && c.Version > b.told[claims] && causeOf(c) != nil && causeOf(c).belief == b &&
			now.Annotations[claimMark] != before.Annotations[claimMark]
	})
}

// touches is S7 of claims: one that is proven another's is not written to.
func (o *oracle) touches(c *change, seen []*tappv1.TApp) error {
	if c.Before == nil {
		return nil
	}
	for _, t := range seen {
		for _, was := range versionsOf[*corev1.PersistentVolumeClaim](o, claims, c.Key(), causeOf(c).belief) {
			if !o.isOthers(t, was, causeOf(c).belief) {
				return nil
			}
		}
	}
	return fmt.Errorf("S7: claim %s is written to, and is proven another's", c.Key())
}

// mountsOthers says whether a claim was proven another's for all that the process saw.
func (o *oracle) mountsOthers(pod *corev1.Pod, claim string, b *belief) bool {
	app, _ := stem(keyOf(pod))
	seen := o.appsSeen(app, b)
	for _, t := range seen {
		for _, c := range versionsOf[*corev1.PersistentVolumeClaim](o, claims, claim, b) {
			if !o.isOthers(t, c, b) {
				return false
			}
		}
	}
	return len(seen) > 0
}

// mayContest says whether a workload that is read can make claims of a TApp's names.
func mayContest(app string, r *request) bool {
	name := path.Base(app)
	return path.Dir(app) == r.Namespace && (name == r.Name || strings.HasSuffix(name, "-"+r.Name))
}
