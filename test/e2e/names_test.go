//go:build cluster

package e2e

import (
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/gen"
)

// annotationClaimOf is the mark of a claim: the kind, the name and the UID of whose it is.
const annotationClaimOf = "tkestack.io/claim-of"

// database is a TApp with a claim at /data.
func database(name, claim string, opts ...gen.Option) *tappv1.TApp {
	return gen.TApp(name, append([]gen.Option{withClaim("16Mi", func(c *corev1.PersistentVolumeClaim) { c.Name = claim }), gen.Default(stopsSoon),
		func(t *tappv1.TApp) {
			t.Spec.Template.Spec.Volumes[0].Name = claim
			t.Spec.Template.Spec.Containers[0].VolumeMounts[0].Name = claim
		}}, opts...)...)
}

// deletesClaims has the claims of instances go that are scaled down.
func deletesClaims(t *tappv1.TApp) {
	retention(tappv1.PersistentVolumeClaimRetentionPolicy{WhenScaled: tappv1.DeletePersistentVolumeClaim})(t)
}

// makeClaim makes one by hand, or as a restore does.
func makeClaim(t *testing.T, ns, name string, labels, annotations map[string]string) {
	t.Helper()
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: annotations}}
	c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("16Mi")}
	if _, err := suite.Kube.CoreV1().PersistentVolumeClaims(ns).Create(t.Context(), c, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// isTaken waits until the TApp tells that a claim of its is another one's, with both names.
func isTaken(t *testing.T, ns, name, claim, owner string) {
	t.Helper()
	whole := regexp.MustCompile(`(^|[^\w-])` + owner + `($|[^\w-])`) // "db" is in "eu-db", and both in the claim's name
	tappWhere(t, ns, name, "says that claim "+claim+" is taken by "+owner, func(tapp *tappv1.TApp) string {
		for _, c := range tapp.Status.Conditions {
			if strings.Contains(c.Message, claim) && whole.MatchString(c.Message) {
				return ""
			}
		}
		return "it does not"
	})
}

// Two TApps whose claims have the same names: the second one does not touch the first one's, neither to read what is in
// them nor to delete them. Reported of others: kubernetes/kubernetes#41153.
func TestClaimNamesOfTwoTApps(t *testing.T) {
	t.Parallel()
	names := []string{"data-eu-db-0", "data-eu-db-1", "data-eu-db-2"}
	for name, c := range map[string]struct {
		first, second *tappv1.TApp
		unmarked      bool // the claims were made by a version that marks none
	}{
		"claim-with-the-longer-name-comes-last":  {database("eu-db", "data"), database("db", "data-eu", deletesClaims), false},
		"claim-with-the-longer-name-comes-first": {database("db", "data-eu"), database("eu-db", "data", deletesClaims), false},
		"claims-without-a-mark":                  {database("eu-db", "data"), database("db", "data-eu", deletesClaims), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := namespace(t)
			if c.unmarked {
				for id, claim := range names {
					makeClaim(t, ns, claim, map[string]string{"app": c.first.Name, tappv1.LabelInstanceID: fmt.Sprint(id)}, nil)
				}
			}
			create(t, ns, c.first.DeepCopy())
			if c.unmarked {
				create(t, ns, c.second.DeepCopy())
			}
			settled(t, ns, c.first.Name)
			if !c.unmarked {
				create(t, ns, c.second.DeepCopy())
			}
			first := map[string]*corev1.Pod{}
			for id := range 3 {
				p := pod(t, ns, fmt.Sprintf("%s-%d", c.first.Name, id))
				first[p.Name] = p
				remember(t, ns, p)
			}
			before := onlyClaims(t, ns, names...)
			isTaken(t, ns, c.second.Name, names[0], c.first.Name)
			change(t, ns, c.second.Name, gen.Replicas(1))
			isTaken(t, ns, c.second.Name, names[0], c.first.Name)
			last := first[c.first.Name+"-2"]
			deletePods(t, ns, last.Name)
			follows(t, ns, last)
			remembers(t, ns, last)
			change(t, ns, c.second.Name, gen.Replicas(0))
			settled(t, ns, c.second.Name)
			if after := onlyClaims(t, ns, names...); !maps.Equal(before, after) {
				t.Errorf("the claims were %v, and are %v", before, after)
			}
			for name, p := range first {
				if name != last.Name && pod(t, ns, name).UID != p.UID {
					t.Errorf("pod %s was made anew", name)
				}
			}
			settled(t, ns, c.first.Name)
		})
	}
}

// A claim of an instance's name that somebody has made before is used, whatever its labels, unless it is proven
// another's. It is marked then, and its data stays.
func TestClaimsMadeBefore(t *testing.T) {
	t.Parallel()
	ours := map[string]string{"app": "db", tappv1.LabelInstanceID: "0"}
	for name, c := range map[string]struct {
		labels, annotations map[string]string
		taken               bool
	}{
		"by-hand":                 {nil, nil, false},
		"by-a-restore":            {map[string]string{"velero.io/restore-name": "friday"}, nil, false},
		"by-a-former-version":     {ours, nil, false},
		"of-a-former-life":        {ours, map[string]string{annotationClaimOf: "TApp/db/00000000-0000-0000-0000-000000000000"}, false},
		"of-another-one-that-was": {map[string]string{"app": "gone", tappv1.LabelInstanceID: "0"}, nil, false},
		"marked-as-another-one's": {ours, map[string]string{annotationClaimOf: "TApp/eu-db/00000000-0000-0000-0000-000000000000"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := namespace(t)
			makeClaim(t, ns, "data-db-0", c.labels, c.annotations)
			before, err := claims(t.Context(), ns)
			if err != nil {
				t.Fatal(err)
			}
			tapp := create(t, ns, database("db", "data", gen.Replicas(2), deletesClaims))
			if c.taken {
				isTaken(t, ns, "db", "data-db-0", "eu-db")
				podWhere(t, ns, "db-1", "runs", func(p *corev1.Pod) string { return unless(isReady(p), "not yet") })
				onlyPods(t, ns, "db-1")
				change(t, ns, "db", gen.Replicas(0))
				settled(t, ns, "db")
				onlyClaims(t, ns, "data-db-0")
				return
			}
			settled(t, ns, "db")
			mark := "TApp/db/" + string(tapp.UID)
			claimsWhere(t, ns, "are marked", func(c *corev1.PersistentVolumeClaim) string {
				return unless(c.Annotations[annotationClaimOf] == mark, fmt.Sprintf("has %v, and should be marked %s", c.Annotations, mark))
			})
			if now := onlyClaims(t, ns, "data-db-0", "data-db-1"); now["data-db-0"] != before["data-db-0"].UID {
				t.Error("claim data-db-0 was made anew")
			}
		})
	}
}
