package fleet

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"tkestack.io/tapp/controller/cache"
	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/fleet/kubeconfig"
)

// sources watch what registers clusters.
type sources struct {
	cache.Informers
	secrets    []toolscache.TypedSharedIndexInformer[*corev1.Secret]
	configMaps toolscache.TypedSharedIndexInformer[*corev1.ConfigMap]
	// profiles is nil where ClusterProfiles are not used.
	profiles toolscache.TypedSharedIndexInformer[*unstructured.Unstructured]
	// dirty has a token while something changed that was not read.
	dirty chan struct{}
}

func newSources(o Options) (*sources, error) {
	s := &sources{dirty: make(chan struct{}, 1)}
	secrets, configMaps := o.HubWatches.Secrets(o.Namespace), o.HubWatches.ConfigMaps(o.Namespace)
	for _, label := range []string{v1beta1.LabelOwner + "=" + v1beta1.OwnerLegacy, v1beta1.LabelRuntime + "=true"} {
		i, err := cache.NewInformer(cache.Source{
			Client: secrets, Label: label,
			Lists:   func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return secrets.List(ctx, o) },
			Watches: secrets.Watch,
		}, &corev1.Secret{}, cache.Trim)
		if err != nil {
			return nil, fmt.Errorf("making an informer of Secrets: %w", err)
		}
		s.secrets = append(s.secrets, i)
	}
	var err error
	s.configMaps, err = cache.NewInformer(cache.Source{
		Client: configMaps, Label: v1beta1.LabelOwner + "=" + v1beta1.OwnerLegacy,
		Lists: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return configMaps.List(ctx, o)
		},
		Watches: configMaps.Watch,
	}, &corev1.ConfigMap{}, cache.Trim)
	if err != nil {
		return nil, fmt.Errorf("making an informer of ConfigMaps: %w", err)
	}
	if o.Profiles != nil {
		s.profiles, err = cache.NewInformer(cache.Source{
			Client: o.Profiles,
			Lists: func(ctx context.Context, l metav1.ListOptions) (runtime.Object, error) {
				return o.Profiles.List(ctx, l)
			},
			Watches: o.Profiles.Watch,
		}, &unstructured.Unstructured{}, cache.Trim)
		if err != nil {
			return nil, fmt.Errorf("making an informer of ClusterProfiles: %w", err)
		}
	}
	changed := func(toolscache.ObjectName) {
		select {
		case s.dirty <- struct{}{}:
		default:
		}
	}
	for _, i := range s.secrets {
		if err := cache.Handle(i, changed); err != nil {
			return nil, err
		}
		s.Informers = append(s.Informers, i)
	}
	s.Informers = append(s.Informers, s.configMaps)
	if err := cache.Handle(s.configMaps, changed); err != nil || s.profiles == nil {
		return s, err
	}
	return s, cache.Handle(s.profiles, changed)
}

// watch all sources until ctx ends. ClusterProfiles are no part of the informers that
// others wait for: where their definition is missing, they are never listed.
func (s *sources) watch(ctx context.Context) {
	var watching sync.WaitGroup
	if s.profiles != nil {
		watching.Go(func() { s.profiles.RunWithContext(ctx) })
	}
	s.Watch(ctx)
	watching.Wait()
}

// waitForSync waits for Secrets and ConfigMaps, and for a while for ClusterProfiles. It is
// false when ctx has ended.
func (s *sources) waitForSync(ctx context.Context) bool {
	if !toolscache.WaitForCacheSync(ctx.Done(), s.HasSynced) {
		return false
	}
	if s.profiles != nil {
		bounded, cancel := context.WithTimeout(ctx, syncTimeout)
		defer cancel()
		if !toolscache.WaitForCacheSync(bounded.Done(), s.profiles.HasSynced) {
			klog.FromContext(ctx).Info("ClusterProfiles cannot be listed; clusters that they register are not known", "resource", v1beta1.ClusterProfiles().String())
		}
	}
	return ctx.Err() == nil
}

// readProfiles are the registrations by ClusterProfiles.
func (s *sources) readProfiles(providers kubeconfig.Providers, allowLocal bool) []*registration {
	if s.profiles == nil {
		return nil
	}
	var out []*registration
	for _, object := range s.profiles.GetStore().List() {
		if profile, ok := object.(*unstructured.Unstructured); ok {
			out = append(out, fromProfile(profile, providers, allowLocal))
		}
	}
	return out
}

// read the registrations by Secrets and ConfigMaps, in no order.
func (s *sources) read() []*registration {
	var out []*registration
	known := map[types.UID]bool{}
	for _, informer := range s.secrets {
		for _, object := range informer.GetStore().List() {
			if secret, ok := object.(*corev1.Secret); ok && !known[secret.UID] {
				known[secret.UID] = true // it may have both labels
				out = append(out, fromSecret(secret))
			}
		}
	}
	for _, object := range s.configMaps.GetStore().List() {
		if configMap, ok := object.(*corev1.ConfigMap); ok {
			out = append(out, fromConfigMap(configMap))
		}
	}
	return out
}
