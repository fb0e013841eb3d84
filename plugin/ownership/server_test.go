package ownership

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"

	"tkestack.io/tapp/crd/bases"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/test/sim/apiserver"
)

// server has one TApp, and owns its fields by the API server's own code.
type server struct {
	t      *testing.T
	fields *apiserver.Fields
	tapp   *unstructured.Unstructured
	// before is called before each patch that is no dry run, with the number of such
	// patches until then.
	before  func(n int) error
	patches int
}

func fieldsOf(t *testing.T) *apiserver.Fields {
	t.Helper()
	crds, err := bases.CRDs("TApp")
	if err != nil {
		t.Fatal(err)
	}
	fields, err := apiserver.FieldsOf(crds[0])
	if err != nil {
		t.Fatal(err)
	}
	return fields
}

func newServer(t *testing.T, fields *apiserver.Fields) *server {
	t.Helper()
	s := &server{t: t, fields: fields, tapp: &unstructured.Unstructured{}}
	s.tapp.SetGroupVersionKind(tappv1.GroupVersionKind())
	s.tapp.SetName("web")
	s.tapp.SetUID("uid")
	s.tapp.SetResourceVersion("1")
	return s
}

// apply a spec on the server.
func (s *server) apply(manager, spec string) error {
	s.t.Helper()
	config := &unstructured.Unstructured{}
	text := "{apiVersion: apps.tkestack.io/v1, kind: TApp, metadata: {name: web}, spec: " + spec + "}"
	if err := yaml.Unmarshal([]byte(text), &config.Object); err != nil {
		s.t.Fatal(err)
	}
	after, err := s.fields.Apply(s.tapp, config, manager, false)
	if err == nil {
		s.store(after)
	}
	return err
}

func (s *server) store(o *unstructured.Unstructured) {
	version, err := strconv.Atoi(s.tapp.GetResourceVersion())
	if err != nil {
		s.t.Fatal(err)
	}
	s.tapp = o
	s.tapp.SetResourceVersion(strconv.Itoa(version + 1))
}

func (s *server) patchAs(manager string, kind types.PatchType, patch []byte, dryRun bool) (*unstructured.Unstructured, error) {
	if !dryRun && s.before != nil {
		s.patches++
		if err := s.before(s.patches - 1); err != nil {
			return nil, err
		}
	}
	text, err := s.tapp.MarshalJSON()
	if err != nil {
		s.t.Fatal(err)
	}
	if kind == types.JSONPatchType {
		operations, err := jsonpatch.DecodePatch(patch)
		if err != nil {
			s.t.Fatal(err)
		}
		text, err = operations.Apply(text)
		if err != nil {
			s.t.Fatal(err)
		}
	} else if text, err = jsonpatch.MergePatch(text, patch); err != nil {
		s.t.Fatal(err)
	}
	after := &unstructured.Unstructured{}
	if err := after.UnmarshalJSON(text); err != nil {
		s.t.Fatal(err)
	}
	if after.GetResourceVersion() != s.tapp.GetResourceVersion() {
		return nil, s.conflict()
	}
	entries, err := s.fields.Update(s.tapp, after, manager)
	if err != nil {
		s.t.Fatal(err)
	}
	after.SetManagedFields(entries)
	if !dryRun {
		s.store(after.DeepCopy())
	}
	return after, nil
}

func (s *server) conflict() error {
	return apierrors.NewConflict(tappv1.Resource().GroupResource(), "web", errors.New("the object has been modified"))
}

// write as kubectl-tapp, and return the notes.
func (s *server) write(adopt []string, patch string, dryRun bool) (notes []string) {
	s.t.Helper()
	w := Write[*unstructured.Unstructured]{
		Manager: "kubectl-tapp", Adopt: adopt, Maps: []string{"statuses", "templates"}, DryRun: dryRun,
		Tell: func(note string) { notes = append(notes, note) },
		Get:  func(context.Context) (*unstructured.Unstructured, error) { return s.tapp.DeepCopy(), nil },
		Patch: func(_ context.Context, kind types.PatchType, patch []byte, dryRun bool) (*unstructured.Unstructured, error) {
			return s.patchAs("kubectl-tapp", kind, patch, dryRun)
		},
	}
	kind := types.MergePatchType
	if strings.HasPrefix(patch, "[") {
		kind = types.JSONPatchType
	} else {
		patch = `{"spec":` + patch + `}`
	}
	if _, err := w.Do(s.t.Context(), s.tapp.DeepCopy(), kind, []byte(patch)); err != nil {
		s.t.Fatal(err)
	}
	return notes
}

// owners of a field, such as "helm Apply".
func (s *server) owners(path string) (out []string) {
	s.t.Helper()
	for _, e := range s.tapp.GetManagedFields() {
		set := fieldpath.NewSet()
		if err := set.FromJSON(strings.NewReader(string(e.FieldsV1.GetRawBytes()))); err != nil {
			s.t.Fatal(err)
		}
		for p := range set.All() {
			if p.String() == path {
				out = append(out, fmt.Sprint(e.Manager, " ", e.Operation))
			}
		}
	}
	slices.Sort(out)
	return out
}

// spec as JSON.
func (s *server) spec() string {
	text, err := json.Marshal(s.tapp.Object["spec"])
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}
