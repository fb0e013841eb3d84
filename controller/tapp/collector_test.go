package tapp

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// TestMetricsOfTApps: what their statuses say, by the leader only.
func TestMetricsOfTApps(t *testing.T) {
	c := (&stub{}).newController(t)
	store := func(change func(*tappv1.TApp)) {
		t.Helper()
		a := &tappv1.TApp{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", Generation: 3}}
		change(a)
		if err := c.tapps.GetStore().Add(a); err != nil {
			t.Fatal(err)
		}
	}
	want := func(text string) {
		t.Helper()
		if err := testutil.CollectAndCompare(c, strings.NewReader(text), "tapp_instances", "tapp_replicas_desired", "tapp_replicas_updated", "tapp_condition", "tapp_observed_generation"); err != nil {
			t.Error(err)
		}
	}
	store(func(a *tappv1.TApp) {
		a.Spec.Replicas = ptr.To(int32(5))
		a.Status = tappv1.TAppStatus{
			ObservedGeneration: 2, UpdatedReplicas: 3,
			Statuses:   map[string]tappv1.InstanceStatus{"0": tappv1.InstanceRunning, "1": tappv1.InstanceRunning, "2": tappv1.InstanceKilled, "10": tappv1.InstanceRunning},
			Conditions: []metav1.Condition{{Type: tappv1.ConditionReady, Status: metav1.ConditionFalse}, {Type: tappv1.ConditionStalled, Status: metav1.ConditionTrue}},
		}
	})
	want("") // a standby
	c.working.Store(true)
	want(`
# HELP tapp_condition 1 if the condition of a TApp (Ready, Progressing, Stalled) is True, else 0.
# TYPE tapp_condition gauge
tapp_condition{condition="Progressing",namespace="ns",tapp="a"} 0
tapp_condition{condition="Ready",namespace="ns",tapp="a"} 0
tapp_condition{condition="Stalled",namespace="ns",tapp="a"} 1
# HELP tapp_instances Instances of a TApp by state; states that none is in are left out.
# TYPE tapp_instances gauge
tapp_instances{namespace="ns",state="Killed",tapp="a"} 1
tapp_instances{namespace="ns",state="Running",tapp="a"} 3
# HELP tapp_observed_generation Generation of the spec that the status of a TApp is about.
# TYPE tapp_observed_generation gauge
tapp_observed_generation{namespace="ns",tapp="a"} 2
# HELP tapp_replicas_desired Instances that the spec of a TApp asks for, stopped ones included.
# TYPE tapp_replicas_desired gauge
tapp_replicas_desired{namespace="ns",tapp="a"} 5
# HELP tapp_replicas_updated Pods of a TApp that follow the current template of their instance.
# TYPE tapp_replicas_updated gauge
tapp_replicas_updated{namespace="ns",tapp="a"} 3
`)
	store(func(*tappv1.TApp) {}) // nothing is said, and one instance is the default
	if n := testutil.CollectAndCount(c, "tapp_instances"); n != 0 {
		t.Errorf("%d states of no instance", n)
	}
	if err := testutil.CollectAndCompare(c, strings.NewReader(`
# HELP tapp_replicas_desired Instances that the spec of a TApp asks for, stopped ones included.
# TYPE tapp_replicas_desired gauge
tapp_replicas_desired{namespace="ns",tapp="a"} 1
`), "tapp_replicas_desired"); err != nil {
		t.Error(err)
	}
}
