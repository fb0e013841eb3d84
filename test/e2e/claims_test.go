//go:build cluster

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/gen"
)

// holdGrowth is the annotation by which the cluster's storage puts off the growth
// of a claim.
const holdGrowth = "devcluster.tkestack.io/hold-growth"

// withClaim gives every instance a claim named data, mounted at /data, in place of
// a volume of the template.
func withClaim(size string, edits ...func(*corev1.PersistentVolumeClaim)) gen.Option {
	return func(t *tappv1.TApp) {
		c := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}}
		c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
		for _, edit := range edits {
			edit(&c)
		}
		t.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{c}
		t.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		t.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	}
}

// request has the claim templates ask for a size.
func request(size string) gen.Option {
	return func(t *tappv1.TApp) {
		t.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(size)
	}
}

func retention(p tappv1.PersistentVolumeClaimRetentionPolicy) gen.Option {
	return func(t *tappv1.TApp) { t.Spec.PersistentVolumeClaimRetentionPolicy = &p }
}

// claims returns the claims of a namespace that are not being deleted, by name.
func claims(ctx context.Context, ns string) (map[string]*corev1.PersistentVolumeClaim, error) {
	list, err := suite.Kube.CoreV1().PersistentVolumeClaims(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	out := map[string]*corev1.PersistentVolumeClaim{}
	for i := range list.Items {
		if c := &list.Items[i]; c.DeletionTimestamp == nil {
			out[c.Name] = c
		}
	}
	return out, nil
}

// onlyClaims waits until exactly these claims are left, and returns their UIDs.
func onlyClaims(t *testing.T, ns string, want ...string) map[string]types.UID {
	t.Helper()
	uids := map[string]types.UID{}
	eventually(t, fmt.Sprintf("the claims are %v", want), func(ctx context.Context) error {
		got, err := claims(ctx, ns)
		if err != nil {
			return err
		}
		if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
			return fmt.Errorf("they are %v", names)
		}
		for name, c := range got {
			uids[name] = c.UID
		}
		return nil
	})
	return uids
}

// claimsWhere waits until check returns "" for every claim of the namespace.
func claimsWhere(t *testing.T, ns, what string, check func(*corev1.PersistentVolumeClaim) string) {
	t.Helper()
	eventually(t, "claims: "+what, func(ctx context.Context) error {
		got, err := claims(ctx, ns)
		if err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(got)) {
			if wrong := check(got[name]); wrong != "" {
				return fmt.Errorf("claim %s %s", name, wrong)
			}
		}
		return nil
	})
}

// haveSize is the check for claims that have a size, and no more to ask for.
func haveSize(size string) func(*corev1.PersistentVolumeClaim) string {
	return func(c *corev1.PersistentVolumeClaim) string {
		asks, has := c.Spec.Resources.Requests[corev1.ResourceStorage], c.Status.Capacity[corev1.ResourceStorage]
		return unless(asks.String() == size && has.String() == size, fmt.Sprintf("asks for %s and has %s", asks.String(), has.String()))
	}
}

// remember has an instance write its pod's UID to its volume.
func remember(t *testing.T, ns string, p *corev1.Pod) {
	t.Helper()
	kubectl(t, ns, "exec", p.Name, "--", "demo", "write", "/data/pod", string(p.UID))
}

// remembers checks that an instance finds what that pod wrote.
func remembers(t *testing.T, ns string, before *corev1.Pod) {
	t.Helper()
	if pod(t, ns, before.Name).UID == before.UID {
		t.Errorf("pod %s is still the same", before.Name)
	}
	if got := kubectl(t, ns, "exec", before.Name, "--", "demo", "read", "/data/pod"); got != string(before.UID) {
		t.Errorf("%s finds the data of pod %q, want that of %s", before.Name, got, before.UID)
	}
}

