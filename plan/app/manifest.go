package app

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appv1 "tkestack.io/tapp/crd/app/v1"
	"tkestack.io/tapp/plan/manifest"
)

// Manifests are what is applied by the server: only fields that the App says
// something of. All others are the cluster's, or somebody else's.

// selectorOf the App's pods. The name of an App is unique in its namespace, and so
// no other App's pods match.
func selectorOf(a *appv1.App) map[string]string { return map[string]string{appv1.LabelApp: a.Name} }

func labelsOf(a *appv1.App) map[string]any { return map[string]any{appv1.LabelApp: a.Name} }

func deploymentManifest(a *appv1.App) map[string]any {
	t := &a.Spec.DeploymentTemplate
	container := manifest.Plain(&corev1.Container{Name: appv1.ContainerName, Image: t.Image, Ports: t.Ports, Env: t.Env, Resources: t.Resources})
	if resources, _ := container["resources"].(map[string]any); len(resources) == 0 {
		delete(container, "resources")
	}
	sayEmpty(container)
	container["image"] = t.Image // also an empty one: the API server says what is wrong with it
	return map[string]any{
		"apiVersion": "apps/v1",
		"kind":       string(Deployment),
		"metadata":   metadata(a, t.Name),
		"spec": map[string]any{
			"replicas": int64(*t.Replicas),
			"selector": map[string]any{"matchLabels": labelsOf(a)},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labelsOf(a)},
				"spec":     map[string]any{"containers": []any{container}},
			},
		},
	}
}

// sayEmpty has the manifest say of variables without a value that they have none: what
// it does not mention, somebody else could set.
func sayEmpty(container map[string]any) {
	variables, _ := container["env"].([]any)
	for _, v := range variables {
		variable, _ := v.(map[string]any)
		if variable["value"] == nil && variable["valueFrom"] == nil {
			variable["value"] = ""
		}
	}
}

// keepSelector has the manifest of a Deployment keep a selector that is not ours: it
// cannot be changed, and those that app-controller made have another one. Their pods
// get our label beside the ones that it asks for.
func keepSelector(made map[string]any, selector *metav1.LabelSelector) {
	if selector == nil || len(selector.MatchLabels) == 0 {
		return
	}
	spec, _ := made["spec"].(map[string]any)
	template, _ := spec["template"].(map[string]any)
	metadata, _ := template["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	kept := map[string]any{}
	for key, value := range selector.MatchLabels {
		kept[key], labels[key] = value, value
	}
	spec["selector"] = map[string]any{"matchLabels": kept}
}

func serviceManifest(a *appv1.App) map[string]any {
	t := &a.Spec.ServiceTemplate
	target, protocol := t.Port, corev1.ProtocolTCP
	if ports := a.Spec.DeploymentTemplate.Ports; len(ports) > 0 {
		target, protocol = ports[0].ContainerPort, ports[0].Protocol
	}
	return map[string]any{
		"apiVersion": "v1",
		"kind":       string(Service),
		"metadata":   metadata(a, t.Name),
		"spec": map[string]any{
			"type":     string(t.Type),
			"selector": labelsOf(a),
			"ports": []any{map[string]any{
				"name": appv1.PortName, "port": int64(t.Port), "targetPort": int64(target), "protocol": string(protocol),
			}},
		},
	}
}

func metadata(a *appv1.App, name string) map[string]any {
	return map[string]any{
		"name":      name,
		"namespace": a.Namespace,
		"labels":    labelsOf(a),
		"ownerReferences": []any{map[string]any{
			"apiVersion": appv1.SchemeGroupVersion.String(), "kind": appv1.Kind, "name": a.Name, "uid": string(a.UID),
			"controller": true, "blockOwnerDeletion": true,
		}},
	}
}
