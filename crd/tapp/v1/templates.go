package v1

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// FindTemplate returns the template of that name, or nil. A template of the pool is
// a copy.
func (s *TAppSpec) FindTemplate(name string) *corev1.PodTemplateSpec {
	if name == DefaultTemplateName {
		return &s.Template
	}
	if t, ok := s.TemplatePool[name]; ok {
		return &t
	}
	return nil
}

// TemplateNames returns the names by which FindTemplate finds something: "default",
// then those of the pool in alphabetical order.
func (s *TAppSpec) TemplateNames() []string {
	names := []string{DefaultTemplateName}
	for _, name := range slices.Sorted(maps.Keys(s.TemplatePool)) {
		if name != DefaultTemplateName { // an entry of that name is never used
			names = append(names, name)
		}
	}
	return names
}

// DescribeTemplates lists the names for messages about one that is missing: "there
// are: default, blue". Of a large pool it lists the first ones.
func (s *TAppSpec) DescribeTemplates() string {
	const most = 6
	names := s.TemplateNames()
	if len(names) > most {
		names = append(names[:most], "...")
	}
	return "there are: " + strings.Join(names, ", ")
}

// UnusedTemplates returns, in alphabetical order, the entries of the pool that
// neither templates, nor defaultTemplateName, nor updateStrategy.template names. The
// spec must have its defaults.
func (s *TAppSpec) UnusedTemplates() []string {
	used := map[string]bool{s.DefaultTemplateName: true, s.UpdateStrategy.Template: true}
	for _, name := range s.Templates {
		used[name] = true
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(s.TemplatePool)), func(name string) bool { return used[name] })
}