// The pods of one id share a claim, whatever comes between them: a kill, another
// template, a scale-down.
func TestClaimsKeepData(t *testing.T) {
	t.Parallel()
	ns, _ := run(t, gen.TApp("app", gen.Replicas(2), withClaim("16Mi")))
	first := pods(t, ns)
	for name, p := range first {
		if v := p.Spec.Volumes; !slices.ContainsFunc(v, func(v corev1.Volume) bool {
			return v.Name == "data" && v.EmptyDir == nil && v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == "data-"+name
		}) {
			t.Errorf("%s mounts %v", name, v)
		}
		remember(t, ns, p)
	}
	before := onlyClaims(t, ns, "data-app-0", "data-app-1")

	change(t, ns, "app", gen.Killed(1))
	podGone(t, ns, "app-1", first["app-1"].UID)
	change(t, ns, "app", start)
	settled(t, ns, "app")
	remembers(t, ns, first["app-1"])

	change(t, ns, "app", gen.MaxUnavailable("2"), gen.Default(gen.Env("VERSION", "2")))
	settled(t, ns, "app")
	remembers(t, ns, first["app-0"])
	remembers(t, ns, first["app-1"])

	change(t, ns, "app", gen.Replicas(1))
	settled(t, ns, "app")
	onlyPods(t, ns, "app-0")
	change(t, ns, "app", gen.Replicas(2))
	settled(t, ns, "app")
	remembers(t, ns, first["app-1"])
	if after := onlyClaims(t, ns, "data-app-0", "data-app-1"); !maps.Equal(before, after) {
		t.Errorf("claims were %v, and are %v", before, after)
	}
}

// whenScaled Delete deletes the claims of instances that are scaled down from then
// on, not of those that went earlier, and not of killed ones.
func TestClaimsGoWithAScaleDown(t *testing.T) {
	t.Parallel()
	ns, _ := run(t, gen.TApp("app", gen.Replicas(4), withClaim("16Mi")))
	first := pods(t, ns)
	remember(t, ns, first["app-3"])
	before := onlyClaims(t, ns, "data-app-0", "data-app-1", "data-app-2", "data-app-3")
	change(t, ns, "app", gen.Replicas(3))
	settled(t, ns, "app")
	change(t, ns, "app", retention(tappv1.PersistentVolumeClaimRetentionPolicy{WhenScaled: tappv1.DeletePersistentVolumeClaim}), gen.Killed(0))
	settled(t, ns, "app")
	onlyPods(t, ns, "app-1", "app-2")
	change(t, ns, "app", gen.Replicas(2))
	settled(t, ns, "app")
	onlyClaims(t, ns, "data-app-0", "data-app-1", "data-app-3")

	change(t, ns, "app", gen.Replicas(4), start)
	settled(t, ns, "app")
	remembers(t, ns, first["app-3"])
	after := onlyClaims(t, ns, "data-app-0", "data-app-1", "data-app-2", "data-app-3")
	for name, uid := range before {
		if again := name == "data-app-2"; again == (after[name] == uid) {
			t.Errorf("claim %s was made anew: %t, want %t", name, after[name] != uid, again)
		}
	}
}

// The owner of the claims follows whenDeleted on a live TApp, also for instances
// that are scaled down. What it says at the end decides who goes with the TApp.
func TestClaimsGoWithTheTApp(t *testing.T) {
	t.Parallel()
	ns, tapp := run(t, gen.TApp("app", gen.Replicas(2), withClaim("16Mi")))
	first := pods(t, ns)
	remember(t, ns, first["app-0"])
	change(t, ns, "app", gen.Replicas(1))
	settled(t, ns, "app")
	owned := func(want bool) {
		t.Helper()
		claimsWhere(t, ns, fmt.Sprintf("owned by the TApp: %t", want), func(c *corev1.PersistentVolumeClaim) string {
			ref := metav1.GetControllerOf(c)
			return unless((ref != nil && ref.UID == tapp.UID) == want && len(c.OwnerReferences) < 2, fmt.Sprintf("has the owners %v", c.OwnerReferences))
		})
	}
	whenDeleted := func(p tappv1.PersistentVolumeClaimRetentionPolicyType) {
		t.Helper()
		change(t, ns, "app", retention(tappv1.PersistentVolumeClaimRetentionPolicy{WhenDeleted: p}))
	}
	owned(false)
	whenDeleted(tappv1.DeletePersistentVolumeClaim)
	owned(true)
	whenDeleted(tappv1.RetainPersistentVolumeClaim)
	owned(false)
	untouched(t, map[string]*corev1.Pod{"app-0": first["app-0"]}, pods(t, ns))

	kubectl(t, ns, "delete", "tapps.apps.tkestack.io", "app")
	noPods(t, ns)
	onlyClaims(t, ns, "data-app-0", "data-app-1")
	tapp = create(t, ns, gen.TApp("app", gen.Replicas(1), withClaim("16Mi"),
		retention(tappv1.PersistentVolumeClaimRetentionPolicy{WhenDeleted: tappv1.DeletePersistentVolumeClaim})))
	settled(t, ns, "app")
	remembers(t, ns, first["app-0"])
	owned(true)
	kubectl(t, ns, "delete", "tapps.apps.tkestack.io", "app")
	onlyClaims(t, ns)
}

