package contender

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"tkestack.io/tapp/test/bench/measure"
	"tkestack.io/tapp/test/bench/program"
	"tkestack.io/tapp/test/bench/record"
)

// StartStatefulSetAlone has a kube-controller-manager with no other controller in the
// place of the cluster's, as TApp has a process of its own: receiving the pods is a part
// of its work then. No phase needs the other controllers.
func (b *Bench) StartStatefulSetAlone(ctx context.Context, namespace *corev1.Namespace, size Size) (*Contender, error) {
	if err := b.account(ctx, namespace.Name); err != nil {
		return nil, err
	}
	line, restore, err := b.StopControllerManager(ctx)
	if err != nil {
		return nil, err
	}
	alone, err := program.Run(line[0], append(line[1:], "--controllers=statefulset-controller")...)
	if err != nil {
		return nil, errors.Join(err, restore(ctx))
	}
	end := func(ctx context.Context) error { return errors.Join(alone.Kill(), restore(ctx)) }
	c, err := b.StartStatefulSet(ctx, namespace, size)
	if err == nil {
		err = b.tries(ctx, namespace.Name)
	}
	if err != nil {
		return nil, errors.Join(err, end(ctx))
	}
	c.Name = record.StatefulSetAlone
	stop := c.Stop
	c.Stop = func(ctx context.Context) error { return errors.Join(stop(ctx), end(ctx)) }
	return c, nil
}

// StopControllerManager stops the cluster's, and returns its command line and what starts it again.
func (b *Bench) StopControllerManager(ctx context.Context) (line []string, restore func(context.Context) error, err error) {
	line, err = measure.CommandLine(filepath.Join(b.Cluster.Dir, "bin"), controllerManager)
	if err != nil {
		return nil, nil, err
	}
	if err := b.devcluster(ctx, "stop", controllerManager); err != nil {
		return nil, nil, err
	}
	return line, func(ctx context.Context) error {
		// A benchmark that is broken off leaves the cluster as it was.
		return b.devcluster(context.WithoutCancel(ctx), "start", controllerManager)
	}, nil
}

const (
	aloneEvery    = 100 * time.Millisecond
	alonePatience = time.Minute
)

// account waits for the service account of pods, which another controller makes.
func (b *Bench) account(ctx context.Context, namespace string) error {
	err := wait.PollUntilContextTimeout(ctx, aloneEvery, alonePatience, true, func(ctx context.Context) (bool, error) {
		_, err := b.user.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("waiting for the service account of %s: %w", namespace, err)
	}
	return nil
}

// tries a StatefulSet without pods, and returns when the controller has seen it.
func (b *Bench) tries(ctx context.Context, namespace string) error {
	sets := b.user.AppsV1().StatefulSets(namespace)
	t := template(version{}, "trial")
	trial := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "trial"},
		Spec: appsv1.StatefulSetSpec{Replicas: new(int32), Template: t, Selector: &metav1.LabelSelector{MatchLabels: t.Labels}}}
	if _, err := sets.Create(ctx, trial, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("trying to create a StatefulSet: %w", err)
	}
	err := wait.PollUntilContextTimeout(ctx, aloneEvery, alonePatience, true, func(ctx context.Context) (bool, error) {
		s, err := sets.Get(ctx, trial.Name, metav1.GetOptions{})
		return err == nil && s.Status.ObservedGeneration > 0, err
	})
	if err != nil {
		return fmt.Errorf("waiting for the StatefulSet controller: %w", err)
	}
	return sets.Delete(ctx, trial.Name, metav1.DeleteOptions{})
}
