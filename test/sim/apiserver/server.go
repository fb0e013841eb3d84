// Package apiserver is an API server in memory, with the rules of the real one, that
// does one thing at a time when it is told to. A run may have any number of them.
//
//	kind.go core.go           what it serves; Kubernetes' own kinds
//	store.go                  objects, and all that ever happened to them
//	server.go delete.go patch.go apply.go   writes
//	request.go serve.go       requests over HTTP
//	watch.go codec.go         watches; JSON and protobuf
package apiserver

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Server keeps the rules of Kubernetes' API server.
type Server struct {
	*Store
	Now func() time.Time
	// Admit changes or refuses a new object, as quotas and admission webhooks do; nil:
	// none. It is called before defaults are filled in.
	Admit func(resource string, o Object) error
	// AdmitUpdate does so with what an update makes of an object; nil: none.
	AdmitUpdate func(resource, sub string, now Object) error
	// Fits refuses what etcd does not take, as TooLarge does; nil: it takes anything.
	Fits func(resource string, o Object) error
	// NeedsNamespaces refuses what is made in a namespace that does not exist.
	NeedsNamespaces bool
	// BreaksOff says that a pod is stamped, and not removed.
	BreaksOff bool
	// dry: what is written is judged and answered, and not stored.
	dry bool
}

// New makes an API server without objects.
func New(now func() time.Time, kinds map[string]Kind) *Server {
	return &Server{Store: newStore(kinds), Now: now}
}

// IsDry says whether the request that is carried out is a dry run.
func (s *Server) IsDry() bool { return s.dry }

// Second is the time as the API writes it.
func (s *Server) Second() metav1.Time { return metav1.NewTime(s.Now().Truncate(time.Second)) }

// GroupResource of a resource.
func (s *Server) GroupResource(resource string) schema.GroupResource {
	return schema.GroupResource{Group: s.kinds[resource].GVK.Group, Resource: resource}
}

func (s *Server) notFound(resource, key string) error {
	return apierrors.NewNotFound(s.GroupResource(resource), nameIn(key))
}

func (s *Server) conflict(resource, name, format string, args ...any) error {
	return apierrors.NewConflict(s.GroupResource(resource), name, fmt.Errorf(format, args...))
}

// Invalid is a 422 about one field.
func (s *Server) Invalid(resource, name string, path, why string) error {
	return apierrors.NewInvalid(s.kinds[resource].GVK.GroupKind(), name, field.ErrorList{field.Invalid(field.NewPath(path), nil, why)})
}

// TooLarge is what an API server says of an object that etcd does not take: an error that is
// none of its own, and so a 500 without a reason.
func TooLarge() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: tooLarge}}
}

const tooLarge = "etcdserver: request is too large"

// IsTooLarge says whether an answer is that.
func (a *Answer) IsTooLarge() bool {
	return a.Status == http.StatusInternalServerError && bytes.Contains(a.Body, []byte(tooLarge))
}

// Create is a POST. It takes the object over.
func (s *Server) Create(resource string, o Object, who Actor) (Object, error) {
	return s.create(resource, o, who, s.owning(resource, who))
}

// create has own note, if it is not nil, whose the fields are.
func (s *Server) create(resource string, o Object, who Actor, own func(old, now Object) error) (Object, error) {
	k := s.kinds[resource]
	switch {
	case o.GetName() == "":
		return nil, s.Invalid(resource, "", "metadata.name", "required")
	case k.Cluster != (o.GetNamespace() == ""):
		return nil, s.Invalid(resource, o.GetName(), "metadata.namespace", "required, but for resources of the cluster")
	}
	if s.Admit != nil {
		if err := s.Admit(resource, o); err != nil {
			return nil, err
		}
	}
	if s.NeedsNamespaces && !k.Cluster && s.Get(Namespaces, o.GetNamespace()) == nil {
		return nil, s.notFound(Namespaces, o.GetNamespace())
	}
	if s.Get(resource, Key(o)) != nil {
		return nil, apierrors.NewAlreadyExists(s.GroupResource(resource), o.GetName())
	}
	if s.dry {
		return o, nil
	}
	o.SetUID(s.NewUID())
	o.SetCreationTimestamp(s.Second())
	o.SetDeletionTimestamp(nil)
	o.SetDeletionGracePeriodSeconds(nil)
	if k.Prepare != nil {
		k.Prepare(o)
	}
	if own != nil {
		if err := own(nil, o); err != nil {
			return nil, err
		}
	}
	if err := s.fits(resource, o); err != nil {
		return nil, err
	}
	return s.commit(resource, nil, o, who), nil
}

