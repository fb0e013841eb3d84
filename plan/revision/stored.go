package revision

import (
	"cmp"
	"encoding/json"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// Name of the revision of a version with a hash.
func Name(t *tappv1.TApp, hash string) string { return t.Name + "-" + hash }

// Own are the revisions of the TApp, and those of nobody, the newest last.
func Own(t *tappv1.TApp, all []*appsv1.ControllerRevision) []*appsv1.ControllerRevision {
	var own []*appsv1.ControllerRevision
	for _, r := range all {
		if owner := metav1.GetControllerOfNoCopy(r); owner == nil || owner.UID == t.UID {
			own = append(own, r)
		}
	}
	slices.SortFunc(own, func(a, b *appsv1.ControllerRevision) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), cmp.Compare(a.Name, b.Name))
	})
	return own
}

// New revision of a version with a hash.
func New(t *tappv1.TApp, hash string, number int64, data []byte) *appsv1.ControllerRevision {
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name: Name(t, hash), Namespace: t.Namespace,
			Labels:          map[string]string{tappv1.LabelTApp: t.Name, appsv1.ControllerRevisionHashLabelKey: hash},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(t, tappv1.GroupVersionKind())},
		},
		Data:     runtime.RawExtension{Raw: data},
		Revision: number,
	}
}

// Adopt is a merge patch that gives a revision another number, and the TApp as its owner.
// ownerReferences are a list, which it replaces: a revision without a controller that
// carries our label has no other owner.
func Adopt(t *tappv1.TApp, r *appsv1.ControllerRevision, number int64) []byte {
	patch := map[string]any{
		"metadata": map[string]any{
			"uid":             r.UID,
			"ownerReferences": []metav1.OwnerReference{*metav1.NewControllerRef(t, tappv1.GroupVersionKind())},
		},
		"revision": number,
	}
	raw, _ := json.Marshal(patch) // strings and numbers always marshal
	return raw
}

// IsRecorded says whether the stored status names the revision of this very spec, and nothing
// is left to record: hashing all templates for every plan would be most of what it costs. Own
// are the TApp's, the newest last.
func IsRecorded(t *tappv1.TApp, name string, own []*appsv1.ControllerRevision) bool {
	if name == "" || t.Status.ObservedGeneration != t.Generation || len(own) == 0 {
		return false
	}
	newest := own[len(own)-1]
	return newest.Name == name && metav1.GetControllerOfNoCopy(newest) != nil
}
