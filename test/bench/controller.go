package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	tappv1 "tkestack.io/tapp/crd/tapp/v1"
)

// readyAddress is where the controller says that it is ready.
const readyAddress = "127.0.0.1:18091"

// usage of the controller's process over its whole life.
type usage struct {
	cpu  time.Duration
	peak int64 // bytes
}

// tapp has the controller do what bare does.
func (b *bench) tapp(ctx context.Context, namespace string, n int) (r result, err error) {
	stop, err := b.startController(ctx, namespace)
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

	// The API server holds back the first object of a new CRD for two seconds.
	if _, err := b.tapps.TApps(namespace).Create(ctx, t, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		return r, fmt.Errorf("trying to create the TApp: %w", err)
	}
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
func (b *bench) startController(ctx context.Context, namespace string) (func() (usage, error), error) {
	var log bytes.Buffer
	cmd := exec.Command(b.binary, "controller", "--kubeconfig", b.kubeconfig, "--namespace", namespace, "--leader-elect=false", "--metrics-address", readyAddress)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the controller: %w", err)
	}
	if err := awaitReady(ctx); err != nil {
		_ = cmd.Process.Kill()
		return nil, fmt.Errorf("%w\n%s", err, log.String())
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

// awaitReady returns when the controller's caches are filled: how long it takes to
// start is not what is measured.
func awaitReady(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+readyAddress+"/readyz", nil)
		if err != nil {
			return false, err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return false, nil // it does not listen yet
		}
		return resp.StatusCode == http.StatusOK, resp.Body.Close()
	})
	if err != nil {
		return fmt.Errorf("waiting for the controller to be ready: %w", err)
	}
	return nil
}
