package bases_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	appv1 "tkestack.io/tapp/crd/app/v1"
	"tkestack.io/tapp/crd/bases"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// load gives the CRD of a kind as it is published and as the API server keeps it.
func load(t testing.TB, kind string) (*apiextensionsv1.CustomResourceDefinition, *apiextensions.CustomResourceDefinition) {
	t.Helper()
	crds, err := bases.CRDs(kind)
	if err != nil {
		t.Fatal(err)
	}
	if len(crds) != 1 || crds[0].Spec.Names.Kind != kind {
		t.Fatalf("embedded CRDs of %s: %v", kind, crds)
	}
	defaulted := crds[0].DeepCopy()
	apiextensionsv1.SetDefaults_CustomResourceDefinition(defaulted)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&defaulted.Spec)
	internal := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(defaulted, internal, nil); err != nil {
		t.Fatal(err)
	}
	internal.Status.StoredVersions = []string{crds[0].Spec.Versions[0].Name}
	return crds[0], internal
}

// apiServer does with custom resources what the API server does on their way in.
type apiServer struct {
	structural *schema.Structural
	values     validation.SchemaValidator
	rules      *cel.Validator
}

// These are made once: compiling a schema and its rules takes a while.
var (
	newTAppServer = sync.OnceValues(func() (*apiServer, error) { return newAPIServer(tappv1.Kind) })
	newAppServer  = sync.OnceValues(func() (*apiServer, error) { return newAPIServer(appv1.Kind) })
)

func newAPIServer(kind string) (*apiServer, error) {
	crds, err := bases.CRDs(kind)
	if err != nil {
		return nil, err
	}
	in := &apiextensions.CustomResourceValidation{}
	if err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(crds[0].Spec.Versions[0].Schema, in, nil); err != nil {
		return nil, err
	}
	structural, err := schema.NewStructural(in.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	values, _, err := validation.NewSchemaValidator(in.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	return &apiServer{structural, values, cel.NewValidator(structural, true, celconfig.PerCallLimit)}, nil
}

// server of TApps.
func server(t testing.TB) *apiServer {
	t.Helper()
	s, err := newTAppServer()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// write changes the object as the API server would before it stores it, and says
// why it would not. The old object is nil on create. An unknown field is an error,
// as for kubectl.
func (s *apiServer) write(ctx context.Context, object, old map[string]any) error {
	unknown := pruning.PruneWithOptions(object, s.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	if len(unknown) > 0 {
		return fmt.Errorf("unknown fields: %v", unknown)
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(object, s.structural)
	defaulting.Default(object, s.structural)

	errs := validation.ValidateCustomResource(nil, object, s.values)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, object)...)
	if len(errs) == 0 {
		// A nil map in an interface is not the nil that CEL takes for "no old object".
		var before any
		if old != nil {
			before = old
		}
		var more field.ErrorList
		more, _ = s.rules.Validate(ctx, nil, s.structural, object, before, celconfig.RuntimeCELCostBudget)
		errs = append(errs, more...)
	}
	return errs.ToAggregate()
}
