package appset

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"

	"tkestack.io/tapp/crd/workload/v1beta1"
	plan "tkestack.io/tapp/plan/appset"
	"tkestack.io/tapp/plan/podset"
)

// heads of Secrets, as a client of metadata lists them.
type heads struct {
	metadata.ResourceInterface
	secrets corev1client.SecretInterface
}

func (h heads) List(ctx context.Context, o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	list, err := h.secrets.List(ctx, o)
	if err != nil {
		return nil, err
	}
	out := &metav1.PartialObjectMetadataList{}
	for i := range list.Items {
		out.Items = append(out.Items, metav1.PartialObjectMetadata{ObjectMeta: list.Items[i].ObjectMeta})
	}
	return out, nil
}

// archiveOf is the Secret of an archive, of this age.
func archiveOf(archive, fleet string, age time.Duration) *corev1.Secret {
	name := v1beta1.ChartSecretPrefix + podset.DigestOf([]byte(archive))
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "tapp-charts", Name: name, UID: "uid", CreationTimestamp: metav1.NewTime(time.Now().Add(-age)), Annotations: map[string]string{"archive": archive},
		Labels: map[string]string{v1beta1.LabelChart: "", v1beta1.LabelFleetID: fleet},
	}}
}

// TestSweep: archives that nothing uses go after an hour, on the hub and in the clusters that
// answer. One stays that the AppSet or a part has, that is young, or another fleet's; on the
// hub also one that a revision has, since a rollout that fails returns to it.
func TestSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "one", "two", "silent")
		w.members["silent"].Fresh = false
		w.app.Spec.PodSpec = v1beta1.PodSpec{DeployType: "helm", Chart: &v1beta1.ChartSpec{RawChart: []byte("spec")}}
		if err := w.appSets.GetStore().Replace([]any{w.app}, "1"); err != nil {
			t.Fatal(err)
		}
		w.members["one"].cached = &v1beta1.AdvDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: v1beta1.AdvDeploymentSpec{Topology: v1beta1.Topology{
			PodSets: []v1beta1.PlacedPodSet{{PodSetSpec: v1beta1.PodSetSpec{Name: "web"}, Chart: &v1beta1.PlacedChart{SecretRef: &corev1.LocalObjectReference{Name: archiveOf("part", "", 0).Name}}}},
		}}}
		w.parts.add(key)
		ledger, keep := podset.LedgerOf(w.app, nil), &podset.Keep{}
		ledger.Add(keep, "u1-before", podset.History{Charts: map[string]string{"one/web": podset.DigestOf([]byte("before"))}})
		if err := w.revisions.GetStore().Add(keep.Histories[0]); err != nil {
			t.Fatal(err)
		}

		client := fake.NewClientset()
		stored := client.CoreV1().Secrets("tapp-charts")
		w.Charts, w.ChartHeads = stored, heads{secrets: stored}
		old := 2 * time.Hour
		for _, s := range []*corev1.Secret{archiveOf("spec", "hub-1", old), archiveOf("part", "hub-1", old), archiveOf("before", "hub-1", old), archiveOf("unused", "hub-1", old), archiveOf("young", "hub-1", 0), archiveOf("theirs", "hub-2", old)} {
			if _, err := stored.Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		for _, m := range w.members {
			for _, s := range []*corev1.Secret{archiveOf("part", "hub-1", old), archiveOf("unused", "hub-1", old), archiveOf("young", "hub-1", 0)} {
				m.charts[s.Name] = s
			}
		}
		expect := func(when, hub, one, two, silent string) {
			t.Helper()
			list, err := stored.List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			got := map[string][]string{}
			for i := range list.Items {
				got["hub"] = append(got["hub"], list.Items[i].Annotations["archive"])
			}
			for name, m := range w.members {
				for _, s := range m.charts {
					got[name] = append(got[name], s.Annotations["archive"])
				}
			}
			for name, want := range map[string]string{"hub": hub, "one": one, "two": two, "silent": silent} {
				slices.Sort(got[name])
				if is := strings.Join(got[name], " "); is != want {
					t.Errorf("%s, %s has %q, want %q", when, name, is, want)
				}
			}
		}
		sweep := func() {
			t.Helper()
			if err := w.sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		// A hub that was started now does not know yet for what an archive is stored.
		sweep()
		expect("at first", "before part spec theirs unused young", "part young", "young", "part unused young")
		time.Sleep(defaultSweepAge + time.Minute)
		sweep()
		expect("after an hour", "before part spec theirs", "part", "", "part unused young")
		w.members["silent"].Fresh = true
		w.members["one"].cached = nil
		sweep()
		expect("when it answers, and the part is gone", "before spec theirs", "", "", "")
	})
}

// TestSweepMeets: an archive that nothing uses any more stays if a part is about to be
// written that needs it, whether a sync has kept it before the sweep looks or after that, and
// in whichever process.
func TestSweepMeets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "one")
		one := w.members["one"]
		old, another := archiveOf("again", "hub-1", 2*time.Hour), archiveOf("unused", "hub-1", 2*time.Hour)
		w.Charts = fake.NewClientset(old).CoreV1().Secrets("tapp-charts")
		placed := &v1beta1.AdvDeployment{Spec: v1beta1.AdvDeploymentSpec{Topology: v1beta1.Topology{
			PodSets: []v1beta1.PlacedPodSet{{PodSetSpec: v1beta1.PodSetSpec{Name: "web"}, Chart: &v1beta1.PlacedChart{SecretRef: &corev1.LocalObjectReference{Name: old.Name}}}},
		}}}
		manifest, err := runtime.DefaultUnstructuredConverter.ToUnstructured(placed)
		if err != nil {
			t.Fatal(err)
		}
		keep := func() {
			if err := w.keepCharts(t.Context(), one, &plan.Action{Cluster: "one", Manifest: manifest}); err != nil {
				t.Error(err)
			}
		}
		forget := func() { w.charts.kept = nil } // as in another process
		for _, x := range []struct {
			name           string
			before, listed func()
		}{
			{"it is kept before the sweep looks", func() { keep(); forget() }, nil},
			{"it is kept while the sweep looks", func() {}, func() { keep(); forget() }},
		} {
			one.charts = map[string]*corev1.Secret{old.Name: old, another.Name: another}
			forget()
			x.before()
			one.listed = x.listed
			if err := w.sweepCluster(t.Context(), "one", nil); err != nil {
				t.Errorf("%s: %v", x.name, err)
			}
			if one.charts[old.Name] == nil {
				t.Errorf("%s: the archive is gone", x.name)
			}
			if one.charts[another.Name] != nil {
				t.Errorf("%s: the archive stays that nothing uses", x.name)
			}
		}
	})
}
