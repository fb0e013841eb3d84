package tapp

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/webhook/rule"
)

func TestClaims(t *testing.T) {
	claim := func(name, rest string) string {
		return "volumeClaimTemplates: [{metadata: {name: " + name + "}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}" + rest + "]"
	}
	testRule(t, "Claims", []ruleCase{
		{"good", claim("data", ""), ""},
		{"no name", claim("", ""), `spec.volumeClaimTemplates[0].metadata.name: Required value: the claim is mounted by it; give it the name of a volume, such as data`},
		{"bad name", claim("Data", ""), `spec.volumeClaimTemplates[0].metadata.name: Invalid value: "Data": it is the name of a volume too: lower case letters, digits and dashes, at most 63; rename it, such as data`},
		{"twice, and empty", claim("data", ", {metadata: {name: data}}"), `
spec.volumeClaimTemplates[1].metadata.name: Duplicate value: "data": an earlier claim template has this name; give each its own
spec.volumeClaimTemplates[1].spec.accessModes: Required value: a claim needs an access mode, such as ReadWriteOnce
spec.volumeClaimTemplates[1].spec.resources.requests[storage]: Required value: a claim needs a size, such as 1Gi`},
	})
	const frozen = "the claims of the instances cannot follow a change of it; leave it as it was, or create a new TApp for other claims. Labels, annotations and a larger storage request can change"
	shrinks := `spec.volumeClaimTemplates[0].spec.resources.requests[storage]: Invalid value: "1Gi": it was 2Gi, and a claim cannot shrink; give at least that`
	for _, c := range []struct {
		name, from, to, want string
		growing              metav1.ConditionStatus
		observed             int64
	}{
		{"equal", "1Gi", "1024Mi", "", "", 2},
		{"grows", "1Gi", "2Gi", "", "", 2},
		{"shrinks", "2Gi", "1Gi", shrinks, "", 2},
		{"shrinks after it grew", "2Gi", "1Gi", shrinks, metav1.ConditionFalse, 2},
		{"takes back what claims have not got", "2Gi", "1Gi", "", metav1.ConditionTrue, 2},
		{"takes back what nobody has seen", "2Gi", "1Gi", "", "", 1},
		{"other class", "1Gi", "1Gi}}, storageClassName: fast, other: {a: {b: 1", `spec.volumeClaimTemplates[0].spec.storageClassName: Forbidden: ` + frozen, "", 2},
		{"other class and modes", "1Gi", "1Gi}}, storageClassName: fast, accessModes: [ReadOnlyMany], other: {a: {b: 1", `
spec.volumeClaimTemplates[0].spec.accessModes: Forbidden: ` + frozen + `
spec.volumeClaimTemplates[0].spec.storageClassName: Forbidden: ` + frozen, "", 2},
		{"other limit", "1Gi", "1Gi}, limits: {storage: 3Gi", `spec.volumeClaimTemplates[0].spec.resources: Forbidden: ` + frozen, "", 2},
		{"as a StatefulSet has it", "1Gi", "1Gi}}, volumeMode: Filesystem}, apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Pending, other: {a: {b: 1", "", "", 2},
		{"other mode", "1Gi", "1Gi}}, volumeMode: Block, other: {a: {b: 1", `spec.volumeClaimTemplates[0].spec.volumeMode: Forbidden: ` + frozen, "", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			sized := func(size string) *tappv1.TApp {
				return tapp(t, "volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: "+size+"}}}}]")
			}
			was := sized(c.from)
			was.Generation = 2
			// That it is not Ready says nothing of its claims.
			was.Status.Conditions = []metav1.Condition{{Type: tappv1.ConditionReady, Status: metav1.ConditionFalse, ObservedGeneration: c.observed}}
			if c.growing != "" {
				was.Status.Conditions = append(was.Status.Conditions, metav1.Condition{Type: tappv1.ConditionClaimsGrowing, Status: c.growing})
			}
			wantFindings(t, rule.Findings("Claims", compareClaims(sized(c.to), was)), c.want)
		})
	}
}

// TestClaimMetadata: what only claims that are made from then on get may change.
func TestClaimMetadata(t *testing.T) {
	with := func(metadata string) *tappv1.TApp {
		return tapp(t, "volumeClaimTemplates: [{metadata: {name: data"+metadata+"}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]")
	}
	was := with(", labels: {app: rabbit, helm.sh/chart: rabbit-1.4.0}, annotations: {backup: daily}")
	for _, metadata := range []string{
		", labels: {app: rabbit, helm.sh/chart: rabbit-1.5.0}, annotations: {backup: daily}",
		", labels: {app: rabbit, helm.sh/chart: rabbit-1.4.0}, annotations: {backup: weekly}",
		"",
	} {
		wantFindings(t, rule.Findings("Claims", compareClaims(with(metadata), was)), "")
	}
}
