package tapp

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/controller/write"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
)

// makes claims <template>-<name>-<id>, and selects app=<name>.
func makesClaims(name, template string) *tappv1.TApp {
	t := someTApp(name)
	t.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	t.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: template}}}
	return t
}

// TestCreateClaimThatExists: a claim that the cache lacks is taken unless it is proven
// another's. The TApp is db with template data-eu, the other one eu-db with template data.
func TestCreateClaimThatExists(t *testing.T) {
	const (
		path  = "/api/v1/namespaces/ns/persistentvolumeclaims/data-eu-db-1"
		sets  = "GET /apis/apps/v1/namespaces/ns/statefulsets/"
		mark  = `"tkestack.io/claim-of":"TApp/db/uid-db"`
		tail  = `"labels":{"tapp_instance_key":"1"},"resourceVersion":"31","uid":"c1"}}`
		taken = "NameTaken: there is a claim data-eu-db-1 "
		waits = "; the instance waits until it is gone"
	)
	take, find := `PATCH `+path+` {"metadata":{"annotations":{`+mark+`},`+tail, `PATCH `+path+` {"metadata":{"annotations":{"tkestack.io/claim-found":"true",`+mark+`},`+tail
	first := []string{"POST", "GET " + path}
	labels := func(labels map[string]string) func(*corev1.PersistentVolumeClaim) {
		return func(c *corev1.PersistentVolumeClaim) { c.Labels = labels }
	}
	owned := func(uid string) func(*corev1.PersistentVolumeClaim) {
		return func(c *corev1.PersistentVolumeClaim) {
			c.OwnerReferences = []metav1.OwnerReference{{Kind: "TApp", Name: "db", UID: "uid-" + "db", Controller: new(true)}}
			if uid != "" {
				c.OwnerReferences[0].UID = "old"
			}
		}
	}
	theirs := labels(map[string]string{"app": "eu-db"})
	for name, c := range map[string]struct {
		change  func(*corev1.PersistentVolumeClaim)
		mounted bool // by the pod of the instance
		tapp    bool // the other one is a TApp
		set     int  // what the API server answers about the StatefulSet eu-db; 0: 404
		patch   int  // and about the patch; 0: 200
		asks    []string
		err     string
		wrote   string
	}{
		"without labels":                  {asks: []string{find}, err: "stale", wrote: "32"},
		"without labels, mounted":         {mounted: true, asks: []string{find}, err: "stale", wrote: "32"},
		"with the TApp's labels":          {change: labels(map[string]string{"app": "db"}), asks: []string{take}, err: "stale", wrote: "32"},
		"the TApp's by control":           {change: owned(""), asks: []string{take}, err: "stale", wrote: "32"},
		"the cache lacks it":              {change: labels(map[string]string{"tapp_instance_key": "1"}), err: "stale", wrote: "31"},
		"a namesake controls it":          {change: owned("old"), err: taken + "that TApp db controls (UID old), and not TApp db (UID uid-db)" + waits},
		"a namesake controls it, mounted": {change: owned("old"), mounted: true, asks: []string{`PATCH ` + path + ` {"metadata":{"uid":"c1","labels":{"tapp_instance_key":"1"}}}`}, err: "stale", wrote: "32"},
		"another TApp's":                  {change: theirs, tapp: true, asks: []string{sets + "eu-db", sets + "db"}, err: taken + "with the labels of TApp eu-db, and not of TApp db, and both make that name" + waits},
		"a StatefulSet's":                 {change: theirs, set: 200, asks: []string{sets + "eu-db", sets + "db"}, err: taken + "with the labels of StatefulSet eu-db, and not of TApp db, and both make that name" + waits},
		"labels of nobody":                {change: theirs, asks: []string{sets + "eu-db", sets + "db", find}, err: "stale", wrote: "32"},
		"StatefulSets may not be read":    {change: theirs, set: 403, asks: []string{sets + "eu-db", sets + "db", find}, err: "stale", wrote: "32"},
		"a StatefulSet cannot be read":    {change: theirs, set: 500, asks: []string{sets + "eu-db", sets + "db"}, err: "read StatefulSet eu-db to tell whose a claim is"},
		"another was faster":              {patch: 409, asks: []string{find}, err: "stale"},
		"it went away just before":        {patch: 404, asks: []string{find}, err: "stale"},
		"it may not be changed":           {patch: 403, asks: []string{find}, err: "no"},
		"another one by the labels, marks": {change: func(c *corev1.PersistentVolumeClaim) {
			c.Annotations = map[string]string{tappv1.AnnotationClaimOf: "TApp/eu-db/u"}
		}, err: taken + "of TApp eu-db, and not of TApp db, as its annotation tkestack.io/claim-of says" + waits},
	} {
		t.Run(name, func(t *testing.T) {
			s := &stub{answer: func(method, path, _ string) (int, any) {
				switch {
				case method == http.MethodPost:
					return apiError(409, metav1.StatusReasonAlreadyExists, "exists")
				case strings.Contains(path, "/statefulsets/eu-db") && c.set == 200:
					set := makesClaims("eu-db", "data")
					return 200, appsv1.StatefulSet{ObjectMeta: set.ObjectMeta, Spec: appsv1.StatefulSetSpec{Selector: set.Spec.Selector, VolumeClaimTemplates: set.Spec.VolumeClaimTemplates}}
				case strings.Contains(path, "/statefulsets/eu-db") && c.set != 0:
					return apiError(c.set, map[int]metav1.StatusReason{403: metav1.StatusReasonForbidden, 500: metav1.StatusReasonInternalError}[c.set], "no")
				case strings.Contains(path, "/statefulsets/"):
					return apiError(404, metav1.StatusReasonNotFound, "none")
				case method == http.MethodPatch && c.patch != 0:
					return apiError(c.patch, map[int]metav1.StatusReason{403: metav1.StatusReasonForbidden, 404: metav1.StatusReasonNotFound, 409: metav1.StatusReasonConflict}[c.patch], "no")
				case method == http.MethodPatch:
					return 200, someClaim("data-eu-db-1", "32")
				}
				claim := someClaim("data-eu-db-1", "31")
				claim.UID = "c1"
				if c.change != nil {
					c.change(claim)
				}
				return 200, claim
			}}
			controller := s.newController(t)
			us := makesClaims("db", "data-eu")
			known := []*tappv1.TApp{us}
			if c.tapp {
				known = append(known, makesClaims("eu-db", "data"))
			}
			for _, tapp := range known {
				if err := controller.tapps.GetStore().Add(tapp); err != nil {
					t.Fatal(err)
				}
			}
			a := &plan.Action{Op: plan.OpCreateClaim, ID: "1", Claim: someClaim("data-eu-db-1", "")}
			if c.mounted {
				a.Reason = plan.ReasonClaimUnlabelled
			}
			var o object
			err := createClaim(t.Context(), controller.newWriter(t.Context(), us, &o), a)
			want := c.err
			if want == "stale" {
				want = write.ErrStale.Error()
			}
			if err == nil || !strings.Contains(err.Error(), want) || strings.HasPrefix(want, taken) && err.Error() != want {
				t.Errorf("got error %v, want %q", err, want)
			}
			asks := s.asked()
			asks[0], _, _ = strings.Cut(asks[0], " ")
			if all := slices.Concat(first, c.asks); !slices.Equal(asks, all) {
				t.Errorf("asked\n%s\nwant\n%s", strings.Join(asks, "\n"), strings.Join(all, "\n"))
			}
			if wrote := o.guard.Written()[storeClaims]; wrote != c.wrote {
				t.Errorf("wrote version %q, want %q", wrote, c.wrote)
			}
		})
	}
}

