// Package check says whether an installation works: whether the API server serves TApp's
// kinds, the webhooks judge, and a controller is leading. It stores nothing.
package check

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	appv1 "tkestack.io/tapp/crd/app/v1"
	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	"tkestack.io/tapp/crd/workload/v1beta1"
)

// kinds by the names that --controllers has.
var kinds = map[string]schema.GroupVersionResource{
	"tapp":          tappv1.SchemeGroupVersion.WithResource("tapps"),
	"app":           appv1.SchemeGroupVersion.WithResource("apps"),
	"appset":        v1beta1.SchemeGroupVersion.WithResource("appsets"),
	"advdeployment": v1beta1.SchemeGroupVersion.WithResource("advdeployments"),
}

// Options of a check.
type Options struct {
	// Namespace of the TApps that are tried. It has to be one that the webhooks judge.
	Namespace string
	// Kinds that are to be served, by the names that --controllers has.
	Kinds []string
	// Judged says that webhooks judge TApps of the namespace.
	Judged bool
	// LeaseNamespace and LeaseName name the Lease of the controllers; without a name it is
	// not looked at.
	LeaseNamespace, LeaseName string
}

// checker asks one API server.
type checker struct {
	Options
	served  discovery.ServerResourcesInterface
	leases  coordinationclient.LeasesGetter
	configs corev1client.ConfigMapsGetter
	objects dynamic.Interface
	now     func() time.Time
}

func newChecker(cfg *rest.Config, o Options) (*checker, error) {
	served, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("checking the installation: %w", err)
	}
	leases, err := coordinationclient.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("checking the installation: %w", err)
	}
	objects, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("checking the installation: %w", err)
	}
	configs, err := corev1client.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("checking the installation: %w", err)
	}
	return &checker{o, served, leases, configs, objects, time.Now}, nil
}

// finding of one check: what holds, or what does not.
type finding struct {
	holds string
	err   error
}

// all checks, in their order.
func (c *checker) all(ctx context.Context) (out []finding) {
	for _, kind := range c.Kinds {
		out = append(out, finding{fmt.Sprintf("the API server serves %s", kinds[kind].Resource), c.serves(kinds[kind])})
	}
	out = append(out, finding{"a TApp is admitted", c.admitted(ctx)})
	if c.Judged {
		out = append(out, finding{"a TApp that cannot be is refused", c.refused(ctx)})
	}
	if c.LeaseName != "" {
		out = append(out, finding{"a controller is leading", c.led(ctx)}, finding{"no schema lost fields that objects use", c.whole(ctx)})
	}
	return out
}

func (c *checker) serves(resource schema.GroupVersionResource) error {
	version := resource.GroupVersion().String()
	list, err := c.served.ServerResourcesForGroupVersion(version)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("asking for the kinds of %s: %w", version, err)
	}
	if list != nil {
		for _, r := range list.APIResources {
			if r.Name == resource.Resource {
				return nil
			}
		}
	}
	return fmt.Errorf("the cluster has no %s of %s: its CustomResourceDefinition is missing (the chart installs it if crds.install is true)", resource.Resource, version)
}

// try creates a TApp and stores it not.
func (c *checker) try(ctx context.Context, templates map[string]any) error {
	spec := map[string]any{
		"replicas": int64(1),
		"template": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"app": "tapp-check"}},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "check", "image": "check"}}},
		},
	}
	if templates != nil {
		spec["templates"] = templates
	}
	tapp := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": tappv1.SchemeGroupVersion.String(), "kind": "TApp",
		"metadata": map[string]any{"name": "tapp-check", "namespace": c.Namespace}, "spec": spec,
	}}
	_, err := c.objects.Resource(kinds["tapp"]).Namespace(c.Namespace).Create(ctx, tapp, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

func (c *checker) admitted(ctx context.Context) error {
	err := c.try(ctx, nil)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return unanswered(err)
}

// refused asks for what only a webhook can refuse: the schema knows nothing of references.
func (c *checker) refused(ctx context.Context) error {
	err := c.try(ctx, map[string]any{"0": "missing"})
	switch {
	case err == nil || apierrors.IsAlreadyExists(err):
		return fmt.Errorf("a TApp that names a missing template passes in namespace %s: no webhook judges it", c.Namespace)
	case strings.Contains(err.Error(), "denied the request") && strings.Contains(err.Error(), "missing"):
		return nil
	}
	return unanswered(err)
}

// unanswered says what to look at when a webhook could not be asked.
func unanswered(err error) error {
	if err != nil && strings.Contains(err.Error(), "failed calling webhook") {
		return fmt.Errorf("%w: see whether its pods are ready, and whether its caBundle is that of their certificate", err)
	}
	return err
}

func (c *checker) led(ctx context.Context) error {
	lease, err := c.leases.Leases(c.LeaseNamespace).Get(ctx, c.LeaseName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the Lease of the controllers: %w", err)
	}
	holder, renewed, lasts := lease.Spec.HolderIdentity, lease.Spec.RenewTime, lease.Spec.LeaseDurationSeconds
	if holder == nil || *holder == "" || renewed == nil || lasts == nil {
		return errors.New("nobody holds the Lease of the controllers")
	}
	if silent := c.now().Sub(renewed.Time); silent > time.Duration(*lasts)*time.Second {
		return fmt.Errorf("%s held the Lease of the controllers, and has not renewed it for %s", *holder, silent.Round(time.Second))
	}
	return nil
}

// whole says whether the leader holds a kind, because its served schema lost fields.
func (c *checker) whole(ctx context.Context) error {
	told, err := c.configs.ConfigMaps(c.LeaseNamespace).Get(ctx, tappv1.SchemasConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil // no leader has recorded anything
	}
	if err != nil {
		return fmt.Errorf("reading what the leader knows of schemas: %w", err)
	}
	var errs []error
	for _, kind := range c.Kinds {
		if message := told.Data[kinds[kind].GroupResource().String()+".held"]; message != "" {
			errs = append(errs, errors.New(message))
		}
	}
	return errors.Join(errs...)
}