// A larger request reaches live claims, and the TApp waits for the storage. No pod
// is touched.
func TestClaimsGrow(t *testing.T) {
	t.Parallel()
	ns, _ := run(t, gen.TApp("app", gen.Replicas(2), withClaim("16Mi", func(c *corev1.PersistentVolumeClaim) {
		c.Annotations = map[string]string{holdGrowth: "true"}
	})))
	before := pods(t, ns)
	change(t, ns, "app", request("32Mi"))
	claimsWhere(t, ns, "32Mi are requested", func(c *corev1.PersistentVolumeClaim) string {
		size := c.Spec.Resources.Requests[corev1.ResourceStorage]
		return unless(size.String() == "32Mi", "requests "+size.String())
	})
	tappWhere(t, ns, "app", "waits for the storage", func(tapp *tappv1.TApp) string {
		const want = "2 of 2 instances are available, 2 follow their template; claims that are to grow: 2, claim data-app-0 has 16Mi of 32Mi"
		c := meta.FindStatusCondition(tapp.Status.Conditions, tappv1.ConditionReady)
		return unless(c != nil && c.Status == metav1.ConditionFalse && c.Message == want, "want Ready False: "+want)
	})
	kubectl(t, ns, "annotate", "pvc", "--all", holdGrowth+"-")
	settled(t, ns, "app")
	claimsWhere(t, ns, "have 32Mi", haveSize("32Mi"))
	untouched(t, before, pods(t, ns))
	hasEvent(t, ns, "app", normal, "SuccessfulUpdate", "spec.volumeClaimTemplates[data] requests 32Mi, and the claim 16Mi")
}

// A storage class that does not let claims grow is told of, and the larger request
// can be taken back.
func TestClaimsOfAFixedSize(t *testing.T) {
	t.Parallel()
	ns, _ := run(t, gen.TApp("app", gen.Replicas(1), withClaim("16Mi", func(c *corev1.PersistentVolumeClaim) {
		c.Spec.StorageClassName = new("local-fixed")
	})))
	before := pods(t, ns)
	change(t, ns, "app", request("32Mi"))
	hasEvent(t, ns, "app", warning, "FailedUpdate",
		"cannot update the claims of instance 0", "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize")
	if err := in(t, ns).Ready(t.Context(), "app"); err == nil {
		t.Error("it is Ready, and its claim has not grown")
	}
	change(t, ns, "app", request("16Mi"))
	settled(t, ns, "app")
	claimsWhere(t, ns, "have 16Mi", haveSize("16Mi"))
	untouched(t, before, pods(t, ns))
}

// A size that the storage cannot provide stalls the TApp at once, with what the
// storage says of it. A smaller size helps, also for the claims that had asked.
func TestClaimsOfAnInfeasibleSize(t *testing.T) {
	t.Parallel()
	ns, _ := run(t, gen.TApp("app", gen.Replicas(2), withClaim("16Mi")))
	before := pods(t, ns)
	change(t, ns, "app", request("2Ti"))
	stalled(t, ns, "app", "claim data-app-", "cannot grow: 2Ti is too large: volumes of class local have at most 1Ti; give its template a size that the storage class can provide")
	change(t, ns, "app", request("32Mi"))
	settled(t, ns, "app")
	claimsWhere(t, ns, "have 32Mi", haveSize("32Mi"))
	untouched(t, before, pods(t, ns))
}
