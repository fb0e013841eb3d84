package apiserver

import (
	"encoding/json"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Serve carries out a request but for watches. lag is how many versions a read that
// allows it may be old.
func (s *Server) Serve(r *Request, lag int64, who Actor) *Answer {
	switch {
	case r.Path != "":
		return &Answer{Status: http.StatusOK, Media: "text/plain", Body: []byte("ok")}
	case r.Resource == "":
		return s.discover()
	}
	k, known := s.kinds[r.Resource]
	if !known {
		return Refusal(s.notFound(r.Resource, r.Name))
	}
	media := mediaOf(k, r.Accept)
	s.dry = r.IsDry()
	defer func() { s.dry = false }()
	switch r.Verb {
	case "get":
		o := s.Get(r.Resource, r.Key())
		if o == nil {
			return Refusal(s.notFound(r.Resource, r.Name))
		}
		return s.tell(r, o, http.StatusOK, media)
	case "list":
		return s.serveList(r, lag, media)
	case "create":
		return s.serveCreate(r, who, media)
	case "patch":
		o, err := s.servePatch(r, who)
		if err != nil {
			return Refusal(err)
		}
		return s.tell(r, o, http.StatusOK, media)
	case "update":
		o, err := s.serveUpdate(r, who)
		if err != nil {
			return Refusal(err)
		}
		return s.tell(r, o, http.StatusOK, media)
	case "delete":
		o, err := DecodeDelete(r.Body)
		if err != nil {
			return Refusal(err)
		}
		left, err := s.Remove(r.Resource, r.Key(), o, who)
		if err != nil {
			return Refusal(err)
		}
		if left != nil {
			return s.tell(r, left, http.StatusOK, media)
		}
		return status(&metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess})
	}
	return &Answer{Status: http.StatusMethodNotAllowed, Media: inJSON}
}

func (s *Server) servePatch(r *Request, who Actor) (Object, error) {
	if types.PatchType(r.Media) == types.ApplyPatchType && s.kinds[r.Resource].Fields != nil {
		return s.Apply(r, who)
	}
	return s.Patch(r.Resource, r.Key(), r.Sub, types.PatchType(r.Media), r.Body, who)
}

func (s *Server) serveUpdate(r *Request, who Actor) (Object, error) {
	o, err := s.Decode(r.Resource, r.Body)
	if err != nil {
		return nil, err
	}
	return s.Update(r.Resource, r.Key(), r.Sub, who, func(now Object) error {
		if o.GetUID() == "" {
			o.SetUID(now.GetUID())
		}
		return Assign(now, o)
	})
}

func (s *Server) serveCreate(r *Request, who Actor, media string) *Answer {
	o, err := s.Decode(r.Resource, r.Body)
	if err != nil {
		return Refusal(err)
	}
	if s.kinds[r.Resource].Discard {
		s.Version++
		return s.tell(r, o, http.StatusCreated, media)
	}
	o.SetNamespace(r.Namespace)
	created, err := s.Create(r.Resource, o, who)
	if err != nil {
		return Refusal(err)
	}
	return s.tell(r, created, http.StatusCreated, media)
}

func (s *Server) tell(r *Request, o Object, code int, media string) *Answer {
	body, err := encode(o, s.kinds[r.Resource].GVK, media)
	if err != nil {
		return Refusal(err)
	}
	return &Answer{Status: code, Media: media, Body: body}
}

func status(o *metav1.Status) *Answer {
	body, err := json.Marshal(o)
	if err != nil {
		return &Answer{Err: err}
	}
	return &Answer{Status: http.StatusOK, Media: inJSON, Body: body}
}

func (s *Server) discover() *Answer {
	body, err := json.Marshal(metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "v1",
		APIResources: []metav1.APIResource{{Name: "pods"}, {Name: "pods/status"}, {Name: "pods/resize"}}})
	if err != nil {
		return &Answer{Err: err}
	}
	return &Answer{Status: http.StatusOK, Media: inJSON, Body: body}
}

// selection is what a list or a watch is about.
type selection struct {
	namespace string
	labels    labels.Selector
	fields    fields.Selector // of the name alone
}

func (s *Server) selectionOf(r *Request) (selection, error) {
	byLabels, err := labels.Parse(r.Query.Get("labelSelector"))
	if err != nil {
		return selection{}, s.Invalid(r.Resource, "", "labelSelector", err.Error())
	}
	byFields, err := fields.ParseSelector(r.Query.Get("fieldSelector"))
	if err != nil {
		return selection{}, s.Invalid(r.Resource, "", "fieldSelector", err.Error())
	}
	return selection{namespace: r.Namespace, labels: byLabels, fields: byFields}, nil
}

func (s selection) has(o Object) bool {
	return o != nil && (s.namespace == "" || s.namespace == o.GetNamespace()) && s.labels.Matches(labels.Set(o.GetLabels())) &&
		s.fields.Matches(fields.Set{"metadata.name": o.GetName(), "metadata.namespace": o.GetNamespace()})
}

// serveList lists: consistent, or with resourceVersion as old as that allows.
func (s *Server) serveList(r *Request, lag int64, media string) *Answer {
	selected, err := s.selectionOf(r)
	if err != nil {
		return Refusal(err)
	}
	version := s.Version
	if asked := r.Query.Get("resourceVersion"); asked != "" {
		least, _ := strconv.ParseInt(asked, 10, 64)
		version = max(s.Version-lag, least)
	}
	found := s.Tables[r.Resource].Objects
	if version < s.Version {
		found = s.Tables[r.Resource].At(version)
	}
	var objects []runtime.Object
	for _, key := range SortedKeys(found) {
		if o := found[key]; selected.has(o) {
			objects = append(objects, o)
		}
	}
	body, err := s.list(r.Resource, objects, strconv.FormatInt(version, 10), media)
	if err != nil {
		return Refusal(err)
	}
	return &Answer{Status: http.StatusOK, Media: media, Body: body}
}
