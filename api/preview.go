package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"tkestack.io/tapp/api/answer"
	"tkestack.io/tapp/api/describe"
	"tkestack.io/tapp/api/live"
	apiv1 "tkestack.io/tapp/api/v1"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
	"tkestack.io/tapp/plan/view"
)

// maxBody of a manifest, in bytes.
const maxBody = 3 << 19

// errBody is the error of a manifest that cannot be used.
func errBody(format string, args ...any) error {
	return apierrors.NewBadRequest(fmt.Sprintf(format, args...))
}

// manifestOf reads the body: one object in JSON or YAML.
func (q *request) manifestOf(apiVersion, kind string) (map[string]any, error) {
	if v := q.r.URL.Query(); len(v) > 0 {
		return nil, q.checkQuery()
	}
	text, err := io.ReadAll(http.MaxBytesReader(q.w, q.r.Body, maxBody))
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("a manifest may have %d bytes", maxBody))
	}
	if err != nil {
		return nil, errBody("the body cannot be read")
	}
	var object map[string]any
	if err := yaml.UnmarshalStrict(text, &object); err != nil {
		return nil, errBody("the body is no manifest in YAML or JSON: %s", answer.Shorten(err.Error()))
	}
	if len(object) == 0 {
		return nil, errBody("the body is empty; send a manifest of a %s in YAML or JSON", kind)
	}
	if object["apiVersion"] != apiVersion || object["kind"] != kind {
		return nil, errBody("the manifest is of a %v of %v; send one of a %s of %s", object["kind"], object["apiVersion"], kind, apiVersion)
	}
	return object, nil
}

func (a *API) previewTApp(q *request) error {
	before, after, err := previewed(a, q, previewedKind[*tappv1.TApp]{
		apiVersion: tappv1.SchemeGroupVersion.String(), kind: tappv1.Kind, access: tappAccess,
		empty: func() *tappv1.TApp { return &tappv1.TApp{} },
		get: func(name string) (*tappv1.TApp, error) {
			return a.clients.tapps.TApps(q.namespace).Get(q.ctx(), name, metav1.GetOptions{})
		},
	})
	if err != nil {
		return err
	}
	o, err := a.foresee(q, after)
	if err != nil {
		return err
	}
	v, err := view.NewPreview(o, before)
	if err != nil {
		return err
	}
	out := apiv1.Preview{Preview: *v, Sentences: []string{}}
	for i := range v.Steps {
		out.Sentences = append(out.Sentences, v.Steps[i].Sentence())
	}
	return q.writeValue(out)
}

// named checks that the manifest names an object of the path's namespace.
func (q *request) named(object metav1.Object) error {
	switch {
	case object.GetNamespace() != "" && object.GetNamespace() != q.namespace:
		return errBody("metadata.namespace is %q, and the path has %q", answer.Shorten(object.GetNamespace()), q.namespace)
	case len(validation.IsDNS1123Subdomain(object.GetName())) > 0:
		return errBody("metadata.name is %q, which is no name that Kubernetes takes", answer.Shorten(object.GetName()))
	}
	q.name = object.GetName()
	return nil
}

// strict decodes an object, and refuses fields that there are not.
func strict(object map[string]any, kind string, out any) error {
	text, err := json.Marshal(object)
	if err != nil {
		return errBody("the manifest cannot be read: %s", answer.Shorten(err.Error()))
	}
	if err := yaml.UnmarshalStrict(text, out); err != nil {
		return errBody("the manifest is no %s: %s", kind, firstLine(err.Error()))
	}
	return nil
}

func firstLine(text string) string {
	const most = 200
	if len(text) > most {
		text = text[:most] + "..."
	}
	return text
}

// merge does as kubectl apply: fields that the last apply set and this one does not go, and
// those that others set stay.
func merge(before metav1.Object, object map[string]any, kind string, after metav1.Object) error {
	manifest := map[string]any{"apiVersion": object["apiVersion"], "kind": object["kind"], "spec": object["spec"]}
	metadata := map[string]any{}
	if given, ok := object["metadata"].(map[string]any); ok {
		for _, field := range []string{"labels", "annotations"} {
			if value, ok := given[field]; ok {
				metadata[field] = value
			}
		}
	}
	manifest["metadata"] = metadata
	modified, err := json.Marshal(manifest)
	if err != nil {
		return errBody("the manifest cannot be read: %s", answer.Shorten(err.Error()))
	}
	current, err := json.Marshal(before)
	if err != nil {
		return fmt.Errorf("reading the %s: %w", kind, err)
	}
	last := last(before.GetAnnotations()[corev1.LastAppliedConfigAnnotation])
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(last, modified, current)
	if err != nil {
		return errBody("the manifest cannot be compared with the %s: %s", kind, answer.Shorten(err.Error()))
	}
	merged, err := jsonpatch.MergePatch(current, patch)
	if err != nil {
		return fmt.Errorf("merging a manifest: %w", err)
	}
	if err := json.Unmarshal(merged, after); err != nil {
		return errBody("the manifest is no %s: %s", kind, firstLine(err.Error()))
	}
	return nil
}

// last is what was applied last. Of its metadata only labels and annotations are kept.
func last(annotation string) []byte {
	var object map[string]any
	if json.Unmarshal([]byte(annotation), &object) != nil {
		return nil
	}
	if metadata, ok := object["metadata"].(map[string]any); ok {
		for field := range metadata {
			if field != "labels" && field != "annotations" {
				delete(metadata, field)
			}
		}
	}
	text, err := json.Marshal(object)
	if err != nil {
		return nil
	}
	return text
}

// foresee plans for the TApp as the manifest would make it, with its present pods.
func (a *API) foresee(q *request, t *tappv1.TApp) (*view.Observed, error) {
	topic, release, err := a.tappTopic(q, "tapp", func(o *view.Observed, before *live.Shown) (*live.Shown, error) {
		d, err := describe.TAppDetail(o)
		if err != nil {
			return nil, err
		}
		return live.NewObject(d, before)
	})
	if err != nil {
		return nil, err
	}
	defer release()
	if _, _, err := topic.Current(q.ctx()); err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	store, err := topic.Feed(pods, q.namespace)
	if err != nil {
		return nil, err
	}
	found, err := store.ByIndex(byStem, q.namespace+"/"+t.Name)
	if err != nil {
		return nil, fmt.Errorf("looking for pods: %w", err)
	}
	in := plan.Input{TApp: t, Now: time.Now(), Policy: a.policy(q.ctx())}
	for _, o := range found {
		if pod, ok := o.(*corev1.Pod); ok {
			in.Pods = append(in.Pods, pod)
		}
	}
	return a.withRevisions(q.ctx(), in)
}
