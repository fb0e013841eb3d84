package webhook

import (
	"context"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	appv1 "tkestack.io/tapp/crd/app/v1"
	"tkestack.io/tapp/crd/client"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/webhook/advdeployment"
	"tkestack.io/tapp/webhook/app"
	"tkestack.io/tapp/webhook/appset"
	"tkestack.io/tapp/webhook/confirmation"
	"tkestack.io/tapp/webhook/review"
	"tkestack.io/tapp/webhook/tapp"
)

// Names of the kinds, as their controllers have them.
const (
	KindTApp          = "tapp"
	KindApp           = "app"
	KindAppSet        = "appset"
	KindAdvDeployment = "advdeployment"
)

// Kind is a row of the table of kinds: what the server and the registration know of
// a kind.
type Kind struct {
	// Name of the kind in --controllers.
	Name string
	// Webhooks makes its webhooks. Nothing is asked of the API server before a
	// review.
	Webhooks func(Backend) ([]Webhook, error)
}

// Webhook is one that a kind has.
type Webhook struct {
	// Name in the webhook configuration.
	Name string
	// Path at which the server has it.
	Path string
	// Mutates is true for a mutating webhook, false for a validating one.
	Mutates bool
	// Version and Resources are what it is called for, when one is created or updated.
	Version   schema.GroupVersion
	Resources []string
	// Handler answers the reviews.
	Handler http.Handler

	kind string // the name of its kind
}

// Backend is what webhooks are made with.
type Backend struct {
	Config
	// API is how the API server is asked.
	API *rest.Config
	// Reviews are the metrics of review.Handler.
	Reviews *review.Metrics
}

// Kinds that there are webhooks for.
func Kinds() []Kind {
	return []Kind{
		{Name: KindTApp, Webhooks: tappWebhooks},
		{Name: KindApp, Webhooks: appWebhooks},
		{Name: KindAppSet, Webhooks: appSetWebhooks},
		{Name: KindAdvDeployment, Webhooks: advDeploymentWebhooks},
	}
}

// KnownKinds are the names of Kinds.
func KnownKinds() []string { return namesOf(Kinds()) }

func namesOf(kinds []Kind) []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.Name
	}
	return names
}

func tappWebhooks(b Backend) ([]Webhook, error) {
	v, err := tapp.New(tapp.Options{API: b.API, DryRuns: b.DryRuns, DefaultSpread: tappv1.DefaultTopologySpread(b.DefaultTopologySpread), Reads: b.Reads.Reads, Registry: b.Registry})
	if err != nil {
		return nil, err
	}
	return []Webhook{
		{Name: "mutate.tapp.tkestack.io", Path: "/mutate/tapp", Mutates: true, Version: tappv1.SchemeGroupVersion, Resources: []string{"tapps"},
			Handler: review.Handler("mutate", b.Reviews, tapp.DecodeTrees, tapp.Mutate)},
		{Name: "validate.tapp.tkestack.io", Path: "/validate/tapp", Version: tappv1.SchemeGroupVersion, Resources: []string{"tapps", "tapps/scale"},
			Handler: review.Handler("validate", b.Reviews, tapp.DecodeTApps, v.Validate)},
	}, nil
}

// appWebhooks judge Apps. They complete nothing: the fields that an App leaves out
// have their meaning without being written.
func appWebhooks(b Backend) ([]Webhook, error) {
	v := app.Validator{Naming: b.Reads.AppsNaming}
	if v.Naming == nil {
		apps, err := client.NewApps(b.API)
		if err != nil {
			return nil, fmt.Errorf("making a client of Apps: %w", err)
		}
		v.Naming = app.LiveNaming(apps)
	}
	return []Webhook{
		{Name: "validate.app.tkestack.io", Path: "/validate/app", Version: appv1.SchemeGroupVersion, Resources: []string{"apps"},
			Handler: review.Handler("validate-app", b.Reviews, review.Decode[*appv1.App], v.Validate)},
	}, nil
}

func appSetWebhooks(b Backend) ([]Webhook, error) {
	appSets, err := client.NewAppSets(b.API)
	if err != nil {
		return nil, fmt.Errorf("making a client of AppSets: %w", err)
	}
	get := func(ctx context.Context, namespace, name string) (*v1beta1.AppSet, error) {
		return appSets.AppSets(namespace).Get(ctx, name, metav1.GetOptions{})
	}
	advDeployments, err := client.NewAdvDeployments(b.API)
	if err != nil {
		return nil, fmt.Errorf("making a client of AdvDeployments: %w", err)
	}
	gates := confirmation.Webhook{AppSet: get, AdvDeployment: func(ctx context.Context, namespace, name string) (*v1beta1.AdvDeployment, error) {
		return advDeployments.AdvDeployments(namespace).Get(ctx, name, metav1.GetOptions{})
	}}
	return []Webhook{
		{Name: "mutate.confirmation.tkestack.io", Path: "/mutate/confirmation", Mutates: true, Version: v1beta1.SchemeGroupVersion, Resources: []string{"confirmations"},
			Handler: review.Handler("mutate-confirmation", b.Reviews, review.Decode[*v1beta1.Confirmation], gates.Mutate)},
		{Name: "validate.appset.tkestack.io", Path: "/validate/appset", Version: v1beta1.SchemeGroupVersion, Resources: []string{"appsets", "appsets/scale"},
			Handler: review.Handler("validate-appset", b.Reviews, review.Decode[*v1beta1.AppSet], appset.Webhook{AppSet: get}.Validate)},
	}, nil
}

func advDeploymentWebhooks(b Backend) ([]Webhook, error) {
	return []Webhook{
		{Name: "validate.advdeployment.tkestack.io", Path: "/validate/advdeployment", Version: v1beta1.SchemeGroupVersion, Resources: []string{"advdeployments"},
			Handler: review.Handler("validate-advdeployment", b.Reviews, review.Decode[*v1beta1.AdvDeployment], advdeployment.Validate)},
	}, nil
}
