package tapp

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/plan/template"
	"tkestack.io/tapp/process/parallel"
	"tkestack.io/tapp/webhook/rule"
)

// completion is what complete does to an object.
type completion struct {
	// Patch is a JSON patch; empty: the object is complete.
	Patch []edit
	// Warnings for the user.
	Warnings rule.Warnings
	// Denied are contradictions in the spec.
	Denied field.ErrorList
}

// complete writes the defaults, the selector and the hashes into the spec. Three
// rules keep tools quiet that apply the same manifest again and again:
//
//   - It is idempotent. The same manifest gives the same object, whether or not the
//     object is stored already with what was added to it.
//   - It writes only defaults that do not depend on other fields. It does not write
//     updateStrategy.template, which has to follow defaultTemplateName. It writes the
//     selector, which must not follow the labels.
//   - It leaves an update alone that leaves the spec alone.
//
// It ignores what the schema rejects, whose messages are good. old is nil on
// creation. object is edited in place.
func complete(object, old map[string]any) (completion, error) {
	now, was := tree{root: object}, tree{root: old}
	spec := now.object("spec")
	if spec == nil {
		return completion{}, nil
	}
	if old != nil && (now.get("metadata", "deletionTimestamp") != nil || reflect.DeepEqual(spec, was.object("spec"))) {
		return completion{}, nil
	}
	e := &completer{tree: tree{root: spec, at: "/spec"}, was: was}
	for _, step := range []func() error{e.moveLegacyName, e.setDefaults, e.setSelector, e.prune, e.stamp} {
		if err := step(); err != nil {
			return completion{}, err
		}
	}
	return completion{Patch: e.patch, Warnings: e.warnings, Denied: e.denied}, nil
}

type completer struct {
	tree      // the spec
	was  tree // the stored object; empty on creation

	warnings rule.Warnings
	denied   field.ErrorList
}

const (
	fieldTemplateName  = "defaultTemplateName"
	fieldLegacyName    = "DefaultTemplateName"
	fieldStrategy      = "updateStrategy"
	fieldInPlaceUpdate = "inPlaceUpdate"
	fieldClaimPolicy   = "persistentVolumeClaimRetentionPolicy"
	fieldPool          = "templatePool"
	fieldSelector      = "selector"
)

// moveLegacyName moves the value of the tutorial's spelling to the right field. A
// stored object has only the right field, and a manifest with the other spelling is
// merged with it.
//
//	defaultTemplateName           DefaultTemplateName wins
//	absent, or the same           yes
//	as it is stored               yes: the manifest does not have this field
//	anything else                 no: the two contradict each other
func (e *completer) moveLegacyName() error {
	legacy, ok := e.get(fieldLegacyName).(string)
	if !ok {
		return nil
	}
	name := e.text(fieldTemplateName)
	if legacy != "" && name != "" && name != legacy && name != e.was.text("spec", fieldTemplateName) {
		path := field.NewPath("spec", fieldLegacyName)
		e.denied = append(e.denied, field.Invalid(path, legacy, fmt.Sprintf("it contradicts spec.defaultTemplateName, which is %q; keep that one, and leave DefaultTemplateName out", name)))
		return nil
	}
	e.remove(fieldLegacyName)
	if legacy == "" {
		return nil
	}
	e.warnings.Add(ruleLegacyName, "spec.DefaultTemplateName: this spelling is deprecated, and its value was moved; write defaultTemplateName")
	return e.set(legacy, fieldTemplateName)
}

// setDefaults writes the defaults that are constants.
func (e *completer) setDefaults() error {
	var t tappv1.TApp
	tappv1.Default(&t)
	s := &t.Spec
	for _, d := range []struct {
		value any
		path  []string
	}{
		{int64(*s.Replicas), []string{"replicas"}},
		{int64(*s.RevisionHistoryLimit), []string{"revisionHistoryLimit"}},
		{int64(*s.ProgressDeadlineSeconds), []string{"progressDeadlineSeconds"}},
		{s.DefaultTemplateName, []string{fieldTemplateName}},
		{int64(s.UpdateStrategy.MaxUnavailable.IntVal), []string{fieldStrategy, "maxUnavailable"}},
		{s.UpdateStrategy.ForceUpdate.MaxUnavailable.StrVal, []string{fieldStrategy, "forceUpdate", "maxUnavailable"}},
		{string(s.UpdateStrategy.InPlaceUpdate.Policy), []string{fieldStrategy, fieldInPlaceUpdate, "policy"}},
		{*s.UpdateStrategy.InPlaceUpdate.Drain, []string{fieldStrategy, fieldInPlaceUpdate, "drain"}},
		{string(s.PersistentVolumeClaimRetentionPolicy.WhenDeleted), []string{fieldClaimPolicy, "whenDeleted"}},
		{string(s.PersistentVolumeClaimRetentionPolicy.WhenScaled), []string{fieldClaimPolicy, "whenScaled"}},
	} {
		if err := e.setDefault(d.value, d.path...); err != nil {
			return err
		}
	}
	return nil
}

