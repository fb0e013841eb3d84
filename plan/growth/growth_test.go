package growth

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// claim in a state: what it requests, what it has, and what its storage said.
type claim struct {
	requests, has string
	unbound       bool
	tried         string // the size that the storage said infeasible of; empty: it said nothing
	problem       string
	fileSystem    bool
}

func (c claim) object() *corev1.PersistentVolumeClaim {
	out := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-web-0", UID: "u1"}}
	out.Spec.Resources.Requests = sizes(c.requests)
	out.Status.Phase = corev1.ClaimBound
	if c.unbound {
		out.Status.Phase = corev1.ClaimPending
	}
	if c.has != "" {
		out.Status.Capacity = sizes(c.has)
	}
	if c.tried != "" {
		out.Status.AllocatedResources = sizes(c.tried)
		out.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{
			corev1.ResourceStorage: corev1.PersistentVolumeClaimControllerResizeInfeasible}
	}
	condition := func(kind corev1.PersistentVolumeClaimConditionType, text string) {
		out.Status.Conditions = append(out.Status.Conditions, corev1.PersistentVolumeClaimCondition{Type: kind, Status: corev1.ConditionTrue, Message: text})
	}
	if c.problem != "" {
		condition(corev1.PersistentVolumeClaimControllerResizeError, c.problem)
	}
	if c.fileSystem {
		condition(corev1.PersistentVolumeClaimFileSystemResizePending, "")
	}
	return out
}

func sizes(size string) corev1.ResourceList {
	if size == "" {
		return nil
	}
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
}

func TestGrowth(t *testing.T) {
	const patch = `{"metadata":{"uid":"u1"},"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`
	const asks = "spec.volumeClaimTemplates[data] requests 2Gi, and the claim "
	for name, c := range map[string]struct {
		claim
		growing              bool
		patch, why           string
		infeasible, progress string
	}{
		"it has what the template requests": {claim: claim{requests: "2Gi", has: "2Gi"}},
		"in another spelling":               {claim: claim{requests: "2048Mi", has: "2Gi"}},
		"it has no volume yet":              {claim: claim{requests: "2Gi", unbound: true}},
		"it requests less": {claim: claim{requests: "1Gi", has: "1Gi"}, growing: true, patch: patch, why: asks + "1Gi",
			progress: "claim data-web-0 has 1Gi of 2Gi"},
		"it requests less, and has no volume": {claim: claim{requests: "1Gi", unbound: true}, growing: true,
			progress: "claim data-web-0 has no volume yet, and grows when it has one"},
		"it is on its way": {claim: claim{requests: "2Gi", has: "1Gi"}, growing: true,
			progress: "claim data-web-0 has 1Gi of 2Gi"},
		"its file system follows": {claim: claim{requests: "2Gi", has: "1Gi", fileSystem: true}, growing: true,
			progress: "claim data-web-0 has grown, and its file system follows when the pod mounts it"},
		"its storage cannot": {claim: claim{requests: "2Gi", has: "1Gi", tried: "2Gi", problem: "the pool is full"}, growing: true,
			infeasible: "claim data-web-0 cannot grow: the pool is full; give its template a size that the storage class can provide",
			progress:   "claim data-web-0 has 1Gi of 2Gi"},
		"its storage cannot, and says no reason": {claim: claim{requests: "2Gi", has: "1Gi", tried: "2Gi"}, growing: true,
			infeasible: "claim data-web-0 cannot grow: its storage says that the size is infeasible; give its template a size that the storage class can provide",
			progress:   "claim data-web-0 has 1Gi of 2Gi"},
		"its storage could not have another size": {claim: claim{requests: "2Gi", has: "1Gi", tried: "9Gi", problem: "the pool is full"}, growing: true,
			progress: "claim data-web-0 has 1Gi of 2Gi"},
		"it requests more, and has it":          {claim: claim{requests: "3Gi", has: "3Gi"}},
		"it requests more, and is on its way":   {claim: claim{requests: "3Gi", has: "1Gi"}, growing: true, progress: "claim data-web-0 has 1Gi of 2Gi"},
		"it requests more than its storage has": {claim: claim{requests: "3Gi", has: "1Gi", tried: "3Gi"}, growing: true, patch: patch, why: asks + "3Gi, which its storage cannot provide", progress: "claim data-web-0 has 1Gi of 2Gi"},
	} {
		t.Run(name, func(t *testing.T) {
			template := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}}
			template.Spec.Resources.Requests = sizes("2Gi")
			got := Of(template, c.object())
			if got.Growing != c.growing || string(got.Patch) != c.patch || c.patch != "" && got.Why != c.why {
				t.Errorf("growing %t, patch %s because %q", got.Growing, got.Patch, got.Why)
			}
			if why := Infeasible(template, c.object()); why != c.infeasible {
				t.Errorf("infeasible: %q", why)
			}
			if !c.growing {
				return
			}
			if how := Progress(template, c.object()); how != c.progress {
				t.Errorf("progress: %q", how)
			}
		})
	}
}

func TestTemplateWithoutSize(t *testing.T) {
	if g := Of(&corev1.PersistentVolumeClaim{}, claim{requests: "1Gi", has: "1Gi"}.object()); g.Growing || g.Patch != nil {
		t.Errorf("a claim grows towards no size: %+v", g)
	}
}
