package v1_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// withPool makes a spec with a template for each name.
func withPool(names ...string) *tappv1.TAppSpec {
	s := &tappv1.TAppSpec{TemplatePool: map[string]corev1.PodTemplateSpec{}}
	s.Template.Name = "spec.template"
	for _, name := range names {
		t := corev1.PodTemplateSpec{}
		t.Name = "pool " + name
		s.TemplatePool[name] = t
	}
	return s
}

func TestFindTemplate(t *testing.T) {
	s := withPool("blue", "default")
	for name, want := range map[string]string{"default": "spec.template", "blue": "pool blue", "green": "", "": ""} {
		got := s.FindTemplate(name)
		if got == nil && want != "" || got != nil && got.Name != want {
			t.Errorf("%q: %v, want %q", name, got, want)
		}
	}
	if s.FindTemplate("default") != &s.Template {
		t.Error("the default template is a copy")
	}
}

func TestTemplateNames(t *testing.T) {
	for _, c := range []struct {
		pool        []string
		names       []string
		description string
	}{
		{nil, []string{"default"}, "there are: default"},
		{[]string{"green", "blue"}, []string{"default", "blue", "green"}, "there are: default, blue, green"},
		{[]string{"default", "a"}, []string{"default", "a"}, "there are: default, a"},
		{[]string{"e", "d", "c", "b", "a"}, []string{"default", "a", "b", "c", "d", "e"}, "there are: default, a, b, c, d, e"},
		{[]string{"f", "e", "d", "c", "b", "a"}, []string{"default", "a", "b", "c", "d", "e", "f"}, "there are: default, a, b, c, d, e, ..."},
	} {
		s := withPool(c.pool...)
		if names, description := s.TemplateNames(), s.DescribeTemplates(); !slices.Equal(names, c.names) || description != c.description {
			t.Errorf("%q: %q and %q, want %q and %q", c.pool, names, description, c.names, c.description)
		}
	}
}

func TestUnusedTemplates(t *testing.T) {
	s := withPool("canary", "blue", "green", "rolling", "default")
	s.DefaultTemplateName, s.UpdateStrategy.Template = "blue", "rolling"
	s.Templates = map[string]string{"0": "green", "9": "green", "1": "lost"}
	if got, want := s.UnusedTemplates(), []string{"canary", "default"}; !slices.Equal(got, want) {
		t.Errorf("unused are %q, want %q", got, want)
	}
}
