// Package revision knows the versions of a TApp's templates: what a ControllerRevision
// keeps of a spec, and how a version is named.
package revision

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/template"
)

// Version is what a revision keeps of a spec: the templates, and which instance
// has which. To roll back is to put its four fields into the spec again; all other
// fields say how many instances run and how they change, not what they are.
type Version struct {
	Template            corev1.PodTemplateSpec            `json:"template"`
	TemplatePool        map[string]corev1.PodTemplateSpec `json:"templatePool,omitempty"`
	Templates           map[string]string                 `json:"templates,omitempty"`
	DefaultTemplateName string                            `json:"defaultTemplateName,omitempty"`
}

// versionData is how ControllerRevision.data holds a version, after the model of
// StatefulSet's: the part of the object that it is about.
type versionData struct {
	Spec Version `json:"spec"`
}

// Data returns the version as ControllerRevision.data has it.
func (v Version) Data() ([]byte, error) { return template.Ordered(versionData{Spec: v}) }

// Of returns the version of a TApp, with the defaults applied and without stamped hashes.
func Of(t *tappv1.TApp) Version {
	complete := t.DeepCopy()
	tappv1.Default(complete)
	return OfDefaulted(complete)
}

// OfDefaulted is Of for a TApp that has its defaults.
func OfDefaulted(defaulted *tappv1.TApp) Version {
	s := &defaulted.Spec
	v := Version{Template: unstamped(s.Template), DefaultTemplateName: s.DefaultTemplateName}
	if len(s.TemplatePool) > 0 {
		v.TemplatePool = make(map[string]corev1.PodTemplateSpec, len(s.TemplatePool))
		for name, t := range s.TemplatePool {
			v.TemplatePool[name] = unstamped(t)
		}
	}
	for id, name := range s.Templates {
		if name == "" {
			continue // as good as no entry
		}
		if v.Templates == nil {
			v.Templates = make(map[string]string, len(s.Templates))
		}
		v.Templates[id] = name
	}
	return v
}

func unstamped(t corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	t.Labels = tappv1.WithoutHashLabels(t.Labels)
	return t
}

// Hash names the version. Two spellings of the same templates have the same one.
func (v Version) Hash() (string, error) { return v.HashWith(nil) }

// HashWith is Hash for a caller who knows the hashes of some templates, by name.
func (v Version) HashWith(known map[string]string) (string, error) {
	hashes := make(map[string]any, len(v.TemplatePool)+1)
	add := func(name, path string, t *corev1.PodTemplateSpec) error {
		if has, ok := known[name]; ok {
			hashes[name] = has
			return nil
		}
		h, err := template.Hash(t)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		hashes[name] = h.Template
		return nil
	}
	for name, t := range v.TemplatePool {
		if err := add(name, "templatePool["+name+"]", &t); err != nil {
			return "", err
		}
	}
	if err := add(tappv1.DefaultTemplateName, "template", &v.Template); err != nil {
		return "", err
	}
	// Maps of strings marshal with sorted keys.
	text, err := json.Marshal([]any{hashes, v.Templates, v.DefaultTemplateName})
	if err != nil {
		return "", fmt.Errorf("write the version: %w", err)
	}
	return template.Digest(text), nil
}

// Read returns the version that a ControllerRevision holds.
func Read(r *appsv1.ControllerRevision) (Version, error) {
	var data versionData
	if err := json.Unmarshal(r.Data.Raw, &data); err != nil {
		return Version{}, fmt.Errorf("revision %s cannot be read: %w", r.Name, err)
	}
	return data.Spec, nil
}
