//go:build programs

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/cert-manager/cert-manager/pkg/controller"
	"github.com/cert-manager/cert-manager/pkg/controller/cainjector"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/clusterissuers"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
	"golang.org/x/sync/errgroup"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// runCertManager runs cert-manager: its certificate controllers, the selfSigned and CA issuers, and the injector of CAs.
// cert-manager's own programs are modules of their own, which no proxy serves; its packages are what those consist of. Its
// webhook, which checks and completes its objects, is not among them.
//
//	certmanager --kubeconfig FILE --health ADDRESS     without --kubeconfig: as the pod that it is
func runCertManager(ctx context.Context) error {
	flags := flag.NewFlagSet("certmanager", flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "of a cluster administrator; empty: the pod's service account")
	health := flags.String("health", ":6080", "address of /readyz")
	if err := flags.Parse(os.Args[1:]); err != nil {
		return err
	}
	ctrl.SetLogger(klog.Background())
	group, ctx := errgroup.WithContext(ctx)
	synced, err := startControllers(ctx, group, *kubeconfig)
	if err != nil {
		return err
	}
	injector, err := newInjector(ctx, *kubeconfig)
	if err != nil {
		return err
	}
	group.Go(func() error { return injector.Start(ctx) })
	group.Go(func() error {
		return serveReady(ctx, *health, func(ctx context.Context) bool { return synced(ctx) && injector.GetCache().WaitForCacheSync(ctx) })
	})
	return group.Wait()
}

// startControllers starts those that the imports above have registered, and returns a function that waits for their caches.
func startControllers(ctx context.Context, group *errgroup.Group, kubeconfig string) (func(context.Context) bool, error) {
	factory, err := controller.NewContextFactory(ctx, controller.ContextOptions{
		Kubeconfig: kubeconfig, KubernetesAPIQPS: 100, KubernetesAPIBurst: 200,
		IssuerOptions:      controller.IssuerOptions{ClusterResourceNamespace: "cert-manager"},
		CertificateOptions: controller.CertificateOptions{CertificateRequestMinimumBackoffDuration: time.Second},
	})
	if err != nil {
		return nil, fmt.Errorf("controllers: %w", err)
	}
	for name, build := range controller.Known() {
		c, err := build(factory)
		if err != nil {
			return nil, fmt.Errorf("controller %s: %w", name, err)
		}
		group.Go(func() error {
			if err := c.Run(2, ctx); err != nil && ctx.Err() == nil {
				return fmt.Errorf("controller %s: %w", name, err)
			}
			return nil
		})
	}
	shared, err := factory.Build()
	if err != nil {
		return nil, fmt.Errorf("informers: %w", err)
	}
	shared.SharedInformerFactory.Start(ctx.Done())
	shared.KubeSharedInformerFactory.Start(ctx.Done())
	return func(ctx context.Context) bool {
		for _, ok := range shared.SharedInformerFactory.WaitForCacheSync(ctx.Done()) {
			if !ok {
				return false
			}
		}
		for _, ok := range shared.KubeSharedInformerFactory.WaitForCacheSync(ctx.Done()) {
			if !ok {
				return false
			}
		}
		return true
	}, nil
}

// newInjector fills caBundle in webhook configurations and CRDs that ask for it by an annotation.
func newInjector(ctx context.Context, kubeconfig string) (ctrl.Manager, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("injector: %w", err)
	}
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, certmanager.AddToScheme, apiextensions.AddToScheme, apiregistration.AddToScheme} {
		if err := add(known); err != nil {
			return nil, fmt.Errorf("injector: %w", err)
		}
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{Scheme: known, Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return nil, fmt.Errorf("injector: %w", err)
	}
	err = cainjector.RegisterAllInjectors(ctx, manager, cainjector.SetupOptions{
		EnableCertificatesDataSource: true,
		EnabledReconcilersFor: map[string]bool{
			cainjector.ValidatingWebhookConfigurationName: true, cainjector.MutatingWebhookConfigurationName: true, cainjector.CustomResourceDefinitionName: true,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("injector: %w", err)
	}
	return manager, nil
}

// serveReady answers 200 on /readyz once ready has returned true.
func serveReady(ctx context.Context, address string, ready func(context.Context) bool) error {
	done := make(chan struct{})
	go func() {
		if ready(ctx) {
			close(done)
		}
	}()
	mux := http.NewServeMux()
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		select {
		case <-done:
			fmt.Fprintln(w, "ok")
		default:
			http.Error(w, "caches are not filled yet", http.StatusServiceUnavailable)
		}
	})
	server := &http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.ListenAndServe(); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve /readyz: %w", err)
	}
	return nil
}
