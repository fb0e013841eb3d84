package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// errCannotSecure: at least one registration stays where it is.
var errCannotSecure = errors.New("not all registrations were moved")

func newSecure(all *common) *cobra.Command {
	return &cobra.Command{
		Use:   "secure [CLUSTER...]",
		Short: "Move registrations out of ConfigMaps into Secrets",
		Long: `Move registrations out of ConfigMaps into Secrets.

ConfigMaps are readable by the role view, and are seldom encrypted at rest. Each
registration is written as a Secret of the same name, read back, and only then is the
ConfigMap deleted. The controller keeps its connections meanwhile. Without names, all
registrations in ConfigMaps are moved.`,
		RunE: func(c *cobra.Command, args []string) error { return all.secure(c.Context(), args) },
	}
}

func (c *common) secure(ctx context.Context, names []string) error {
	hub, err := c.hub()
	if err != nil {
		return err
	}
	all, err := c.registrations(ctx, hub)
	if err != nil {
		return err
	}
	var chosen []*registration
	for i := range all {
		if len(names) == 0 && all[i].configMap != nil {
			chosen = append(chosen, &all[i])
		}
	}
	for _, name := range names {
		i := slices.IndexFunc(all, func(r registration) bool { return r.name == v1beta1.FoldClusterName(name) && r.configMap != nil })
		if i < 0 {
			return fmt.Errorf("no ConfigMap in namespace %s registers a cluster %s", c.clusterNamespace, name)
		}
		chosen = append(chosen, &all[i])
	}
	if len(chosen) == 0 {
		c.say("no registration is in a ConfigMap")
		return nil
	}
	failed := false
	for _, r := range chosen {
		if err := c.move(ctx, hub, r.configMap); err != nil {
			failed = true
			_, _ = fmt.Fprintf(c.Streams.ErrOut, "cluster %s: %v\n", r.name, err)
			continue
		}
		c.say("cluster %s is registered by the Secret %s/%s, and the ConfigMap is deleted", r.name, c.clusterNamespace, r.object)
	}
	if failed {
		return errCannotSecure
	}
	return nil
}

// move a registration into a Secret of the same name.
func (c *common) move(ctx context.Context, hub *session, m *corev1.ConfigMap) error {
	secrets := hub.core.Secrets(m.Namespace)
	wanted := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: m.Name, Namespace: m.Namespace, Labels: m.Labels, Annotations: maps.Clone(m.Annotations)},
		Data:       map[string][]byte{},
	}
	delete(wanted.Annotations, corev1.LastAppliedConfigAnnotation) // it is that of the ConfigMap, with the kubeconfig
	for key, value := range m.Data {
		wanted.Data[key] = []byte(value)
	}
	maps.Copy(wanted.Data, m.BinaryData)
	_, err := secrets.Create(ctx, wanted, metav1.CreateOptions{FieldManager: manager})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("writing the Secret: %w", err)
	}
	stored, err := secrets.Get(ctx, m.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the Secret back: %w", err)
	}
	for key, value := range wanted.Data {
		if !bytes.Equal(stored.Data[key], value) {
			return fmt.Errorf("there is a Secret %s already, whose key %s is another one; nothing is changed", m.Name, key)
		}
	}
	for key, value := range wanted.Labels {
		if stored.Labels[key] != value {
			return fmt.Errorf("there is a Secret %s already, without the label %s=%s; nothing is changed", m.Name, key, value)
		}
	}
	err = hub.core.ConfigMaps(m.Namespace).Delete(ctx, m.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &m.UID, ResourceVersion: &m.ResourceVersion}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting the ConfigMap, whose Secret is there: %w", err)
	}
	return nil
}
