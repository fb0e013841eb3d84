package fleet

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"tkestack.io/tapp/controller/cache"
	"tkestack.io/tapp/crd/workload/v1beta1"
)

// sources watch what registers clusters.
type sources struct {
	cache.Informers
	secrets    []toolscache.TypedSharedIndexInformer[*corev1.Secret]
	configMaps toolscache.TypedSharedIndexInformer[*corev1.ConfigMap]
	// dirty has a token while something changed that was not read.
	dirty chan struct{}
}

func newSources(hub corev1client.CoreV1Interface, namespace string) (*sources, error) {
	s := &sources{dirty: make(chan struct{}, 1)}
	secrets, configMaps := hub.Secrets(namespace), hub.ConfigMaps(namespace)
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
	return s, cache.Handle(s.configMaps, changed)
}

func (s *sources) waitForSync(ctx context.Context) bool {
	return toolscache.WaitForCacheSync(ctx.Done(), s.HasSynced)
}

// read all registrations, in no order.
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
