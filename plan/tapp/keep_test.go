package tapp

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/effect"
	"tkestack.io/tapp/plan/termination"
)

// keeper is a story, and what happened to pod 1 and the claims.
type keeper struct {
	*scenario
	Collected string
	Unmounted bool
	Volume    string
}

// keeping is a TApp of three instances with two claims each, of which somebody deletes some.
func keeping(dying []string, pods ...podStory) *keeper {
	s := story(3, pods...)
	for _, name := range []string{"data", "logs"} {
		s.TApp.Spec.VolumeClaimTemplates = append(s.TApp.Spec.VolumeClaimTemplates, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}})
		for id := range 3 {
			claim := fmt.Sprintf("%s-web-%d", name, id)
			s.Claims = append(s.Claims, claimStory{Name: claim, Dying: slices.Contains(dying, claim)})
		}
	}
	s.TApp.Status.Statuses = map[string]tappv1.InstanceStatus{"0": tappv1.InstanceRunning, "1": tappv1.InstanceRunning, "2": tappv1.InstanceRunning}
	return &keeper{scenario: s}
}

// TestClaimTerminating: what of an instance's pod waits while a claim that it mounts is
// being deleted, and what does not. Instance 1's claim data-web-1 is.
func TestClaimTerminating(t *testing.T) {
	const (
		waits = "[] ClaimTerminating"
		uid   = "claim-data-web-1"
	)
	goes := func(uids string) map[string]*string { return map[string]*string{tappv1.AnnotationClaimMayGo: &uids} }
	retain := tappv1.PersistentVolumeClaimRetentionPolicy{WhenDeleted: tappv1.RetainPersistentVolumeClaim, WhenScaled: tappv1.RetainPersistentVolumeClaim}
	follow := retain
	follow.WhenScaled = tappv1.DeletePersistentVolumeClaim
	policy := func(p tappv1.PersistentVolumeClaimRetentionPolicy, replicas int32) func(*keeper) {
		return func(s *keeper) {
			s.TApp.Spec.PersistentVolumeClaimRetentionPolicy, s.TApp.Spec.Replicas = &p, &replicas
			s.Pods[0].IDs = "0"
		}
	}
	killed := func(change ...func(*keeper)) func(*keeper) {
		return func(s *keeper) {
			s.TApp.Spec.Statuses = map[string]tappv1.InstanceStatus{"1": tappv1.InstanceKilled}
			for _, c := range change {
				c(s)
			}
		}
	}
	never := func(s *keeper) { s.TApp.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever }
	for name, c := range map[string]struct {
		pod    podStory // of instance 1
		change func(*keeper)
		want   string // the operations for it, and why it waits
	}{
		"nothing is to be done":                {podStory{}, nil, "[]"},
		"a recreation":                         {podStory{From: "env"}, nil, waits},
		"with the policy ReCreate":             {podStory{From: "image"}, func(s *keeper) { s.TApp.Spec.UpdateStrategy.InPlaceUpdate.Policy = tappv1.ReCreate }, waits},
		"by force":                             {podStory{From: "env"}, func(s *keeper) { s.TApp.Spec.Templates = map[string]string{"1": "blue"} }, waits},
		"an update in place":                   {podStory{From: "image"}, nil, "[Drain]"},
		"of a pod that is out of its Services": {podStory{From: "image", Gate: "closed 1m", Ready: "not 1m"}, nil, "[UpdateInPlace]"},
		"its gate opens":                       {podStory{Gate: "closed 1m", Ready: "not 1m"}, nil, "[Undrain]"},
		"a recreation of a drained pod":        {podStory{From: "env", Gate: "closed 1m", Ready: "not 1m"}, nil, "[Undrain]"},
		"of a pod that does not serve":         {podStory{From: "env", Ready: "not"}, nil, waits},
		"labels":                               {podStory{From: "labels"}, nil, "[Relabel]"},
		"a restart":                            {podStory{Restart: true}, nil, waits},
		"a container that an update stopped":   {podStory{From: "image", Patched: "default", Kubelet: "stopped"}, func(s *keeper) { s.TApp.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure }, waits},
		"a node tie that is obsolete":          {podStory{Tied: "node-9", Phase: corev1.PodPending}, nil, waits},
		"a kill":                               {podStory{}, killed(), waits},
		"whatever the policy":                  {podStory{}, killed(func(s *keeper) { s.TApp.Spec.PersistentVolumeClaimRetentionPolicy = &follow }), waits},
		"a scale-down":                         {podStory{}, policy(retain, 1), waits},
		"that takes the claims along":          {podStory{}, policy(follow, 1), "[Delete]"},
		"but not those of a killed one":        {podStory{}, killed(policy(follow, 1)), waits},
		"a pod that failed":                    {podStory{Phase: corev1.PodFailed, Reason: "Evicted", Ended: "1h"}, nil, waits},
		"before its turn":                      {podStory{Phase: corev1.PodFailed, Reason: "Evicted", Ended: "1s"}, nil, "[] Backoff"},
		"with a finalizer":                     {podStory{Phase: corev1.PodFailed, Ended: "1h", Finalizers: []string{"f"}}, nil, waits},
		"whose template changed":               {podStory{Phase: corev1.PodFailed, Ended: "1s", From: "env"}, nil, waits},
		"that ended for good": {podStory{Phase: corev1.PodSucceeded, Ended: "1h"}, func(s *keeper) {
			never(s)
			s.Policy.DeletePodAfterAppFinish = new(false)
			s.TApp.Status.Statuses["1"] = tappv1.InstanceSucc
		}, waits},
		"a pod that is being deleted": {podStory{Dying: "in 20s"}, nil, "[] Terminating"},
		"past its grace period":       {podStory{Dying: "1m ago"}, nil, "[] Terminating"},
		"whose node is lost": {podStory{Dying: "1m ago", Node: "gone"}, func(s *keeper) {
			s.TApp.Spec.ForceDeletePod = true
			s.TApp.Status.Conditions = []metav1.Condition{{Type: tappv1.ConditionForceDeleted, Status: metav1.ConditionTrue, Message: "node gone does not exist any more"}}
			s.Nodes = map[string]nodeStory{"gone": {Gone: true}}
		}, "[ForceDelete]"},
		"whose removal was broken off": {podStory{Dying: "1m ago", Left: true}, nil, "[Delete]"},
		"that Kubernetes removes":      {podStory{Collected: true, Phase: corev1.PodFailed, Age: "2h"}, nil, "[] Terminating"},
		"and did not":                  {podStory{Collected: true, Phase: corev1.PodFailed, Age: "2h"}, func(s *keeper) { s.Collected = "90m" }, waits},
		"let go":                       {podStory{From: "env", Annotations: goes(uid)}, nil, "[Delete]"},
		"let go with others":           {podStory{From: "env", Annotations: goes("x," + uid)}, nil, "[Delete]"},
		"another claim is let go":      {podStory{From: "env", Annotations: goes("claim-data-web-2")}, nil, waits},
		"its name is no UID":           {podStory{From: "env", Annotations: goes("data-web-1")}, nil, waits},
		"a kill is let go":             {podStory{Annotations: goes(uid)}, killed(), "[Delete]"},
		"a pod that ended is let go":   {podStory{Phase: corev1.PodFailed, Reason: "Evicted", Ended: "1h", Annotations: goes(uid)}, func(s *keeper) { s.TApp.Status.Failures = map[string]int32{"1": 1} }, "[Delete]"},
		"one of two claims is let go":  {podStory{From: "env", Annotations: goes(uid)}, func(s *keeper) { s.Claims[4].Dying = true }, waits},
		"a pod that does not mount it": {podStory{From: "env"}, func(s *keeper) { s.Unmounted = true }, "[Delete]"},
		"the TApp is being deleted": {podStory{From: "env"}, func(s *keeper) {
			s.TApp.DeletionTimestamp = new(ago(0))
			s.TApp.Finalizers = []string{"foregroundDeletion"}
		}, "[]"},
		"while paused":                   {podStory{From: "env"}, func(s *keeper) { s.TApp.Spec.Paused = true }, "[] Paused"},
		"with the policy InPlaceOnly":    {podStory{From: "env"}, func(s *keeper) { s.TApp.Spec.UpdateStrategy.InPlaceUpdate.Policy = tappv1.InPlaceOnly }, "[] InPlaceOnly"},
		"a pod of another controller":    {podStory{Owner: "other"}, nil, "[] NameTaken"},
		"a pod that is to be adopted":    {podStory{Owner: "none", From: "env"}, nil, "[Adopt]"},
		"a pod that is not selected now": {podStory{Labels: map[string]*string{"app": new("other")}}, nil, "[Release]"},
	} {
		t.Run(name, func(t *testing.T) {
			c.pod.IDs = "1"
			s := keeping([]string{"data-web-1"}, podStory{IDs: "0,2"}, c.pod)
			if c.change != nil {
				c.change(s)
			}
			in := s.input(t)
			for _, pod := range in.Pods {
				if s.Unmounted && pod.Name == "web-1" {
					pod.Spec.Volumes = nil
				}
				if s.Collected != "" && pod.Name == "web-1" {
					pod.Status.Conditions[len(pod.Status.Conditions)-1].LastTransitionTime = ago(90 * 60e9)
				}
			}
			p := Compute(in)
			judge(t, in, p)
			var did []string
			for _, a := range p.Actions {
				if a.ID == "1" && a.Op != OpUpdateClaim && a.Op != OpCreateClaim {
					did = append(did, string(a.Op))
				}
			}
			got := fmt.Sprint(did)
			for _, i := range p.Instances {
				if i.ID == "1" {
					got = strings.TrimSpace(got + " " + i.Reason)
				}
				if i.ID == "1" && i.Reason == termination.Reason && !strings.Contains(i.Why, "--now") {
					t.Errorf("no way on: %s", i.Why)
				}
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestOthersGoOn: an instance that is held takes none of the budget, whatever its id.
func TestOthersGoOn(t *testing.T) {
	for _, held := range []string{"0", "1", "2"} {
		p := Compute(keeping([]string{"data-web-" + held}, podStory{IDs: "0-2", From: "env"}).input(t))
		want := "Delete 0"
		if held == "0" {
			want = "Delete 1"
		}
		wantOps(t, p, want)
	}
	// One that is down does not serve, and still counts as such.
	p := Compute(keeping([]string{"data-web-0"}, podStory{IDs: "0", From: "env", Ready: "not"}, podStory{IDs: "1-2", From: "env"}).input(t))
	wantOps(t, p)
}

// TestClaimTerminatingIsTold: the condition is there from when it is seen, whether anything
// is to be done or not. Stalled is when nothing else is on its way.
func TestClaimTerminatingIsTold(t *testing.T) {
	const (
		one   = "claim data-web-1 (UID claim-data-web-1) of instance 1 is being deleted, and goes with its pod"
		held  = "its claim data-web-1 is being deleted, and would go with its pod, which stays; kubectl tapp restart web 1 --now lets both go, and so does the annotation tkestack.io/claim-may-go=claim-data-web-1 of the pod"
		both  = "its claims data-web-1, logs-web-1 are being deleted, and would go with its pod, which stays; kubectl tapp restart web 1 --now lets both go, and so does the annotation tkestack.io/claim-may-go=claim-data-web-1,claim-logs-web-1 of the pod"
		logs  = "claim logs-web-1 (UID claim-logs-web-1) of instance 1 is being deleted, and goes with its pod: to save its volume, set persistentVolumeReclaimPolicy of PersistentVolume pv-7 to Retain"
		ended = "no claim that a pod mounts is being deleted"
	)
	for name, c := range map[string]struct {
		dying   []string
		pods    []podStory
		change  func(*keeper)
		claim   string // the condition ClaimTerminating
		stalled string
		ready   metav1.ConditionStatus
	}{
		"no claim":              {nil, []podStory{{IDs: "0-2"}}, nil, "", "", metav1.ConditionTrue},
		"nothing is to be done": {[]string{"data-web-1"}, []podStory{{IDs: "0-2"}}, nil, one, "", metav1.ConditionTrue},
		"held, others go on":    {[]string{"data-web-1"}, []podStory{{IDs: "0-2", From: "env"}}, nil, one, "", metav1.ConditionFalse},
		"another one starts":    {[]string{"data-web-1"}, []podStory{{IDs: "1", From: "env"}, {IDs: "0,2", Ready: "not"}}, nil, one, "", metav1.ConditionFalse},
		"another one is to go":  {[]string{"data-web-1"}, []podStory{{IDs: "1", From: "env"}, {IDs: "0,2"}, {IDs: "3", Dying: "in 20s"}}, nil, one, "", metav1.ConditionFalse},
		"held alone":            {[]string{"data-web-1"}, []podStory{{IDs: "1", From: "env"}, {IDs: "0,2"}}, nil, one, "instance 1: " + held, metav1.ConditionFalse},
		"both of its claims": {[]string{"data-web-1", "logs-web-1"}, []podStory{{IDs: "1", From: "env"}, {IDs: "0,2"}}, nil, one + "; claim logs-web-1 (UID claim-logs-web-1) of instance 1 is being deleted, and goes with its pod",
			"instance 1: " + both, metav1.ConditionFalse},
		"a restart alone": {[]string{"data-web-1"}, []podStory{{IDs: "1", Restart: true}, {IDs: "0,2"}}, nil, one, "instance 1: " + held, metav1.ConditionFalse},
		"a kill alone": {[]string{"data-web-1"}, []podStory{{IDs: "0-2"}}, func(s *keeper) { s.TApp.Spec.Statuses = map[string]tappv1.InstanceStatus{"1": tappv1.InstanceKilled} }, one,
			"instance 1: " + strings.Replace(held, "restart", "kill", 1), metav1.ConditionFalse},
		"its volume": {[]string{"logs-web-1"}, []podStory{{IDs: "0-2"}}, func(s *keeper) { s.Volume = "pv-7" }, logs, "", metav1.ConditionTrue},
		"by a policy": {[]string{"data-web-2"}, []podStory{{IDs: "0-2"}}, func(s *keeper) {
			s.TApp.Spec.Replicas = new(int32(2))
			s.TApp.Spec.PersistentVolumeClaimRetentionPolicy = &tappv1.PersistentVolumeClaimRetentionPolicy{WhenScaled: tappv1.DeletePersistentVolumeClaim}
		}, "", "", metav1.ConditionFalse},
		"of an instance without": {[]string{"data-web-1"}, []podStory{{IDs: "0,2"}}, nil, "", "", metav1.ConditionFalse},
	} {
		t.Run(name, func(t *testing.T) {
			s := keeping(c.dying, c.pods...)
			if c.change != nil {
				c.change(s)
			}
			in := s.input(t)
			for _, claim := range in.Claims {
				claim.Spec.VolumeName = s.Volume
			}
			p := Compute(in)
			judge(t, in, p)
			if got := trueCondition(p, tappv1.ConditionClaimTerminating); got != c.claim {
				t.Errorf("told is  %s\nwant %s", got, c.claim)
			}
			if got := trueCondition(p, tappv1.ConditionStalled); got != c.stalled {
				t.Errorf("stalled by %s\nwant %s", got, c.stalled)
			} else if reason := meta.FindStatusCondition(p.Status.Conditions, tappv1.ConditionStalled).Reason; got != "" && reason != termination.Reason {
				t.Errorf("stalled by reason %s", reason)
			}
			if got := meta.FindStatusCondition(p.Status.Conditions, tappv1.ConditionReady).Status; got != c.ready {
				t.Errorf("Ready is %s", got)
			}
			if n := len(p.Terminating); (n > 0) != (c.claim != "") {
				t.Errorf("%d claims", n)
			}
			// What is stored tells those who may not read claims, and ends with the claim.
			in.TApp.Status = p.Status
			if got, want := fmt.Sprint(termination.Told(p.Status.Conditions)), fmt.Sprint(withoutVolumes(p.Terminating)); got != want {
				t.Errorf("read again: %s, want %s", got, want)
			}
			for _, claim := range in.Claims {
				claim.DeletionTimestamp = nil
			}
			again := Compute(in)
			if cond := meta.FindStatusCondition(again.Status.Conditions, tappv1.ConditionClaimTerminating); c.claim == "" && cond != nil || c.claim != "" && (cond == nil || cond.Status != metav1.ConditionFalse || cond.Message != ended) {
				t.Errorf("afterwards it is %v", cond)
			}
		})
	}
}

func trueCondition(p Plan, kind string) string {
	if c := meta.FindStatusCondition(p.Status.Conditions, kind); c != nil && c.Status == metav1.ConditionTrue {
		return c.Message
	}
	return ""
}

func withoutVolumes(claims []termination.Claim) (out []termination.Claim) {
	for _, c := range claims {
		c.Volume = ""
		out = append(out, c)
	}
	return out
}

// TestPreviewOfTerminatingClaims: the preview says which instances wait, by the claims, or by
// the stored condition where claims may not be read.
func TestPreviewOfTerminatingClaims(t *testing.T) {
	const but = "; but its claim data-web-1 is being deleted, and would go with its pod, which stays; "
	for name, c := range map[string]struct {
		pods   []podStory
		change func(*keeper)
		want   string
	}{
		"a recreation": {[]podStory{{IDs: "0-2", From: "env"}}, nil, "2 instances are recreated (0,2): template \"default\" changed in more than images, labels and annotations|1 instance waits (1): template \"default\" changed in more than images, labels and annotations" + but},
		"in place":     {[]podStory{{IDs: "0-2", From: "image"}}, nil, "3 instances are updated in place (0-2): image of app from web:1 to web:2"},
		"a kill":       {[]podStory{{IDs: "0-2"}}, func(s *keeper) { s.TApp.Spec.Statuses = map[string]tappv1.InstanceStatus{"1": tappv1.InstanceKilled} }, "1 instance waits (1): spec.statuses says Killed" + but},
		"a scale-down": {[]podStory{{IDs: "0-2"}}, func(s *keeper) { s.TApp.Spec.Replicas = new(int32(1)) }, "1 instance is removed (2): spec.replicas is 1|1 instance waits (1): spec.replicas is 1" + but},
		"with its claims": {[]podStory{{IDs: "0-2"}}, func(s *keeper) {
			s.TApp.Spec.Replicas = new(int32(1))
			s.TApp.Spec.PersistentVolumeClaimRetentionPolicy = &tappv1.PersistentVolumeClaimRetentionPolicy{WhenScaled: tappv1.DeletePersistentVolumeClaim}
		}, "2 instances are removed (1-2): spec.replicas is 1"},
		"let go": {[]podStory{{IDs: "0-2", From: "env", Annotations: map[string]*string{tappv1.AnnotationClaimMayGo: new("claim-data-web-1")}}}, nil, "3 instances are recreated (0-2): template \"default\" changed in more than images, labels and annotations"},
	} {
		t.Run(name, func(t *testing.T) {
			s := keeping([]string{"data-web-1"}, c.pods...)
			if c.change != nil {
				c.change(s)
			}
			in := s.input(t)
			seen := Compute(keeping([]string{"data-web-1"}, podStory{IDs: "0-2"}).input(t))
			for _, blind := range []bool{false, true} {
				if blind {
					in.Claims, in.TApp.Status = nil, seen.Status
				}
				var told []string
				for _, change := range Preview(in) {
					text, _, cut := strings.Cut(change.String(), "kubectl")
					told = append(told, text)
					if cut != (change.Effect == effect.Wait) {
						t.Errorf("the way on of %s", change)
					}
				}
				if got := strings.Join(told, "|"); got != c.want {
					t.Errorf("without claims: %t\ngot  %s\nwant %s", blind, got, cmp.Or(c.want, "nothing"))
				}
			}
		})
	}
}
