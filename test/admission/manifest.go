//go:build cluster

package admission

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
	plan "tkestack.io/tapp/plan/tapp"
	"tkestack.io/tapp/test/gen"
)

// manifest is a TApp of three instances that nothing is wrong with.
func manifest(name string, opts ...gen.Option) *tappv1.TApp {
	t := gen.TApp(name, append([]gen.Option{gen.Default(gen.Simulated())}, opts...)...)
	// A creation without a selector is told which labels became it.
	t.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": t.Spec.Template.Labels["app"]}}
	return t
}

// withoutSelector is a manifest that leaves the selector to admission.
func withoutSelector(name string, opts ...gen.Option) *tappv1.TApp {
	t := manifest(name, opts...)
	t.Spec.Selector = nil
	return t
}

// text of a manifest as a user would write it.
func text(t *testing.T, tapp *tappv1.TApp) string {
	t.Helper()
	out, err := yaml.Marshal(map[string]any{
		"apiVersion": tappv1.SchemeGroupVersion.String(), "kind": tappv1.Kind,
		"metadata": map[string]any{"name": tapp.Name}, "spec": tapp.Spec,
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// observe writes a status, as the controller would.
func (r *rig) observe(name string) {
	r.Helper()
	seen := []byte(`{"status":{"observedGeneration":1}}`)
	if _, err := r.TApps.Patch(r.Context(), name, types.MergePatchType, seen, metav1.PatchOptions{}, "status"); err != nil {
		r.Fatal(err)
	}
}

// createPods creates the pods of a TApp, as the controller would.
func (r *rig) createPods(tapp *tappv1.TApp) {
	r.Helper()
	for id := range int(*tapp.Spec.Replicas) {
		name := tapp.Spec.DefaultTemplateName
		if own := tapp.Spec.Templates[string(rune('0'+id))]; own != "" {
			name = own
		}
		pod := plan.PodOf(tapp, name, id)
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(tapp, tappv1.GroupVersionKind())}
		if _, err := r.Kube.CoreV1().Pods(tapp.Namespace).Create(context.Background(), pod, metav1.CreateOptions{}); err != nil {
			r.Fatal(err)
		}
	}
}

func paused(t *tappv1.TApp) { t.Spec.Paused = true }

func status(id string, s tappv1.InstanceStatus) gen.Option {
	return func(t *tappv1.TApp) { t.Spec.Statuses = map[string]tappv1.InstanceStatus{id: s} }
}

func initContainer(image string) gen.Edit {
	return func(t *corev1.PodTemplateSpec) {
		t.Spec.InitContainers = []corev1.Container{{Name: "setup", Image: image}}
	}
}

func hostNetwork(t *corev1.PodTemplateSpec) { t.Spec.HostNetwork = true }

func serviceAccountName(name string) gen.Edit {
	return func(t *corev1.PodTemplateSpec) { t.Spec.ServiceAccountName = name }
}

func priorityClass(name string) gen.Edit {
	return func(t *corev1.PodTemplateSpec) { t.Spec.PriorityClassName = name }
}
