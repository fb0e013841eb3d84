package tapp

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/template"
)

// podTemplate is a usable pod template with its hashes.
type podTemplate struct {
	Name   string
	Spec   *corev1.PodTemplateSpec
	Hashes template.Hashes
	// Keys is the value of the annotation AnnotationTemplateKeys.
	Keys string
	// known is the shape hash, once it was asked for.
	known string
	// model is what the pods of this template share.
	model *corev1.PodTemplateSpec
	// actions on instances of this template that the plan has already.
	actions int
}

// shape returns the shape hash. Most plans get by without it.
func (t *podTemplate) shape() string {
	if t.known == "" {
		t.known = t.Hashes.Shape(t.Spec)
	}
	return t.known
}

// templates resolves names to templates. Only those that an instance uses are
// looked at: the hash is the most expensive part of a plan.
type templates struct {
	usable map[string]*podTemplate
	// unusable templates: name to the problem that instances which name it have.
	unusable map[string]Problem
}

// readTemplates checks what the spec says of templates as such.
func (d *decision) readTemplates() {
	d.usable = map[string]*podTemplate{}
	d.unusable = map[string]Problem{}
	s := &d.tapp.Spec
	if _, ok := s.TemplatePool[tappv1.DefaultTemplateName]; ok {
		d.problem(ReasonInvalidSpec, "spec.templatePool[default]", "the name default belongs to spec.template, and this entry is never used; give it another name")
	}
	if d.lookup(s.DefaultTemplateName) == nil {
		d.problem(ReasonTemplateMissing, "spec.defaultTemplateName", "there is no template %q; add it to spec.templatePool, or name another one (%s)", s.DefaultTemplateName, d.names())
	}
}

// lookup returns the template of that name, or nil.
func (d *decision) lookup(name string) *corev1.PodTemplateSpec {
	if name == tappv1.DefaultTemplateName {
		return &d.tapp.Spec.Template
	}
	if t, ok := d.tapp.Spec.TemplatePool[name]; ok {
		return &t
	}
	return nil
}

// names of the templates that exist, for messages.
func (d *decision) names() string {
	names := slices.Sorted(maps.Keys(d.tapp.Spec.TemplatePool))
	names = slices.DeleteFunc(names, func(n string) bool { return n == tappv1.DefaultTemplateName })
	const most = 5
	if len(names) > most {
		names = append(names[:most], "...")
	}
	return "there are: " + strings.Join(append([]string{tappv1.DefaultTemplateName}, names...), ", ")
}

// assignTemplate finds the template of an instance, or holds the instance.
func (d *decision) assignTemplate(i *instance) {
	name, field := d.tapp.Spec.DefaultTemplateName, "spec.defaultTemplateName"
	if own, ok := d.tapp.Spec.Templates[i.id]; ok && own != "" {
		name, field = own, "spec.templates["+i.id+"]"
	}
	i.templateName = name
	if !i.wanted || i.stopped {
		return // what is going away needs no template
	}
	if d.frozen != "" {
		i.hold(ReasonInvalidSpec, d.frozen)
		return
	}
	if t, ok := d.usable[name]; ok {
		i.template = t
		return
	}
	p, known := d.unusable[name]
	if !known {
		var t *podTemplate
		if t, p = d.use(name, field); t != nil {
			d.usable[name], i.template = t, t
			return
		}
		d.unusable[name] = p
		if p.Field != "spec.defaultTemplateName" { // readTemplates has said it
			d.problems = append(d.problems, p)
		}
	}
	i.hold(p.Reason, p.Why)
}

// use makes a template ready for use, or says why it cannot be used. A template
// is reported once, at the first instance that needs it.
func (d *decision) use(name, field string) (*podTemplate, Problem) {
	spec := d.lookup(name)
	if spec == nil {
		return nil, Problem{Field: field, Reason: ReasonTemplateMissing,
			Why: fmt.Sprintf("there is no template %q; add it to spec.templatePool, or name another one (%s)", name, d.names())}
	}
	path := "spec.template"
	if name != tappv1.DefaultTemplateName {
		path = "spec.templatePool[" + name + "]"
	}
	if d.selector != nil && !d.selector.Matches(labels.Set(spec.Labels)) {
		return nil, Problem{Field: path + ".metadata.labels", Reason: ReasonSelectorMismatch,
			Why: fmt.Sprintf("the selector %s does not match the labels of template %q, so that its pods would not belong to this TApp; give the template these labels", d.selector, name)}
	}
	hashes, err := template.Hash(spec)
	if err != nil {
		return nil, Problem{Field: path, Reason: ReasonInvalidSpec, Why: fmt.Sprintf("the template cannot be hashed: %v", err)}
	}
	return &podTemplate{Name: name, Spec: spec, Hashes: hashes, Keys: template.MarshalKeys(spec)}, Problem{}
}
