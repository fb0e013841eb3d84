package v1_test

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

func TestDefault(t *testing.T) {
	labels := map[string]string{"app": "a"}
	stamped := map[string]string{"app": "a", tappv1.LabelTemplateHash: "1", tappv1.LabelUniqHash: "2"}
	for name, test := range map[string]struct {
		set  func(*tappv1.TApp)
		want func(*tappv1.TAppSpec)
	}{
		"empty":                     {func(*tappv1.TApp) {}, func(*tappv1.TAppSpec) {}},
		"explicit zero":             {func(t *tappv1.TApp) { t.Spec.Replicas = new(int32(0)) }, func(s *tappv1.TAppSpec) { s.Replicas = new(int32(0)) }},
		"no history":                {func(t *tappv1.TApp) { t.Spec.RevisionHistoryLimit = new(int32(0)) }, func(s *tappv1.TAppSpec) { s.RevisionHistoryLimit = new(int32(0)) }},
		"no drain":                  {func(t *tappv1.TApp) { t.Spec.UpdateStrategy.InPlaceUpdate.Drain = new(false) }, func(s *tappv1.TAppSpec) { s.UpdateStrategy.InPlaceUpdate.Drain = new(false) }},
		"rolling follows default":   {func(t *tappv1.TApp) { t.Spec.DefaultTemplateName = "b" }, func(s *tappv1.TAppSpec) { s.DefaultTemplateName, s.UpdateStrategy.Template = "b", "b" }},
		"rolling named":             {func(t *tappv1.TApp) { t.Spec.UpdateStrategy.Template = "c" }, func(s *tappv1.TAppSpec) { s.UpdateStrategy.Template = "c" }},
		"tutorial's spelling":       {func(t *tappv1.TApp) { t.Spec.LegacyDefaultTemplateName = "b" }, func(s *tappv1.TAppSpec) { s.DefaultTemplateName, s.UpdateStrategy.Template = "b", "b" }},
		"both spellings":            {func(t *tappv1.TApp) { t.Spec.DefaultTemplateName, t.Spec.LegacyDefaultTemplateName = "b", "c" }, func(s *tappv1.TAppSpec) { s.DefaultTemplateName, s.UpdateStrategy.Template = "b", "b" }},
		"impossible budget":         {func(t *tappv1.TApp) { t.Spec.UpdateStrategy.MaxUnavailable = new(intstr.FromString("x")) }, func(s *tappv1.TAppSpec) { s.UpdateStrategy.MaxUnavailable = new(intstr.FromString("x")) }},
		"selector from template":    {func(t *tappv1.TApp) { t.Spec.Template.Labels = labels }, func(s *tappv1.TAppSpec) { s.Selector = &metav1.LabelSelector{MatchLabels: labels} }},
		"selector without hashes":   {func(t *tappv1.TApp) { t.Spec.Template.Labels = stamped }, func(s *tappv1.TAppSpec) { s.Selector = &metav1.LabelSelector{MatchLabels: labels} }},
		"selector without versions": {func(t *tappv1.TApp) { t.Spec.Template.Labels = map[string]string{"app": "a", "version": "1"} }, func(s *tappv1.TAppSpec) { s.Selector = &metav1.LabelSelector{MatchLabels: labels} }},
		"selector of a status with a version": {func(t *tappv1.TApp) { // as an earlier TApp took it
			t.Status.ScaleLabelSelector, t.Spec.Template.Labels = "app=a,version=1", map[string]string{"app": "a", "version": "2"}
		}, func(s *tappv1.TAppSpec) {
			s.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a", "version": "1"}}
		}},
		"stored selector with a version": {func(t *tappv1.TApp) {
			t.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a", "version": "1"}}
		}, func(*tappv1.TAppSpec) {}},
		"selector loses hashes": {func(t *tappv1.TApp) { t.Spec.Selector = &metav1.LabelSelector{MatchLabels: stamped} }, func(s *tappv1.TAppSpec) { s.Selector = &metav1.LabelSelector{MatchLabels: labels} }},
		"selector of the status": {func(t *tappv1.TApp) {
			t.Status.ScaleLabelSelector, t.Spec.Template.Labels = "app=a", map[string]string{"app": "b"}
		}, func(s *tappv1.TAppSpec) { s.Selector = &metav1.LabelSelector{MatchLabels: labels} }},
		"selector is only hashes": {func(t *tappv1.TApp) { t.Spec.Template.Labels = map[string]string{tappv1.LabelUniqHash: "2"} }, func(*tappv1.TAppSpec) {}},
		"one half of claim policy": {func(t *tappv1.TApp) {
			t.Spec.PersistentVolumeClaimRetentionPolicy = &tappv1.PersistentVolumeClaimRetentionPolicy{WhenScaled: "Delete"}
		}, func(s *tappv1.TAppSpec) { s.PersistentVolumeClaimRetentionPolicy.WhenScaled = "Delete" }},
	} {
		t.Run(name, func(t *testing.T) {
			tapp := &tappv1.TApp{}
			test.set(tapp)
			want := tapp.Spec.DeepCopy()
			want.Replicas = new(int32(1))
			want.DefaultTemplateName, want.LegacyDefaultTemplateName = "default", ""
			want.UpdateStrategy = tappv1.TAppUpdateStrategy{
				Template:       "default",
				MaxUnavailable: new(intstr.FromInt32(1)),
				ForceUpdate:    tappv1.ForceUpdateStrategy{MaxUnavailable: new(intstr.FromString("100%"))},
				InPlaceUpdate:  tappv1.InPlaceUpdateStrategy{Policy: tappv1.InPlaceIfPossible, Drain: new(true)},
			}
			want.RevisionHistoryLimit = new(int32(10))
			want.ProgressDeadlineSeconds = new(int32(600))
			want.PersistentVolumeClaimRetentionPolicy = &tappv1.PersistentVolumeClaimRetentionPolicy{WhenDeleted: "Retain", WhenScaled: "Retain"}
			test.want(want)

			tappv1.Default(tapp)
			if !equality.Semantic.DeepEqual(&tapp.Spec, want) {
				t.Errorf("defaulted to\n%s\nwant\n%s", asJSON(t, tapp.Spec), asJSON(t, want))
			}
		})
	}
}

