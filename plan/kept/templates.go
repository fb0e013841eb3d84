package kept

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/template"
)

// Template of a revision.
type Template struct {
	Spec   *corev1.PodTemplateSpec
	Hashes template.Hashes
	// Revision is the number of the newest revision that has it.
	Revision int64
}

// Templates are those of the revisions of a TApp, by their hash.
type Templates struct {
	byHash   map[string]*Template
	versions []version // the newest first
}

// version is which template an instance had in a revision.
type version struct {
	// of instances, by id, and of the others.
	own    map[string]string
	common string
	hashes map[string]string // by name
}

// ReadTemplates reads them. The revisions have their data, and the newest is the last one.
// One that cannot be read has none.
func ReadTemplates(revisions []*appsv1.ControllerRevision) *Templates {
	t := &Templates{byHash: map[string]*Template{}}
	known := map[string]*Template{} // most revisions share most templates, which are hashed once
	for _, r := range slices.Backward(revisions) {
		var data struct {
			Spec struct {
				Template            json.RawMessage            `json:"template"`
				TemplatePool        map[string]json.RawMessage `json:"templatePool"`
				Templates           map[string]string          `json:"templates"`
				DefaultTemplateName string                     `json:"defaultTemplateName"`
			} `json:"spec"`
		}
		if json.Unmarshal(r.Data.Raw, &data) != nil {
			continue
		}
		raw := maps.Clone(data.Spec.TemplatePool)
		if raw == nil {
			raw = map[string]json.RawMessage{}
		}
		raw[tappv1.DefaultTemplateName] = data.Spec.Template
		v := version{own: data.Spec.Templates, common: cmp.Or(data.Spec.DefaultTemplateName, tappv1.DefaultTemplateName), hashes: map[string]string{}}
		for name, text := range raw { // in any order: each has a name of its own
			has := known[string(text)]
			if has == nil {
				if has = t.read(text, r.Revision); has == nil {
					continue
				}
				known[string(text)] = has
			}
			v.hashes[name] = has.Hashes.Template
		}
		t.versions = append(t.versions, v)
	}
	return t
}

// read a template of a revision; nil: it cannot be.
func (t *Templates) read(text json.RawMessage, revision int64) *Template {
	spec := &corev1.PodTemplateSpec{}
	if json.Unmarshal(text, spec) != nil {
		return nil
	}
	hashes, err := template.Hash(spec)
	if err != nil {
		return nil
	}
	has := t.byHash[hashes.Template]
	if has == nil {
		has = &Template{Spec: spec, Hashes: hashes, Revision: revision}
		t.byHash[hashes.Template] = has
	}
	return has
}

// Find the template with a hash; nil: no revision has it.
func (t *Templates) Find(hash string) *Template { return t.byHash[hash] }

// NameOf is the name of the template by which the instance came to the hash: that of the
// newest revision in which its template has it. Empty: it cannot be told.
func (t *Templates) NameOf(id, hash string) string {
	for _, v := range t.versions {
		if name := cmp.Or(v.own[id], v.common); v.hashes[name] == hash {
			return name
		}
	}
	return ""
}

// IsNewestOf says whether the revision with a number is the newest that has the template of
// one of the hashes.
func (t *Templates) IsNewestOf(revision int64, hashes map[string]bool) bool {
	for hash := range hashes {
		if has := t.byHash[hash]; has != nil && has.Revision == revision {
			return true
		}
	}
	return false
}
