package claim

import (
	"encoding/json"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// TestSpare: what Argo CD documents of sync-options and compare-options, joined to what is there.
func TestSpare(t *testing.T) {
	const sync, compare, all, extraneous = "argocd.argoproj.io/sync-options", "argocd.argoproj.io/compare-options", "Prune=false,Delete=false", "IgnoreExtraneous"
	tracked, both := map[string]string{tappv1.DefaultTrackingLabel: "shop"}, map[string]string{sync: all, compare: extraneous}
	now := metav1.Now()
	for name, c := range map[string]struct {
		tracking string
		labels   map[string]string
		has      map[string]string
		owner    string
		dying    bool
		verdict  Verdict
		want     map[string]string
	}{
		"tracked":                    {labels: tracked, want: both},
		"tracked by an empty value":  {labels: map[string]string{tappv1.DefaultTrackingLabel: ""}, want: both},
		"marked":                     {labels: tracked, verdict: Verdict{Use: Ours, Marked: true, Proven: true}, want: both},
		"not tracked":                {labels: map[string]string{"app": "web"}},
		"tracked by another label":   {tracking: "example.com/app", labels: map[string]string{"example.com/app": "shop"}, want: both},
		"tracked by that one only":   {tracking: "example.com/app", labels: tracked},
		"nobody tracks":              {tracking: "none", labels: map[string]string{"": "x"}},
		"owned":                      {labels: tracked, owner: "TApp"},
		"owned by somebody":          {labels: tracked, owner: "Backup"},
		"made by hand":               {labels: tracked, verdict: Verdict{Use: Ours, Found: true, Marked: true}},
		"another's":                  {labels: tracked, verdict: Verdict{Use: Taken}},
		"unclear":                    {labels: tracked, verdict: Verdict{Use: Unclear, Unread: []string{"x"}}},
		"being deleted":              {labels: tracked, dying: true},
		"done":                       {labels: tracked, has: both},
		"done in another order":      {labels: tracked, has: map[string]string{sync: "Delete=false, Prune=false", compare: " IgnoreExtraneous "}},
		"other options stay":         {labels: tracked, has: map[string]string{sync: "Validate=false", compare: "ServerSideDiff=true"}, want: map[string]string{sync: "Validate=false," + all, compare: "ServerSideDiff=true," + extraneous}},
		"a comma at the end":         {labels: tracked, has: map[string]string{sync: "Validate=false, "}, want: map[string]string{sync: "Validate=false," + all, compare: extraneous}},
		"its own Prune wins":         {labels: tracked, has: map[string]string{sync: "Prune=true"}, want: map[string]string{sync: "Prune=true,Delete=false", compare: extraneous}},
		"its own Delete wins":        {labels: tracked, has: map[string]string{sync: "Delete=confirm"}, want: map[string]string{sync: "Delete=confirm,Prune=false", compare: extraneous}},
		"both its own":               {labels: tracked, has: map[string]string{sync: "Prune=confirm,Delete=true", compare: extraneous}},
		"PruneLast is another":       {labels: tracked, has: map[string]string{sync: "PruneLast=true", compare: extraneous}, want: map[string]string{sync: "PruneLast=true," + all}},
		"an option without a value":  {labels: tracked, has: map[string]string{sync: "Prune", compare: extraneous}, want: map[string]string{sync: "Prune," + all}},
		"compare-options was missed": {labels: tracked, has: map[string]string{sync: all}, want: map[string]string{compare: extraneous}},
	} {
		t.Run(name, func(t *testing.T) {
			us := OfTApp(db())
			switch us.Tracking = c.tracking; c.tracking {
			case "":
				us.Tracking = tappv1.DefaultTrackingLabel
			case "none":
				us.Tracking = ""
			}
			if c.verdict.Use == Unclear && c.verdict.Unread == nil {
				c.verdict.Use = Ours
			}
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{UID: "u1", ResourceVersion: "7", Labels: c.labels, Annotations: c.has}}
			if c.owner != "" {
				claim.OwnerReferences = []metav1.OwnerReference{{Kind: c.owner}}
			}
			if c.dying {
				claim.DeletionTimestamp = &now
			}
			before := maps.Clone(c.has)
			got := us.Spare(claim, c.verdict)
			if !maps.Equal(got, c.want) || (got == nil) != (c.want == nil) || !maps.Equal(claim.Annotations, before) {
				t.Errorf("got %q, want %q; the claim has %q", got, c.want, claim.Annotations)
			}
			patch, why := us.SparePatch(claim, c.verdict)
			if (patch == nil) != (c.want == nil) || (why == "") != (c.want == nil) {
				t.Fatalf("got %s: %s", patch, why)
			}
			var p struct{ Metadata metav1.ObjectMeta }
			if patch != nil && (json.Unmarshal(patch, &p) != nil || p.Metadata.UID != "u1" || p.Metadata.ResourceVersion != "7" || !maps.Equal(p.Metadata.Annotations, c.want)) {
				t.Errorf("got %s", patch)
			}
			// Once: what has been written asks for nothing more.
			after := claim.DeepCopy()
			if after.Annotations == nil {
				after.Annotations = map[string]string{}
			}
			maps.Copy(after.Annotations, got)
			if again := us.Spare(after, c.verdict); again != nil {
				t.Errorf("and again %q", again)
			}
		})
	}
}
