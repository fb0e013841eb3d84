package deferral

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

func TestAllows(t *testing.T) {
	type change = func(*tappv1.TAppStatus)
	is := func(condition string, status metav1.ConditionStatus, message string) change {
		return func(s *tappv1.TAppStatus) {
			meta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: condition, Status: status, Message: message})
		}
	}
	instance := func(id string, state tappv1.InstanceStatus) change {
		return func(s *tappv1.TAppStatus) { s.Statuses[id] = state }
	}
	ready := is(tappv1.ConditionReady, metav1.ConditionTrue, "")
	both := func(cs ...change) change {
		return func(s *tappv1.TAppStatus) {
			for _, c := range cs {
				c(s)
			}
		}
	}
	none := func(*tappv1.TAppStatus) {}
	nothing := func(s *tappv1.TAppStatus) { *s = tappv1.TAppStatus{ObservedGeneration: -1} }
	// Specs whose first status may wait, and others.
	specs := map[string]struct {
		tappv1.TAppSpec
		passes bool
	}{
		"with a selector":     {tappv1.TAppSpec{Selector: &metav1.LabelSelector{}}, true},
		"without a selector":  {tappv1.TAppSpec{}, false},
		"with claims, though": {tappv1.TAppSpec{Selector: &metav1.LabelSelector{}, VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{}}}, false},
	}
	failed := func(id string, n int32) change {
		return func(s *tappv1.TAppStatus) { s.Failures = map[string]int32{id: n} }
	}
	for name, c := range map[string]struct {
		stored, next change
		want         bool // but where instances come or go and may have claims
	}{
		"counts":                     {none, func(s *tappv1.TAppStatus) { s.ReadyReplicas, s.UpdatedReplicas = 1, 2 }, true},
		"states":                     {none, both(instance("0", tappv1.InstanceUpdating), instance("1", tappv1.InstanceRunning)), true},
		"a new generation":           {ready, func(s *tappv1.TAppStatus) { s.ObservedGeneration, s.UpdateRevision = 2, "b" }, true},
		"the first one":              {nothing, none, true},
		"the first of an older CRD":  {func(s *tappv1.TAppStatus) { *s = tappv1.TAppStatus{} }, none, false},
		"first, and a failed pod":    {nothing, instance("0", tappv1.InstancePodFailed), false},
		"first, and an end":          {nothing, instance("1", tappv1.InstanceSucc), false},
		"first, and a node":          {nothing, func(s *tappv1.TAppStatus) { s.Nodes = map[string]string{"0": "a"} }, false},
		"first, and a lost node":     {nothing, is(tappv1.ConditionForceDeleted, metav1.ConditionTrue, "a"), false},
		"first, and a refusal":       {nothing, is(tappv1.ConditionReplicaFailure, metav1.ConditionTrue, "quota"), false},
		"first, and a claim goes":    {nothing, is(tappv1.ConditionClaimTerminating, metav1.ConditionTrue, "claim"), false},
		"first, and a problem":       {nothing, is(tappv1.ConditionStalled, metav1.ConditionTrue, "spec"), false},
		"first, and all there is":    {nothing, is(tappv1.ConditionProgressing, metav1.ConditionFalse, ""), false},
		"an instance fails":          {ready, instance("0", tappv1.InstancePending), false},
		"the end of the work":        {none, both(ready, is(tappv1.ConditionProgressing, metav1.ConditionFalse, "")), false},
		"paused":                     {none, is(tappv1.ConditionProgressing, metav1.ConditionFalse, "paused"), false},
		"a problem":                  {none, is(tappv1.ConditionStalled, metav1.ConditionTrue, "spec"), false},
		"the end of a problem":       {is(tappv1.ConditionStalled, metav1.ConditionTrue, "spec"), none, false},
		"the selector":               {none, func(s *tappv1.TAppStatus) { s.ScaleLabelSelector = "app=b" }, false},
		"a node":                     {none, func(s *tappv1.TAppStatus) { s.Nodes = map[string]string{"0": "a"} }, false},
		"the revision that is out":   {none, func(s *tappv1.TAppStatus) { s.CurrentRevision = "b" }, false},
		"one instance more":          {none, instance("2", tappv1.InstanceNotCreated), true},
		"one instance less":          {none, func(s *tappv1.TAppStatus) { delete(s.Statuses, "1") }, true},
		"one instead of another":     {none, both(func(s *tappv1.TAppStatus) { delete(s.Statuses, "1") }, instance("7", tappv1.InstancePending)), true},
		"less, and one had ended":    {instance("1", tappv1.InstanceSucc), func(s *tappv1.TAppStatus) { delete(s.Statuses, "1") }, false},
		"more, and one has failed":   {none, instance("2", tappv1.InstancePodFailed), false},
		"a failed pod":               {none, instance("0", tappv1.InstancePodFailed), false},
		"a pod that ended well":      {none, instance("0", tappv1.InstancePodSucc), false},
		"a pod of a silent node":     {none, instance("0", tappv1.InstanceUnknown), false},
		"a failed pod that was told": {instance("0", tappv1.InstancePodFailed), both(instance("0", tappv1.InstancePodFailed), instance("1", tappv1.InstanceRunning)), true},
		"a pod after a failed one":   {instance("0", tappv1.InstancePodFailed), none, true},
		"an end":                     {none, instance("0", tappv1.InstanceSucc), false},
		"a failed end":               {none, instance("0", tappv1.InstanceFailed), false},
		"an end that is none":        {instance("0", tappv1.InstanceFailed), instance("0", tappv1.InstancePending), false},
		"a failure":                  {failed("0", 1), failed("0", 2), false},
		"a failure that was told":    {failed("0", 2), failed("0", 2), true},
		"a failure that a pod tells": {failed("0", 2), none, true},
		"a refusal":                  {none, is(tappv1.ConditionReplicaFailure, metav1.ConditionTrue, "quota"), false},
		"a refusal in other words":   {is(tappv1.ConditionReplicaFailure, metav1.ConditionTrue, "quota"), is(tappv1.ConditionReplicaFailure, metav1.ConditionTrue, "policy"), true},
		"a claim that goes":          {none, is(tappv1.ConditionClaimTerminating, metav1.ConditionTrue, "claim"), false},
		"a claim that is gone":       {is(tappv1.ConditionClaimTerminating, metav1.ConditionTrue, "claim"), is(tappv1.ConditionClaimTerminating, metav1.ConditionFalse, ""), false},
		"a refusal that ends":        {is(tappv1.ConditionReplicaFailure, metav1.ConditionTrue, "quota"), is(tappv1.ConditionReplicaFailure, metav1.ConditionFalse, ""), false},
		"a lost node":                {none, is(tappv1.ConditionForceDeleted, metav1.ConditionTrue, "a"), false},
		"another lost node":          {is(tappv1.ConditionForceDeleted, metav1.ConditionTrue, "a"), is(tappv1.ConditionForceDeleted, metav1.ConditionTrue, "a; b"), false},
		"a lost node that was told":  {is(tappv1.ConditionForceDeleted, metav1.ConditionTrue, "a"), is(tappv1.ConditionForceDeleted, metav1.ConditionTrue, "a"), true},
	} {
		status := func(c change) *tappv1.TAppStatus {
			s := &tappv1.TAppStatus{ObservedGeneration: 1, CurrentRevision: "a", ScaleLabelSelector: "app=a",
				Statuses: map[string]tappv1.InstanceStatus{"0": tappv1.InstancePending, "1": tappv1.InstancePending}}
			is(tappv1.ConditionProgressing, metav1.ConditionTrue, "")(s)
			c(s)
			return s
		}
		for spec, first := range specs {
			tapp := &tappv1.TApp{Spec: first.TAppSpec, Status: *status(c.stored)}
			next := status(c.next)
			want := c.want && (first.passes || tapp.Status.ObservedGeneration > 0)
			if !slices.Equal(slices.Sorted(maps.Keys(tapp.Status.Statuses)), slices.Sorted(maps.Keys(next.Statuses))) {
				want = want && len(first.VolumeClaimTemplates) == 0
			}
			if got := Allows(tapp, next); got != want {
				t.Errorf("%s, %s: got %t", name, spec, got)
			}
		}
	}
}
