package advdeployment

import (
	"encoding/json"
	"maps"

	"k8s.io/apimachinery/pkg/runtime"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/manifest"
)

// InPlaceOf an apply of a TApp that the cluster finds invalid is a JSON patch that makes of the
// child what the manifest says, and holds for the version that was observed only. An apply makes
// null of an object whose fields were all taken out of it, such as an emptyDir that had a limit,
// and no schema takes that.
func (a *Action) InPlaceOf() []byte {
	live := runtime.DeepCopyJSON(a.Observed.Object)
	spec, _ := live["spec"].(map[string]any)
	made, _ := a.Manifest["spec"].(map[string]any)
	over(spec, made)
	dropTurns(spec, made)
	patch := append(manifest.ForVersion(a.UID, a.Version), manifest.Operation{Op: "replace", Path: "/spec", Value: spec})
	had, _ := live["metadata"].(map[string]any)
	asked, _ := a.Manifest["metadata"].(map[string]any)
	for _, kind := range []string{"annotations", "labels"} {
		now := map[string]any{}
		if there, is := had[kind].(map[string]any); is {
			now = maps.Clone(there)
		}
		for _, ours := range []string{AnnotationReplicasBy, v1beta1.AnnotationFrom, v1beta1.AnnotationGrant} { // the manifest has them, if they are to stay
			delete(now, ours)
		}
		if wanted, is := asked[kind].(map[string]any); is {
			maps.Copy(now, wanted)
		}
		patch = append(patch, manifest.Operation{Op: "add", Path: "/metadata/" + kind, Value: now})
	}
	raw, _ := json.Marshal(patch) // what came from JSON
	return raw
}

// over puts the fields of a manifest over those of a spec. Templates and what selects are replaced
// whole; entries of other objects that the manifest does not have are somebody else's.
func over(spec, made map[string]any) {
	for key, value := range made {
		entries, ours := value.(map[string]any)
		there, theirs := spec[key].(map[string]any)
		if ours && theirs && key != "template" && key != "selector" {
			maps.Copy(there, entries)
			continue
		}
		spec[key] = value
	}
}

// dropTurns takes out of a spec what a change put there, and the manifest does not have.
func dropTurns(spec, made map[string]any) {
	drop := func(key string, is func(name string, value any) bool) {
		entries, _ := spec[key].(map[string]any)
		wanted, _ := made[key].(map[string]any)
		maps.DeleteFunc(entries, func(name string, value any) bool {
			_, stays := wanted[name]
			return !stays && is(name, value)
		})
		if entries != nil && len(entries) == 0 {
			delete(spec, key)
		}
	}
	drop("templatePool", func(name string, _ any) bool { return name == templateNext })
	drop("templates", func(_ string, value any) bool { return value == templateNext })
	drop("updateStrategy", func(_ string, value any) bool { return value == templateNext })
}
