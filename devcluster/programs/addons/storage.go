//go:build programs

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"

	"tkestack.io/tapp/devcluster/storage"
)

// runStorage makes the volumes of claims, lets them grow, and removes them. It runs on the machine, whose file system all
// nodes share.
//
//	storage --kubeconfig FILE --root DIR --health ADDRESS
func runStorage(ctx context.Context) error {
	flags := flag.NewFlagSet("storage", flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "of a cluster administrator")
	root := flags.String("root", "", "directory of all volumes")
	health := flags.String("health", "", "address of /readyz")
	if err := flags.Parse(os.Args[1:]); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	config.QPS, config.Burst = 200, 400
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	factory := informers.NewSharedInformerFactory(client, controller.DefaultResyncPeriod)
	claims, volumes, classes := factory.Core().V1().PersistentVolumeClaims(), factory.Core().V1().PersistentVolumes(), factory.Storage().V1().StorageClasses()
	// Nobody else works on these claims, and who waits for one waits at a keyboard.
	provisioning := controller.NewProvisionController(ctx, client, storage.Provisioner, directories(*root),
		controller.LeaderElection(false), controller.RateLimiter(backoff()), controller.CreateProvisionedPVInterval(100*time.Millisecond),
		controller.ClaimsInformer(claims.Informer()), controller.VolumesInformer(volumes.Informer()), controller.ClassesInformer(classes.Informer()))
	r := &resizer{
		client: client.CoreV1(), claims: claims.Lister(), volumes: volumes.Lister(), classes: classes.Lister(),
		queue: workqueue.NewTypedRateLimitingQueue(backoff()), recorder: events(ctx, client),
	}
	if _, err := claims.Informer().AddEventHandler(r.handler()); err != nil {
		return fmt.Errorf("watch claims: %w", err)
	}
	factory.Start(ctx.Done())
	group, ctx := errgroup.WithContext(ctx)
	synced := func(ctx context.Context) bool {
		return cache.WaitForCacheSync(ctx.Done(), claims.Informer().HasSynced, volumes.Informer().HasSynced, classes.Informer().HasSynced)
	}
	group.Go(func() error { provisioning.Run(ctx); return nil })
	group.Go(func() error {
		if synced(ctx) {
			r.run(ctx)
		}
		return nil
	})
	group.Go(func() error { return serveReady(ctx, *health, synced) })
	return group.Wait()
}

func backoff() workqueue.TypedRateLimiter[string] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[string](50*time.Millisecond, 10*time.Second)
}

func events(ctx context.Context, client kubernetes.Interface) record.EventRecorder {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	return broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "devcluster-storage"})
}

// directories is the root of all volumes, and makes them.
type directories string

// Provision makes the directory of a new volume.
func (d directories) Provision(_ context.Context, o controller.ProvisionOptions) (*corev1.PersistentVolume, controller.ProvisioningState, error) {
	v, err := storage.Volume(string(d), storage.Request{Name: o.PVName, Node: o.SelectedNodeName, Claim: o.PVC, Class: o.StorageClass})
	if err != nil {
		return nil, controller.ProvisioningFinished, err
	}
	path := v.Spec.Local.Path
	// Pods write there as any user.
	if err := errors.Join(os.MkdirAll(path, 0o750), os.Chmod(path, 0o777)); err != nil { //nolint:gosec // see above
		return nil, controller.ProvisioningFinished, fmt.Errorf("make a volume: %w", err)
	}
	return v, controller.ProvisioningFinished, nil
}

// Delete removes the directory of a volume, and what is in it.
func (d directories) Delete(_ context.Context, v *corev1.PersistentVolume) error {
	path, err := storage.Directory(string(d), v)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(path); err != nil {
		return fmt.Errorf("remove a volume: %w", err)
	}
	return nil
}
