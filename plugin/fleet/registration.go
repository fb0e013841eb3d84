package fleet

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// registration of a cluster.
type registration struct {
	// name is folded, and object is that of what follows, of which it is one.
	name, object string
	secret       *corev1.Secret
	configMap    *corev1.ConfigMap
	profile      *unstructured.Unstructured // a ClusterProfile
}

func (r *registration) meta() metav1.Object {
	switch {
	case r.secret != nil:
		return r.secret
	case r.configMap != nil:
		return r.configMap
	}
	return r.profile
}

// uid of the cluster that it was registered with; empty: nobody has been there yet.
func (r *registration) uid() types.UID {
	return types.UID(r.meta().GetAnnotations()[v1beta1.AnnotationClusterUID])
}

func (r *registration) kind() string {
	switch {
	case r.secret != nil:
		return "Secret"
	case r.configMap != nil:
		return "ConfigMap"
	}
	return r.profile.GetKind()
}

func (r *registration) value(key string) string {
	switch {
	case r.secret != nil:
		return string(r.secret.Data[key])
	case r.configMap != nil:
		return r.configMap.Data[key]
	case key == v1beta1.KeyStatus:
		return r.profile.GetAnnotations()[v1beta1.AnnotationClusterStatus]
	}
	return ""
}

// kubeconfig as the hub's controller finds it.
func (r *registration) kubeconfig() []byte {
	text := r.value(v1beta1.KeyKubeconfig)
	if text == "" && r.meta().GetLabels()[v1beta1.LabelRuntime] == "true" {
		text = r.value(v1beta1.KeyKubeconfigRuntime)
	}
	return []byte(text)
}

// registrations of the hub, those that count before others of the same name.
func (c *common) registrations(ctx context.Context, hub *session) ([]registration, error) {
	var out []registration
	known := map[types.UID]bool{}
	owned, runtime := v1beta1.LabelOwner+"="+v1beta1.OwnerLegacy, v1beta1.LabelRuntime+"=true"
	for _, label := range []string{owned, runtime} {
		secrets, err := hub.core.Secrets(c.clusterNamespace).List(ctx, metav1.ListOptions{LabelSelector: label})
		if err != nil {
			return nil, fmt.Errorf("listing the registrations: %w", err)
		}
		for i := range secrets.Items {
			if s := &secrets.Items[i]; !known[s.UID] {
				known[s.UID] = true
				out = append(out, registration{name: v1beta1.FoldClusterName(s.Name), object: s.Name, secret: s})
			}
		}
	}
	configMaps, err := hub.core.ConfigMaps(c.clusterNamespace).List(ctx, metav1.ListOptions{LabelSelector: owned})
	if err != nil {
		return nil, fmt.Errorf("listing the registrations: %w", err)
	}
	for i := range configMaps.Items {
		m := &configMaps.Items[i]
		out = append(out, registration{name: v1beta1.FoldClusterName(m.Name), object: m.Name, configMap: m})
	}
	profiles, err := hub.objects.Resource(v1beta1.ClusterProfiles()).Namespace(c.clusterNamespace).List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err): // the kind is not installed; without a right to it the API server does not say so
		return out, nil
	case err != nil:
		return nil, fmt.Errorf("listing the ClusterProfiles: %w", err)
	}
	for i := range profiles.Items {
		p := &profiles.Items[i]
		out = append(out, registration{name: v1beta1.FoldClusterName(p.GetName()), object: p.GetName(), profile: p})
	}
	return out, nil
}
