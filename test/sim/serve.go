package sim

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// serve carries out a request but for watches. lag is how many versions a read that
// allows it may be old.
func (s *apiServer) serve(r *request, lag int64) *answer {
	if r.resource == "" {
		return s.discover()
	}
	if _, known := s.kinds[r.resource]; !known {
		return refusal(s.notFound(r.resource, r.name))
	}
	who := actor{name: r.replica.name, at: s.now(), request: r}
	media := mediaOf(r.resource, r.accept)
	switch r.verb {
	case "get":
		o := s.get(r.resource, r.name)
		if o == nil {
			return refusal(s.notFound(r.resource, r.name))
		}
		return s.tell(r, o, http.StatusOK, media)
	case "list":
		return s.serveList(r, lag, media)
	case "create":
		o, err := s.decode(r.resource, r.body)
		if err != nil {
			return refusal(err)
		}
		if r.resource == events { // nobody here reads events
			s.version++
			return s.tell(r, o, http.StatusCreated, media)
		}
		created, err := s.create(r.resource, o, who)
		if err != nil {
			return refusal(err)
		}
		return s.tell(r, created, http.StatusCreated, media)
	case "patch":
		o, err := s.patch(r.resource, r.name, r.sub, types.PatchType(r.media), r.body, who)
		if err != nil {
			return refusal(err)
		}
		return s.tell(r, o, http.StatusOK, media)
	case "delete":
		o, err := decodeDelete(r.body)
		if err != nil {
			return refusal(err)
		}
		left, err := s.remove(r.resource, r.name, o, who)
		if err != nil {
			return refusal(err)
		}
		if left != nil {
			return s.tell(r, left, http.StatusOK, media)
		}
		return status(&metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess})
	}
	return &answer{status: http.StatusMethodNotAllowed, media: inJSON}
}

func (s *apiServer) tell(r *request, o object, code int, media string) *answer {
	body, err := encode(o, s.kinds[r.resource].gvk, media)
	if err != nil {
		return refusal(err)
	}
	return &answer{status: code, media: media, body: body}
}

func status(o *metav1.Status) *answer {
	body, err := json.Marshal(o)
	if err != nil {
		return &answer{err: err}
	}
	return &answer{status: http.StatusOK, media: inJSON, body: body}
}

func (s *apiServer) discover() *answer {
	body, err := json.Marshal(metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "v1",
		APIResources: []metav1.APIResource{{Name: "pods"}, {Name: "pods/status"}, {Name: "pods/resize"}}})
	if err != nil {
		return &answer{err: err}
	}
	return &answer{status: http.StatusOK, media: inJSON, body: body}
}

// serveList lists: consistent, or with resourceVersion as old as that allows.
func (s *apiServer) serveList(r *request, lag int64, media string) *answer {
	selector, err := labels.Parse(r.query.Get("labelSelector"))
	if err != nil {
		return refusal(s.invalid(r.resource, "", "labelSelector", err.Error()))
	}
	version := s.version
	if asked := r.query.Get("resourceVersion"); asked != "" {
		least, _ := strconv.ParseInt(asked, 10, 64)
		version = max(s.version-lag, least)
	}
	found := s.tables[r.resource].objects
	if version < s.version {
		found = s.tables[r.resource].at(version)
	}
	var objects []runtime.Object
	for _, name := range sortedKeys(found) {
		if o := found[name]; selector.Matches(labels.Set(o.GetLabels())) {
			objects = append(objects, o)
		}
	}
	body, err := s.list(r.resource, objects, strconv.FormatInt(version, 10), media)
	if err != nil {
		return refusal(err)
	}
	return &answer{status: http.StatusOK, media: media, body: body}
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
