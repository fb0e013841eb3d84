package advdeployment

import (
	"maps"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/manifest"
)

// Manifests are what is applied by the server: only fields that the AdvDeployment says
// something of. All others are the cluster's, or somebody else's.

// annotationHostname has external-dns make a record of a Service.
const annotationHostname = "external-dns.alpha.kubernetes.io/hostname"

// annotationDeploymentRevision is on Deployments whose controller has made a ReplicaSet.
const annotationDeploymentRevision = "deployment.kubernetes.io/revision"

var apiVersions = map[Kind]string{Service: "v1", TApp: "apps.tkestack.io/v1", StatefulSet: "apps/v1", Deployment: "apps/v1"}

// APIVersion of the children of a kind.
func (k Kind) APIVersion() string { return apiVersions[k] }

// GroupKind of a kind, which has one whatever version is served.
func (k Kind) GroupKind() schema.GroupKind {
	return schema.FromAPIVersionAndKind(apiVersions[k], string(k)).GroupKind()
}

func (c *computation) object(child Child, labels, annotations map[string]string, spec map[string]any) map[string]any {
	labels, annotations = maps.Clone(labels), maps.Clone(annotations)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[v1beta1.LabelAdvDeployment] = c.d.Name
	metadata := map[string]any{
		"name": child.Name, "namespace": c.d.Namespace, "labels": texts(labels),
		"ownerReferences": []any{map[string]any{
			"apiVersion": v1beta1.SchemeGroupVersion.String(), "kind": v1beta1.KindAdvDeployment, "name": c.d.Name, "uid": string(c.d.UID),
			"controller": true, "blockOwnerDeletion": true,
		}},
	}
	if len(annotations) > 0 {
		metadata["annotations"] = texts(annotations)
	}
	return map[string]any{"apiVersion": child.Kind.APIVersion(), "kind": string(child.Kind), "metadata": metadata, "spec": spec}
}

func texts(in map[string]string) map[string]any {
	out := make(map[string]any, len(in))
	for key, value := range in {
		out[key] = value
	}
	return out
}

// serviceManifest is a headless Service of all pods of the application.
func (c *computation) serviceManifest(name string) map[string]any {
	labels, annotations := map[string]string{v1beta1.LabelApp: c.d.Name}, map[string]string{}
	if domain := c.d.Spec.ServiceName; strings.Contains(domain, ".") {
		annotations[annotationHostname] = domain
		if len(validation.IsValidLabelValue(domain)) == 0 {
			labels[v1beta1.LabelDomain] = domain
		}
	}
	return c.object(Child{Service, name}, labels, annotations, map[string]any{
		"clusterIP": corev1.ClusterIPNone, "selector": map[string]any{v1beta1.LabelApp: c.d.Name},
	})
}

// workloadManifest is the child of a podSet.
func (c *computation) workloadManifest(u *unit, service string) map[string]any {
	annotations := maps.Clone(u.Content.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1beta1.AnnotationRevision], annotations[v1beta1.AnnotationVersion] = u.Hash, u.Version
	if grant := c.grantText(u); grant != "" {
		annotations[v1beta1.AnnotationGrant] = grant
	}
	have := c.own(u.child)
	spec := map[string]any{
		"selector":             selectorOf(u),
		"template":             bare(manifest.Plain(u.Content.Template)),
		"minReadySeconds":      int64(c.d.Spec.UpdateStrategy.MinReadySeconds),
		"revisionHistoryLimit": int64(*c.d.Spec.RevisionHistoryLimit),
	}
	if replicas, ours := c.replicasOf(u, have); ours {
		spec["replicas"] = replicas
	}
	if service != "" && u.child.Kind != Deployment {
		spec["serviceName"] = service
	}
	if claims := claimsOf(u.Content.VolumeClaimTemplates); len(claims) > 0 && u.child.Kind != Deployment {
		spec["volumeClaimTemplates"] = claims
	}
	if u.PodSet.Ordinals != nil && u.child.Kind != Deployment {
		spec["ordinals"] = map[string]any{"start": int64(u.PodSet.Ordinals.Start)}
	}
	c.budget(u, have, spec)
	return c.object(u.child, u.Content.Labels, annotations, spec)
}

