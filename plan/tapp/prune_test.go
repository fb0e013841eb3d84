package tapp

import (
	"encoding/json"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// prune is an API server that merges the patch.
func (c *cluster) prune(a Action) {
	var patch struct {
		Spec struct {
			TemplatePool map[string]any `json:"templatePool"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(a.Patch, &patch); err != nil {
		c.t.Fatal(err)
	}
	for name, is := range patch.Spec.TemplatePool {
		if is != nil {
			c.t.Fatalf("template %s becomes %v", name, is)
		}
		delete(c.tapp.Spec.TemplatePool, name)
	}
	c.tapp.Generation++
	c.writes++
}

func TestPruneTemplates(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*tappv1.TAppSpec)
		unused []string
		patch  string
	}{
		"not asked for": {func(s *tappv1.TAppSpec) { s.AutoDeleteUnusedTemplate = false }, []string{"blue", "green"}, ""},
		"two":           {func(*tappv1.TAppSpec) {}, []string{"blue", "green"}, `{"metadata":{"resourceVersion":"7","uid":"tapp"},"spec":{"templatePool":{"blue":null,"green":null}}}`},
		"one":           {func(s *tappv1.TAppSpec) { s.Templates = map[string]string{"9": "green"} }, []string{"blue"}, `{"metadata":{"resourceVersion":"7","uid":"tapp"},"spec":{"templatePool":{"blue":null}}}`},
		"the default":   {func(s *tappv1.TAppSpec) { s.LegacyDefaultTemplateName = "blue" }, []string{"green"}, `{"metadata":{"resourceVersion":"7","uid":"tapp"},"spec":{"templatePool":{"green":null}}}`},
		"none": {func(s *tappv1.TAppSpec) {
			s.DefaultTemplateName, s.UpdateStrategy.Template = "blue", "green"
		}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tapp := historic(nil)
			tapp.ResourceVersion = "7"
			tapp.Spec.AutoDeleteUnusedTemplate = true
			tapp.Spec.TemplatePool = map[string]corev1.PodTemplateSpec{"green": templateOf("g:1"), "blue": templateOf("b:1")}
			c.change(&tapp.Spec)
			if unused := defaulted(tapp).Spec.UnusedTemplates(); !slices.Equal(unused, c.unused) {
				t.Errorf("unused are %v, not %v", unused, c.unused)
			}
			patch := ""
			for _, a := range Compute(Input{TApp: tapp, Now: ago(0).Time}).History {
				if a.Op == OpPruneTemplates {
					patch = string(a.Patch)
				}
			}
			if patch != c.patch {
				t.Errorf("the patch is %s, not %s", patch, c.patch)
			}
		})
	}
}