// TestDefaultOfAnything: a second call changes nothing, whatever the object holds,
// and no template, claim or status is touched.
func TestDefaultOfAnything(t *testing.T) {
	for seed := range int64(200) {
		tapp := random(seed)
		before := tapp.DeepCopy()
		tappv1.Default(tapp)
		once := tapp.DeepCopy()
		tappv1.Default(tapp)
		if !equality.Semantic.DeepEqual(once, tapp) {
			t.Fatalf("seed %d: the second call changed\n%s\nto\n%s", seed, asJSON(t, once), asJSON(t, tapp))
		}
		if !equality.Semantic.DeepEqual(before.Spec.Template, tapp.Spec.Template) ||
			!equality.Semantic.DeepEqual(before.Spec.TemplatePool, tapp.Spec.TemplatePool) ||
			!equality.Semantic.DeepEqual(before.Spec.VolumeClaimTemplates, tapp.Spec.VolumeClaimTemplates) ||
			!equality.Semantic.DeepEqual(before.Status, tapp.Status) {
			t.Fatalf("seed %d: more than the spec's own fields changed", seed)
		}
	}
}

// TestDefaultSharesNothing: the selector is a copy, so that stamping labels onto the
// template cannot change it.
func TestDefaultSharesNothing(t *testing.T) {
	tapp := &tappv1.TApp{}
	tapp.Spec.Template.Labels = map[string]string{"app": "a"}
	tappv1.Default(tapp)
	tapp.Spec.Template.Labels["more"] = "b"
	if n := len(tapp.Spec.Selector.MatchLabels); n != 1 {
		t.Errorf("the selector has %d labels", n)
	}
}

func TestRoundTrip(t *testing.T) {
	for seed := range int64(50) {
		tapp := random(seed)
		read := &tappv1.TApp{}
		if err := json.Unmarshal(asJSON(t, tapp), read); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if !equality.Semantic.DeepEqual(tapp, read) {
			t.Errorf("seed %d: wrote\n%s\nread\n%s", seed, asJSON(t, tapp), asJSON(t, read))
		}
	}
}

// TestSpellings: the two spellings of defaultTemplateName are two fields.
func TestSpellings(t *testing.T) {
	spec := &tappv1.TAppSpec{}
	if err := json.Unmarshal([]byte(`{"DefaultTemplateName":"old","defaultTemplateName":"new"}`), spec); err != nil {
		t.Fatal(err)
	}
	if spec.DefaultTemplateName != "new" || spec.LegacyDefaultTemplateName != "old" {
		t.Errorf("read %q and %q", spec.DefaultTemplateName, spec.LegacyDefaultTemplateName)
	}
}

func TestScheme(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := tappv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	kinds, _, err := scheme.ObjectKinds(&tappv1.TApp{})
	if err != nil || len(kinds) != 1 || kinds[0] != tappv1.GroupVersionKind() {
		t.Errorf("kinds %v, %v", kinds, err)
	}
}

func random(seed int64) *tappv1.TApp {
	tapp := &tappv1.TApp{}
	randfill.NewWithSeed(seed).NilChance(0.5).NumElements(1, 2).Funcs(
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewMilliQuantity(c.Int63n(1e6), resource.DecimalSI)
		},
		func(time *metav1.Time, c randfill.Continue) { *time = metav1.Unix(c.Int63n(1e9), 0) },
		func(f *metav1.FieldsV1, _ randfill.Continue) { f.SetRawString(`{}`) },
		func(p *corev1.PodSpec, c randfill.Continue) { p.NodeName = c.String(5) }, // the rest is Kubernetes' own
		func(v *intstr.IntOrString, c randfill.Continue) {
			if *v = intstr.FromInt32(c.Int31()); c.Bool() {
				*v = intstr.FromString(c.String(10))
			}
		},
	).Fill(tapp)
	return tapp
}

func asJSON(t *testing.T, v any) []byte {
	t.Helper()
	content, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