// selectorOf the pods of one podSet: what the spec says, and the podSet's own label.
func selectorOf(u *unit) map[string]any {
	out := map[string]any{"matchLabels": map[string]any{v1beta1.LabelApp: u.Content.Labels[v1beta1.LabelApp], v1beta1.LabelRelease: u.PodSet.Name}}
	if u.Content.Selector == nil {
		return out
	}
	out = manifest.Plain(u.Content.Selector)
	labels, _ := out["matchLabels"].(map[string]any)
	if labels == nil {
		labels = map[string]any{}
		out["matchLabels"] = labels
	}
	labels[v1beta1.LabelRelease] = u.PodSet.Name
	return out
}

// replicasOf a podSet as it is applied. False: the field is an autoscaler's. An owned
// field that is dropped would fall to 1, so that the live number is applied until the
// autoscaler has written one of its own.
func (c *computation) replicasOf(u *unit, have *unstructured.Unstructured) (int64, bool) {
	if !c.in.Autoscaled[u.child] || have == nil {
		return int64(u.Replicas), true
	}
	if have.GetAnnotations()[AnnotationReplicasBy] != "" {
		return 0, false
	}
	live, found, _ := unstructured.NestedInt64(have.Object, "spec", "replicas")
	if !found {
		live = 1
	}
	return live, true
}

// budget says how a change of pods may go on.
//
// | kind | held back: paused, or maxUnavailable 0 | within maxUnavailable |
// |---|---|---|
// | TApp | paused | updateStrategy.maxUnavailable |
// | StatefulSet | partition above all ids | rollingUpdate.maxUnavailable, where the cluster has it |
// | Deployment | paused, once it has pods: a new one would get none | rollingUpdate.maxUnavailable |
func (c *computation) budget(u *unit, have *unstructured.Unstructured, spec map[string]any) {
	limit := u.placed.MaxUnavailable
	held := c.d.Spec.UpdateStrategy.Paused || u.placed.Paused || limit != nil && *limit == 0
	rolling := map[string]any{}
	if limit != nil && *limit > 0 {
		rolling["maxUnavailable"] = int64(*limit)
	}
	switch u.child.Kind {
	case TApp:
		spec["paused"] = held
		if len(rolling) > 0 {
			spec["updateStrategy"] = rolling
		}
	case StatefulSet:
		switch {
		case !held:
			rolling["partition"] = int64(0)
		case c.in.Autoscaled[u.child]: // it may have any number of instances
			rolling["partition"] = int64(math.MaxInt32)
		default:
			rolling["partition"] = u.ids().Last
		}
		spec["podManagementPolicy"] = "Parallel"
		spec["updateStrategy"] = map[string]any{"type": "RollingUpdate", "rollingUpdate": rolling}
	case Deployment:
		spec["paused"] = held && have != nil && have.GetAnnotations()[annotationDeploymentRevision] != ""
		if len(rolling) > 0 {
			spec["strategy"] = map[string]any{"type": "RollingUpdate", "rollingUpdate": rolling}
		}
	}
}

func claimsOf(claims []corev1.PersistentVolumeClaim) (out []any) {
	for i := range claims {
		claim := bare(manifest.Plain(&claims[i]))
		delete(claim, "status")
		out = append(out, claim)
	}
	return out
}

// bare leaves out what Go's types say of fields that nobody gave: null, and resources
// without any. So it does with a security context that says nothing: where it said something
// before, an apply would make null of it, which is refused.
func bare(in map[string]any) map[string]any {
	for key, value := range in {
		switch value := value.(type) {
		case nil:
			delete(in, key)
		case map[string]any:
			if bare(value); len(value) == 0 && (key == "resources" || key == "securityContext") {
				delete(in, key)
			}
		case []any:
			for _, entry := range value {
				if fields, ok := entry.(map[string]any); ok {
					bare(fields)
				}
			}
		}
	}
	return in
}
