package tapp

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// Of the claims without the label those are labelled that are an instance's of the
// TApp that owns them, and not marked as another's. One that cannot be labelled keeps none of the others from it, nor does
// one that triggers a bug.
func TestLabelClaims(t *testing.T) {
	claim := func(name, kind, owner string) corev1.PersistentVolumeClaim {
		c := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)}}
		if kind != "" {
			c.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: "web", UID: types.UID(owner), Controller: ptr.To(true)}}
		}
		return c
	}
	dying := claim("data-web-8", "TApp", "uid-web")
	dying.DeletionTimestamp = ptr.To(metav1.Now())
	theirs := claim("data-web-9", "TApp", "uid-web")
	theirs.Annotations = map[string]string{tappv1.AnnotationClaimOf: "TApp/eu-web/uid-eu"}
	pages := []corev1.PersistentVolumeClaimList{
		{ListMeta: metav1.ListMeta{Continue: "more"}, Items: []corev1.PersistentVolumeClaim{
			claim("data-web-0", "TApp", "uid-web"), claim("data-web-1", "TApp", "uid-of-an-earlier-one"), claim("data-web-2", "StatefulSet", "uid-web"),
			claim("data-web-3", "", ""), theirs, claim("data-web-04", "TApp", "uid-web"), claim("other-web-5", "TApp", "uid-web"), dying,
		}},
		{Items: []corev1.PersistentVolumeClaim{claim("data-web-5", "TApp", "uid-web"), claim("data-web-6", "TApp", "uid-web"), claim("data-web-7", "TApp", "uid-web")}},
	}
	s := &stub{answer: func(method, path, _ string) (int, any) {
		switch {
		case method == "GET":
			page := pages[0]
			pages = pages[1:]
			return 200, page
		case strings.HasSuffix(path, "-0"):
			return apiError(500, metav1.StatusReasonInternalError, "etcd")
		case strings.HasSuffix(path, "-5"):
			panic("on purpose")
		case strings.HasSuffix(path, "-6"):
			return apiError(404, metav1.StatusReasonNotFound, "gone")
		}
		return 200, corev1.PersistentVolumeClaim{}
	}}
	c := s.newController(t)
	web := someTApp("web")
	web.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
	if err := c.tapps.GetStore().Add(web); err != nil {
		t.Fatal(err)
	}
	c.labelClaims(t.Context())
	if c.claimsLabelled {
		t.Error("a claim that could not be labelled is not looked for again")
	}
	const path = "/api/v1/namespaces/ns/persistentvolumeclaims/"
	patch := func(id string) string {
		return "PATCH " + path + "data-web-" + id + ` {"metadata":{"annotations":{"` + tappv1.AnnotationClaimOf + `":"TApp/web/uid-web"},"labels":{"` + tappv1.LabelInstanceID + `":"` + id + `"},"uid":"uid-data-web-` + id + `"}}`
	}
	const list = "GET /api/v1/persistentvolumeclaims"
	if want := []string{list, patch("0"), list + "?continue=more", patch("5"), patch("6"), patch("7")}; !slices.Equal(s.asked(), want) {
		t.Errorf("asked %q, want %q", s.asked(), want)
	}
}

// TestLabelClaimsOnce: once all have been found, a later term does not look again.
func TestLabelClaimsOnce(t *testing.T) {
	s := &stub{answer: func(string, string, string) (int, any) { return 200, corev1.PersistentVolumeClaimList{} }}
	c := s.newController(t)
	for range 2 {
		c.labelClaims(t.Context())
	}
	if asked := s.asked(); len(asked) != 1 {
		t.Errorf("asked %q, want one list", asked)
	}
}