// TestWorkloadsAreRead: a plan that cannot tell whose a claim is gets what it asks for, and
// is made again. What cannot be read is not absent.
func TestWorkloadsAreRead(t *testing.T) {
	for name, c := range map[string]struct {
		code   int
		other  bool // there is a TApp that makes the name
		reason string
		err    string
	}{
		"another TApp's":               {404, true, "NameTaken", ""},
		"nobody's":                     {404, false, "ClaimUnmarked", ""},
		"StatefulSets may not be read": {403, false, "ClaimUnmarked", ""},
		"StatefulSets cannot be read":  {500, false, "ClaimUnclear", "read StatefulSet db to tell whose a claim is: no"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &stub{answer: func(string, string, string) (int, any) {
				return apiError(c.code, map[int]metav1.StatusReason{403: metav1.StatusReasonForbidden, 404: metav1.StatusReasonNotFound, 500: metav1.StatusReasonInternalError}[c.code], "no")
			}}
			controller := s.newController(t)
			us := makesClaims("db", "data-eu")
			us.Spec.Replicas = new(int32(1))
			us.Spec.Template.Labels, us.Spec.Template.Spec.Containers = us.Spec.Selector.MatchLabels, []corev1.Container{{Name: "a", Image: "a"}}
			known := []*tappv1.TApp{us}
			if c.other {
				known = append(known, makesClaims("eu-db", "data"))
			}
			for _, tapp := range known {
				if err := controller.tapps.GetStore().Add(tapp); err != nil {
					t.Fatal(err)
				}
			}
			claim := someClaim("data-eu-db-0", "30")
			claim.Labels = map[string]string{tappv1.LabelInstanceID: "0", "app": "eu-db"}
			p, err := controller.compute(t.Context(), &view{tapp: us, claims: []*corev1.PersistentVolumeClaim{claim}}, &object{})
			if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("got error %v, want %q", err, c.err)
			}
			if len(p.Instances) != 1 || p.Instances[0].Reason != c.reason {
				t.Errorf("got %+v, want %s", p.Instances, c.reason)
			}
			const sets = "GET /apis/apps/v1/namespaces/ns/statefulsets/"
			if asked := s.asked(); !slices.Equal(asked, []string{sets + "db", sets + "eu-db"}) {
				t.Errorf("asked %q", asked)
			}
		})
	}
}
