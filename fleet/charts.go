package fleet

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

var secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

func (d *direct) KeepChart(ctx context.Context, chart *corev1.Secret) error {
	kept, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": chart.Labels, "annotations": chart.Annotations}})
	if err != nil {
		return err
	}
	return d.over(ctx, func(ctx context.Context, s *session) error {
		requests, namespace := s.connection.requests, d.member.fleet.ChartNamespace
		// Under this name there are no other bytes. The patch makes another version of the
		// Secret: a deletion that was decided on before comes too late.
		_, err := requests.heads.Resource(secrets).Namespace(namespace).Patch(ctx, chart.Name, types.MergePatchType, kept, metav1.PatchOptions{FieldManager: v1beta1.Component})
		if apierrors.IsNotFound(err) {
			_, err = requests.secrets.Secrets(namespace).Create(ctx, chart, metav1.CreateOptions{FieldManager: v1beta1.Component})
		}
		return err
	})
}

func (d *direct) Charts(ctx context.Context) (out []metav1.PartialObjectMetadata, err error) {
	selector := v1beta1.LabelChart + "," + d.member.fleet.Selector
	err = d.over(ctx, func(ctx context.Context, s *session) error {
		list, err := s.connection.requests.heads.Resource(secrets).Namespace(d.member.fleet.ChartNamespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err == nil {
			out = list.Items
		}
		return err
	})
	return out, err
}

func (d *direct) DropChart(ctx context.Context, chart *metav1.PartialObjectMetadata) error {
	seen := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &chart.UID, ResourceVersion: &chart.ResourceVersion}}
	return d.over(ctx, func(ctx context.Context, s *session) error {
		err := s.connection.requests.secrets.Secrets(d.member.fleet.ChartNamespace).Delete(ctx, chart.Name, seen)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}
