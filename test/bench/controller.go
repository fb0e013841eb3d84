package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// usage of the controller's process over its whole life.
type usage struct {
	cpu  time.Duration
	peak int64 // bytes
}

// tapp has the controller do what bare does.
func (b *bench) tapp(ctx context.Context, namespace string, n int) (r result, err error) {
	stop, err := b.startController(namespace)
	if err != nil {
		return r, err
	}
	defer func() {
		var stopErr error
		r.usage, stopErr = stop()
		err = errors.Join(err, stopErr)
	}()

	replicas := int32(n)
	t := &tappv1.TApp{
		ObjectMeta: metav1.ObjectMeta{Name: "bench"},
		Spec:       tappv1.TAppSpec{Replicas: &replicas, Template: b.template()},
	}
	t.Spec.UpdateStrategy.InPlaceUpdate.Drain = &b.gate
	// The rolling template is one that nobody uses: all instances update by force.
	t.Spec.TemplatePool = map[string]corev1.PodTemplateSpec{"unused": b.template()}
	t.Spec.UpdateStrategy.Template = "unused"

	start := time.Now()
	if _, err := b.tapps.TApps(namespace).Create(ctx, t, metav1.CreateOptions{}); err != nil {
		return r, fmt.Errorf("creating the TApp: %w", err)
	}
	if err := b.await(ctx, namespace, n, runs(oldImage)); err != nil {
		return r, err
	}
	r.create = time.Since(start)

	start = time.Now()
	patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":%q}]`, newImage)
	if _, err := b.tapps.TApps(namespace).Patch(ctx, "bench", types.JSONPatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		return r, fmt.Errorf("changing the image: %w", err)
	}
	if err := b.await(ctx, namespace, n, runs(newImage)); err != nil {
		return r, err
	}
	r.update = time.Since(start)
	if err := b.tapps.TApps(namespace).Delete(ctx, "bench", metav1.DeleteOptions{}); err != nil {
		return r, fmt.Errorf("deleting the TApp: %w", err)
	}
	return r, nil
}

// startController runs the binary, and returns how to stop it.
func (b *bench) startController(namespace string) (func() (usage, error), error) {
	var log bytes.Buffer
	cmd := exec.Command(b.binary, "controller", "--kubeconfig", b.kubeconfig, "--namespace", namespace, "--leader-elect=false", "--metrics-address=")
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the controller: %w", err)
	}
	return func() (usage, error) {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			return usage{}, fmt.Errorf("stopping the controller: %w", err)
		}
		if err := cmd.Wait(); err != nil {
			return usage{}, fmt.Errorf("the controller failed: %w\n%s", err, log.String())
		}
		u := usage{cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
		if ru, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
			u.peak = ru.Maxrss << 10 // Linux counts in KiB
		}
		return u, nil
	}, nil
}
