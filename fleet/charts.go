package fleet

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

var secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

func (d *direct) KeepChart(ctx context.Context, chart *corev1.Secret) error {
	return d.over(ctx, func(ctx context.Context, s *session) error {
		_, err := s.connection.requests.secrets.Secrets(d.member.fleet.ChartNamespace).Create(ctx, chart, metav1.CreateOptions{FieldManager: v1beta1.Component})
		if apierrors.IsAlreadyExists(err) {
			return nil // under this name there are no other bytes
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

func (d *direct) DropChart(ctx context.Context, name string, uid types.UID) error {
	return d.over(ctx, func(ctx context.Context, s *session) error {
		err := s.connection.requests.secrets.Secrets(d.member.fleet.ChartNamespace).Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}
