package fleet

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/fleet/kubeconfig"
)

const kindClusterProfile = "ClusterProfile"

// profileStatus is what is read of a ClusterProfile's status.
type profileStatus struct {
	Properties []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"properties"`
	AccessProviders []kubeconfig.Access `json:"accessProviders"`
	// CredentialProviders is the older name of AccessProviders.
	CredentialProviders []kubeconfig.Access `json:"credentialProviders"`
}

// fromProfile reads the registration that a ClusterProfile is. Its properties and labels
// are the metadata of the cluster.
func fromProfile(o *unstructured.Unstructured, providers kubeconfig.Providers, allowLocal bool) *registration {
	r := &registration{
		name: v1beta1.FoldClusterName(o.GetName()), uid: types.UID(o.GetAnnotations()[v1beta1.AnnotationClusterUID]),
		from: corev1.ObjectReference{
			APIVersion: v1beta1.ClusterProfiles().GroupVersion().String(), Kind: kindClusterProfile,
			Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(),
		},
		meta: map[string]string{},
	}
	r.kept = r.uid != ""
	for key, value := range o.GetLabels() {
		r.meta[key] = value
	}
	r.readStatus(o.GetAnnotations()[v1beta1.AnnotationClusterStatus])
	content, _, _ := unstructured.NestedMap(o.Object, "status")
	var status profileStatus
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &status); err != nil {
		r.refused = fmt.Sprintf("%s %s has a status that cannot be read: %v", kindClusterProfile, o.GetName(), err)
		return r
	}
	for _, p := range status.Properties {
		if isMeta(p.Name, p.Value) {
			r.meta[p.Name] = p.Value
		}
	}
	offered := append(status.AccessProviders, status.CredentialProviders...)
	// What a connection hangs on: another one is made when it changes.
	text, err := json.Marshal(offered)
	if err != nil {
		r.refused = fmt.Sprintf("%s %s has access that cannot be read: %v", kindClusterProfile, o.GetName(), err)
		return r
	}
	r.kubeconfig = text
	if r.config, err = providers.Judge(offered, allowLocal); err != nil {
		r.refused = err.Error()
	}
	return r
}

// readStatus of a registration, where absent means Ready.
func (r *registration) readStatus(text string) {
	switch status := strings.TrimSpace(text); status {
	case "", "Ready", "true":
	case "Maintaining", "false":
		r.maintaining = true
	default:
		r.maintaining = true
		r.warn(ReasonStatus, "status of cluster %s is %q; it is taken for Maintaining; give Ready or Maintaining", r.name, cut(status))
	}
}