func (s *Server) fits(resource string, o Object) error {
	if s.Fits == nil {
		return nil
	}
	return s.Fits(resource, o)
}

// preconditions of a write; empty ones hold.
type preconditions struct{ uid, version string }

func (s *Server) check(resource string, o Object, p preconditions) error {
	if p.uid != "" && p.uid != string(o.GetUID()) {
		return s.conflict(resource, o.GetName(), "Precondition failed: UID in precondition: %v, UID in object meta: %v", p.uid, o.GetUID())
	}
	if p.version != "" && p.version != o.GetResourceVersion() {
		return s.conflict(resource, o.GetName(), "Precondition failed: ResourceVersion in precondition: %v, ResourceVersion in object meta: %v", p.version, o.GetResourceVersion())
	}
	return nil
}

// Update is a write to an object or one of its subresources: edit changes a copy of
// it, of which what the subresource does not cover is put back.
func (s *Server) Update(resource, key, sub string, who Actor, edit func(Object) error) (Object, error) {
	own := s.owning(resource, who)
	if sub != "" {
		own = nil
	}
	return s.update(resource, key, sub, who, edit, own)
}

func (s *Server) update(resource, key, sub string, who Actor, edit func(Object) error, own func(old, now Object) error) (Object, error) {
	old := s.Get(resource, key)
	if old == nil {
		return nil, s.notFound(resource, key)
	}
	now := Clone(old)
	if err := edit(now); err != nil {
		return nil, err
	}
	if now.GetUID() != old.GetUID() {
		return nil, s.Invalid(resource, old.GetName(), "metadata.uid", "field is immutable")
	}
	if v := now.GetResourceVersion(); v != old.GetResourceVersion() && v != "" {
		return nil, s.conflict(resource, old.GetName(), "the object has been modified; please apply your changes to the latest version and try again")
	}
	if s.AdmitUpdate != nil {
		if err := s.AdmitUpdate(resource, sub, now); err != nil {
			return nil, err
		}
	}
	keepSystemFields(now, old)
	if restrict := s.kinds[resource].Restrict; restrict != nil {
		if err := restrict(s, sub, now, old); err != nil {
			return nil, err
		}
	}
	now.SetResourceVersion(old.GetResourceVersion())
	now.GetObjectKind().SetGroupVersionKind(s.kinds[resource].GVK)
	if equality.Semantic.DeepEqual(now, old) {
		return old, nil
	}
	if own != nil {
		if err := own(old, now); err != nil {
			return nil, err
		}
	}
	if s.dry {
		return now, nil
	}
	if now.GetDeletionTimestamp() != nil && len(now.GetFinalizers()) == 0 && ended(now) {
		s.commit(resource, old, nil, who)
		return now, nil
	}
	if err := s.fits(resource, now); err != nil {
		return nil, err
	}
	return s.commit(resource, old, now, who), nil
}

// ended says whether nothing but finalizers keeps a deleted object.
func ended(o Object) bool {
	grace := o.GetDeletionGracePeriodSeconds()
	return grace == nil || *grace == 0
}

func keepSystemFields(now, old Object) {
	now.SetName(old.GetName())
	now.SetNamespace(old.GetNamespace())
	now.SetCreationTimestamp(old.GetCreationTimestamp())
	now.SetDeletionTimestamp(old.GetDeletionTimestamp())
	now.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
	now.SetGeneration(old.GetGeneration())
	if old.GetDeletionTimestamp() != nil { // finalizers may only go
		now.SetFinalizers(slices.DeleteFunc(now.GetFinalizers(), func(f string) bool { return !slices.Contains(old.GetFinalizers(), f) }))
	}
}
