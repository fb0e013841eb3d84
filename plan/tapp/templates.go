package tapp

import (
	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/problem"
	"tkestack.io/tapp/plan/template"
)

// podTemplate is a usable pod template with its hashes.
type podTemplate struct {
	Name   string
	Spec   *corev1.PodTemplateSpec
	Hashes template.Hashes
	// Record is the value of the annotation AnnotationTemplateKeys.
	Record string
	// knownShape is the shape hash, once it was asked for.
	knownShape string
	// model is what the pods of this template share.
	model *corev1.PodTemplateSpec
	// recreations says by the hash of another template how pods of that one differ
	// from this one. Pods with a hash of ours were made from one template, so that
	// what holds for one of them holds for all.
	recreations map[string]string
	// actions on instances of this template that the plan has already.
	actions int
}

// shape returns the shape hash. Most plans get by without it.
func (t *podTemplate) shape() string {
	if t.knownShape == "" {
		t.knownShape = t.Hashes.Shape(t.Spec)
	}
	return t.knownShape
}

// templates resolves names to templates. Only those that an instance uses are
// looked at: the hash is the most expensive part of a plan.
type templates struct {
	usable map[string]*podTemplate
	// former templates that pods are made from again, by hash.
	former map[string]*podTemplate
	// unusable templates: name to the problem that instances which name it have.
	unusable map[string]Problem
	// memo of records and images: to read them would take longer than all else that a plan
	// does with a pod.
	memo template.Memo
}

// readTemplates checks what the spec says of templates as such.
func (s *spec) readTemplates() {
	s.templates = templates{usable: map[string]*podTemplate{}, former: map[string]*podTemplate{}, unusable: map[string]Problem{}}
	if _, ok := s.tapp.Spec.TemplatePool[tappv1.DefaultTemplateName]; ok {
		s.problem(problem.Entries, ReasonInvalidSpec, "spec.templatePool[default]", "the name default belongs to spec.template, and this entry is never used; give it another name")
	}
	if name := s.tapp.Spec.DefaultTemplateName; s.lookup(name) == nil {
		s.problem(problem.Instances, ReasonTemplateMissing, "spec.defaultTemplateName", "there is no template %q; add it to spec.templatePool, or name another one (%s)", name, s.names())
	}
}

// lookup returns the template of that name, or nil.
func (s *spec) lookup(name string) *corev1.PodTemplateSpec { return s.tapp.Spec.FindTemplate(name) }

// names of the templates that exist, for messages.
func (s *spec) names() string { return s.tapp.Spec.DescribeTemplates() }

// assignTemplate finds the template of an instance, or says why it waits for one.
func (s *spec) assignTemplate(i *instance) {
	name, field := s.tapp.Spec.DefaultTemplateName, "spec.defaultTemplateName"
	if own, ok := s.tapp.Spec.Templates[i.name]; ok && own != "" {
		name, field = own, "spec.templates["+i.name+"]"
	}
	i.templateName = name
	if !i.inRange || i.stopped {
		return // what is going away needs no template
	}
	if s.frozen != "" {
		i.wait(ReasonInvalidSpec, s.frozen)
		return
	}
	if t, ok := s.usable[name]; ok {
		i.template = t
		return
	}
	p, known := s.unusable[name]
	if !known {
		var t *podTemplate
		if t, p = s.use(name, field); t != nil {
			s.usable[name], i.template = t, t
			return
		}
		s.unusable[name] = p
		if p.Field != "spec.defaultTemplateName" { // readTemplates has said it
			s.problems = append(s.problems, p)
		}
	}
	i.wait(p.Reason, p.Why)
}

// use makes a template ready for use, or says why it cannot be used. A template
// is reported once, at the first instance that needs it.
func (s *spec) use(name, field string) (*podTemplate, Problem) {
	spec := s.lookup(name)
	if spec == nil {
		return nil, problem.New(problem.Instances, ReasonTemplateMissing, field,
			"there is no template %q; add it to spec.templatePool, or name another one (%s)", name, s.names())
	}
	path := "spec.template"
	if name != tappv1.DefaultTemplateName {
		path = "spec.templatePool[" + name + "]"
	}
	if unmet := tappv1.Unmet(s.selector, spec.Labels); len(unmet) > 0 {
		r := &unmet[0]
		return nil, problem.New(problem.Instances, ReasonSelectorMismatch, path+".metadata.labels["+r.Key()+"]",
			"the selector has %[1]s, so that pods of template %[2]q would not belong to this TApp; give the template %[1]s, or delete the TApp with --cascade=orphan and create it with a selector without %[3]s", r, name, r.Key())
	}
	hashes, err := template.Hash(spec)
	if err != nil {
		return nil, problem.New(problem.Instances, ReasonInvalidSpec, path, "the template cannot be hashed: %v", err)
	}
	return &podTemplate{Name: name, Spec: spec, Hashes: hashes, Record: template.MarshalRecord(spec)}, Problem{}
}

// recordOf a pod is what its template said, see template.RecordOf.
func (t *templates) recordOf(i *instance) *template.Record { return t.memo.RecordOf(i.pod) }

// hashes of the templates that instances use, by name.
func (t *templates) hashes() map[string]string {
	out := make(map[string]string, len(t.usable))
	for name, has := range t.usable {
		out[name] = has.Hashes.Template
	}
	return out
}