// setSelector writes the selector once.
//
//	the spec's selector           the stored one    result
//	absent                        absent            taken from the status or the labels; a creation is told which
//	absent                        there             the stored one
//	there                         absent            without hash labels
//	equal but for hash labels     there             the stored one
//	another one                   there             stays; the schema rejects it
func (e *completer) setSelector() error {
	stored := e.was.object("spec", fieldSelector)
	if e.get(fieldSelector) != nil {
		has := e.object(fieldSelector)
		cleaned := withoutHashes(has)
		switch {
		case has == nil:
			return nil
		case stored == nil:
			return e.set(cleaned, fieldSelector)
		case reflect.DeepEqual(cleaned, withoutHashes(stored)):
			return e.set(stored, fieldSelector)
		}
		return nil
	}
	if stored != nil {
		return e.set(stored, fieldSelector)
	}
	t := tappv1.TApp{Status: tappv1.TAppStatus{ScaleLabelSelector: e.was.text("status", "scaleLabelSelector")}}
	for key, value := range e.object("template", "metadata", "labels") {
		text, ok := value.(string)
		if !ok {
			return nil
		}
		metav1.SetMetaDataLabel(&t.Spec.Template.ObjectMeta, key, text)
	}
	tappv1.Default(&t)
	if t.Spec.Selector == nil {
		return nil
	}
	selector, err := runtime.DefaultUnstructuredConverter.ToUnstructured(t.Spec.Selector)
	if err != nil {
		return fmt.Errorf("render the selector: %w", err)
	}
	if e.was.root == nil {
		e.warnings.Add(ruleSelectorTaken, tellSelector(&t))
	}
	return e.set(selector, fieldSelector)
}

// tellSelector says which labels became the selector, and so cannot change any more.
func tellSelector(t *tappv1.TApp) string {
	taken := t.Spec.Selector.MatchLabels
	text := fmt.Sprintf("spec.selector: it was left out, and taken from the labels of spec.template: %s. From now on they cannot change; give spec.selector for others", labels.Set(taken))
	free := maps.Clone(tappv1.WithoutHashLabels(t.Spec.Template.Labels))
	maps.DeleteFunc(free, func(key, _ string) bool { _, is := taken[key]; return is })
	if len(free) > 0 {
		text += ". These can change: " + strings.Join(slices.Sorted(maps.Keys(free)), ", ")
	}
	return text
}

// withoutHashes leaves out of a selector the hash labels that tkestack/tapp wrote
// into it.
func withoutHashes(selector map[string]any) map[string]any {
	match, ok := selector["matchLabels"].(map[string]any)
	if !ok {
		return selector
	}
	selector = maps.Clone(selector)
	selector["matchLabels"] = tappv1.WithoutHashLabels(match)
	return selector
}

// prune removes the templates that nothing names, if the spec asks for it.
func (e *completer) prune() error {
	if e.get("autoDeleteUnusedTemplate") != true {
		return nil
	}
	used := map[string]bool{e.text(fieldTemplateName): true, e.text(fieldStrategy, "template"): true}
	for _, name := range e.object("templates") {
		if text, ok := name.(string); ok {
			used[text] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.object(fieldPool))) {
		if !used[name] {
			e.remove(fieldPool, name)
		}
	}
	return nil
}

// stamp writes the hashes of each template into its labels.
func (e *completer) stamp() error {
	paths := [][]string{{"template"}}
	for _, name := range slices.Sorted(maps.Keys(e.object(fieldPool))) {
		paths = append(paths, []string{fieldPool, name})
	}
	hashes := make([]*template.Hashes, len(paths))
	var all parallel.Group
	all.Each(len(paths), func(i int) {
		if raw := e.object(paths[i]...); raw != nil {
			if h, err := template.HashRaw(raw); err == nil { // an error means that the schema rejects a value
				hashes[i] = &h
			}
		}
	})
	all.Wait()
	for i, path := range paths {
		if hashes[i] == nil {
			continue
		}
		at := append(slices.Clone(path), "metadata", "labels")
		if err := e.set(hashes[i].Template, append(at, tappv1.LabelTemplateHash)...); err != nil {
			return err
		}
		if err := e.set(hashes[i].Uniq, append(at, tappv1.LabelUniqHash)...); err != nil {
			return err
		}
	}
	return nil
}

// render the patch; nil when there is none.
func (c *completion) render() ([]byte, error) {
	if len(c.Patch) == 0 {
		return nil, nil
	}
	patch, err := json.Marshal(c.Patch)
	if err != nil {
		return nil, fmt.Errorf("render the patch: %w", err)
	}
	return patch, nil
}
